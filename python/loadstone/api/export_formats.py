"""What a result can be exported as. Imports nothing, so that `--help` starts fast."""

from __future__ import annotations

from typing import Literal

Kind = Literal[
    "fio-json",
    "fio-logs",
    "csv",
    "parquet",
    "prometheus",
    "markdown",
    "iometer-csv",
    "vdbench",
    "vdbench-50406",
]
Layout = Literal["1.1", "2008"]
"""Columns of an Iometer results file: of version 1.1, or of 2008."""
