"""What a study says on a terminal.

Knows tables of runs and lines about them. Every number comes from the analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from loadstone import units
from loadstone.report.terminal import STYLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from loadstone.analysis.point import Measured, Run
    from loadstone.bundle.study import Study

HEADINGS: Final = ("IOPS", "bandwidth", "mean", "p50", "p99", "p99.9", "max")


def summary(study: Study, runs: Sequence[Run], console: Console) -> None:
    """Print what a study measured."""
    console.print(
        Text.assemble((study.status, STYLES.get(study.status, "")), f" · {study.name} · {_many(len(runs))}")
    )
    if any(run.lines for run in runs):
        console.print(_table(runs))
        console.print(Text("latency from the intended start to the end; ± is one standard error", "dim"))
    else:
        console.print("nothing was measured")
    for run in runs:
        if run.point.error is not None:
            console.print(Text(f"{run.point.name}: {run.point.error}", "red"))


def in_short(run: Run) -> str:
    """Say a run in a line: its name, rate and latency, or what went wrong."""
    said = [run.point.name]
    shown = run.whole or (run.lines[0] if len(run.lines) == 1 else None)
    if run.point.error is not None:
        said.append(run.point.error)
    elif shown is not None:
        rate = units.bandwidth(shown.bandwidth.value) if shown.large_blocks and shown.bandwidth else None
        said.append(rate or f"{units.count(shown.iops.value if shown.iops else None)} IOPS")
        said += [f"mean {units.duration(shown.mean_ns.value)}"] if shown.mean_ns else []
        if shown.percentiles_ns.get(99.0) is not None:
            said.append(f"p99 {units.duration(shown.percentiles_ns[99.0])}")
        if shown.held is False:
            said.append("RATE NOT HELD")
    elif not run.lines:
        said.append("nothing was measured")
    if run.point.status not in {None, "complete"}:
        said.append(str(run.point.status))
    return f"{said[0]}: {', '.join(said[1:])}" if said[1:] else said[0]


def cells(line: Measured) -> list[str]:
    """Return the cells of `HEADINGS`."""
    return [
        units.with_error(line.iops, "count"),
        units.with_error(line.bandwidth if line.op != "sync" else None, "binary"),
        units.with_error(line.mean_ns, "time"),
        *(units.duration(line.percentiles_ns[percent]) for percent in (50.0, 99.0, 99.9)),
        units.duration(line.max_ns),
    ]


def _table(runs: Sequence[Run]) -> Table:
    table = Table(box=None, pad_edge=False)
    by_job = any(len(run.lines) > 1 for run in runs)
    for at, heading in enumerate(("run", *(("job", "op") if by_job else ()), *HEADINGS)):
        table.add_column(heading, justify="left" if at < (3 if by_job else 1) else "right", no_wrap=True)
    for run in runs:
        for index, line in enumerate(run.lines):
            about = (line.job, line.op) if by_job else ()
            table.add_row("" if index else run.point.name, *about, *cells(line))
        if len(run.lines) > 1 and run.whole is not None:
            table.add_row("", run.whole.job, run.whole.op, *cells(run.whole), style="bold")
        if not run.lines:
            table.add_row(run.point.name, style="dim")
    return table


def _many(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
