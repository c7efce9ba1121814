"""vdbench's parameter files."""

from __future__ import annotations

from loadstone.formats.vdbench.expand import Overrides, Run, expand
from loadstone.formats.vdbench.filework import FileWork
from loadstone.formats.vdbench.hosts import mapped as map_hosts
from loadstone.formats.vdbench.lower import Given, facts, lower, workload_facts
from loadstone.formats.vdbench.read import ParameterFile, TextSource, read
from loadstone.formats.vdbench.treeshape import shape

__all__ = [
    "FileWork",
    "Given",
    "Overrides",
    "ParameterFile",
    "Run",
    "TextSource",
    "expand",
    "facts",
    "lower",
    "map_hosts",
    "read",
    "shape",
    "workload_facts",
]
