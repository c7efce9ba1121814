"""vdbench's parameter files."""

from __future__ import annotations

from loadstone.formats.vdbench.expand import Overrides, ParameterFileRun, expand
from loadstone.formats.vdbench.file_work import FileWork
from loadstone.formats.vdbench.hosts import away as host_away
from loadstone.formats.vdbench.hosts import mapped as map_hosts
from loadstone.formats.vdbench.lower import Given, facts, lower, workload_facts
from loadstone.formats.vdbench.read import ParameterFile, ParameterText, read
from loadstone.formats.vdbench.tree_shape import shape

__all__ = [
    "FileWork",
    "Given",
    "Overrides",
    "ParameterFile",
    "ParameterFileRun",
    "ParameterText",
    "expand",
    "facts",
    "host_away",
    "lower",
    "map_hosts",
    "read",
    "shape",
    "workload_facts",
]
