"""Loadstone: storage load testing that can be believed."""

__version__ = "0.1.0"
