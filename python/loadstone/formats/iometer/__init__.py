"""Iometer's configuration files (`.icf`)."""

from __future__ import annotations

from loadstone.formats.iometer.lower import CommandLineChanges, TestRun, runs
from loadstone.formats.iometer.read import Configuration, read_icf

__all__ = ["CommandLineChanges", "Configuration", "TestRun", "read_icf", "runs"]
