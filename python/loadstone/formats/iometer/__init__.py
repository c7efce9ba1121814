"""Iometer's configuration files (`.icf`)."""

from __future__ import annotations

from loadstone.formats.iometer.lower import Asked, Run, runs
from loadstone.formats.iometer.read import Configuration, read_icf

__all__ = ["Asked", "Configuration", "Run", "read_icf", "runs"]
