"""`loadstone runs`: what was measured before, a line for each run and study of a directory.

Knows how the list is shown; `loadstone.list_runs` makes it.
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import loadstone
from loadstone import exitcodes
from loadstone.cli.options.arguments import Flag

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE: Final = Path("loadstone-runs")
HEADINGS: Final = ("started", "runs", "status", "IOPS", "bandwidth", "mean", "p99", "verdict", "directory")


def runs(directory: Path = PLACE, /, *, json: Annotated[bool, Flag] = False) -> int:
    """List the runs and studies in a directory, the newest first.

    Parameters
    ----------
    directory
        Where runs were kept.
    json
        Print one JSON document.
    """
    from loadstone.messages import say
    from loadstone.screen import Screen

    table = loadstone.list_runs(directory)
    if json:
        rows = table.with_columns(table["started"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")).to_dicts()
        sys.stdout.write(json_format.dumps(rows, indent=2) + "\n")
        return exitcodes.DONE
    if table.height == 0:
        Screen(stderr=True).print(say("cli.runs.none", directory=directory), markup=False)
        return exitcodes.DONE
    lines = [HEADINGS, *(_cells(row) for row in table.to_dicts())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")
    return exitcodes.DONE


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    from loadstone import units
    from loadstone.messages import template
    from loadstone.printable import line

    started = row["started"]
    shown = (
        f"{started:%Y-%m-%d %H:%M}" if started is not None else units.NONE,
        units.NONE if row["runs"] is None else str(row["runs"]),
        row["status"],
        units.count(row["iops"]),
        units.bandwidth(row["bytes_per_s"]),
        units.duration(row["mean_ns"]),
        units.duration(row["p99_ns"]),
        template(f"verdict.kind.{row['verdict']}") if row["verdict"] else units.NONE,
    )
    return (*shown, line(row["path"]))
