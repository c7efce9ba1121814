"""What an experiment measured, as JSON and as a table for a terminal.

Knows the table of runs. Computes no effect.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import IO, TYPE_CHECKING, Any

from rich.table import Table

from loadstone import units
from loadstone.bundle import experiment as on_disk
from loadstone.experiment.observe import observations
from loadstone.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.effects.observations import Observation

PIPE_WIDTH = 160


def document(path: Path) -> dict[str, Any]:
    """Return the experiment and its observations as JSON has them."""
    found = observations(path)
    return {
        "format": 1,
        "experiment": on_disk.read(path).model_dump(mode="json"),
        "observations": [dataclasses.asdict(row) | {"levels": dict(row.levels)} for row in found.rows],
    }


def print_table(path: Path, out: IO[str]) -> None:
    """Print a line for each pattern and combination: the mean of each metric and how many runs it is of."""
    found = observations(path)
    told = on_disk.read(path)
    names = [factor.name for factor in told.factors]
    table = Table(title=told.title, title_justify="left")
    for name in ("pattern", *names, "runs"):
        table.add_column(name)
    for metric in told.metrics:
        table.add_column(metric, justify="right")
    groups: dict[tuple[str, ...], list[Observation]] = {}
    for row in found.rows:
        key = (row.pattern, *(row.levels.get(name, "") for name in names))
        groups.setdefault(key, []).append(row)
    for key in sorted(groups):
        rows = groups[key]
        valid = [row for row in rows if row.invalid is None]
        count = str(len(valid)) if len(valid) == len(rows) else f"{len(valid)} of {len(rows)} valid"
        table.add_row(*key, count, *(_mean(valid, metric) for metric in told.metrics))
    Screen(file=out, highlight=False, width=None if out.isatty() else PIPE_WIDTH).print(table)


def _mean(rows: list[Observation], metric: str) -> str:
    values = [row.metrics[metric] for row in rows if metric in row.metrics]
    if not values:
        return units.NONE
    mean = statistics.fmean(values)
    if metric.endswith("_ns") or metric == "cpu_ns_per_io":
        return units.duration(mean)
    return units.bandwidth(mean) if metric.endswith("bytes_per_s") else units.count(mean)
