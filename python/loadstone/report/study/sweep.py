"""What a sweep says on a terminal.

Knows tables and matrices. Every number comes from `analysis.sweep`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from rich.text import Text

from loadstone import units
from loadstone.analysis.study.sweep import named, shown
from loadstone.messages import say
from loadstone.report.fit_width import fitted
from loadstone.report.run import data_sheet
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from loadstone.analysis.study.pooled import Pooled
    from loadstone.analysis.study.sweep import OperatingPoint, Sweep
    from loadstone.bundle.study import Factor

TITLES: Final = {
    "iops": "IOPS",
    "bandwidth": say("report.chart.bandwidth"),
    "p99": say("report.chart.latency_p99"),
    "sheet": say("report.chart.data_sheet"),
}
SPARE: Final = table_heads("runs", "p99.9", "p50", "bandwidth")
"""What goes where there is no room, in this order."""
HEADINGS: Final = table_heads("IOPS", "bandwidth", "mean", "p50", "p99", "p99.9", "runs")


def terminal(sweep: Sweep, gain_share: float, console: Console) -> None:
    """Print a sweep: a table for one factor, matrices for more, and what is recommended."""
    if len(sweep.axes) == 1:
        chosen = [shown(sweep.axes[0].name, advice.value) for advice in sweep.advice]
        headings, rows = table(sweep)
        bold = [index for index, row in enumerate(rows) if row[0] in chosen]
        console.print(fitted(headings, rows, console.width, names=0, spare=SPARE, bold=bold), soft_wrap=True)
    else:
        for fixed, name in planes(sweep):
            for quantity in (*sweep.rates, "p99", *(["sheet"] if _held_against_a_sheet(sweep) else [])):
                console.print(Text(", ".join(filter(None, (TITLES[quantity], name))), "bold"))
                console.print(fitted(*matrix(sweep, fixed, quantity), console.width), soft_wrap=True)
    for line in sentences(sweep, gain_share):
        console.print(Text(line))


def sentences(sweep: Sweep, gain_share: float) -> list[str]:
    """Say where to operate, and what nothing is said by."""
    lines = [sentence(one, gain_share) for one in sweep.advice]
    measured = sum(cell.found is not None for cell in sweep.cells)
    if measured and sweep.left_out == measured:
        return [say("report.sweep.none_valid")]
    if sweep.left_out:
        lines.append(say("report.sweep.left_out", invalid=sweep.left_out, cells=measured))
    return lines


def sentence(advice: OperatingPoint, gain_share: float) -> str:
    """Say where to operate, and why."""
    of = ", ".join(named(name, value) for name, value in advice.others)
    where = f"{of}: " if of else ""
    gain = abs(advice.gain_beyond)
    if advice.value is None:
        sure = "" if advice.certain else say("report.sweep.as_far_as")
        return say("report.sweep.no_end", where=where, axis=advice.axis, gain_share=gain, sure=sure)
    beyond = say("report.sweep.gains" if advice.gain_beyond >= 0 else "report.sweep.loses", gain_share=gain)
    return say(
        "report.sweep.point",
        where=where,
        axis=advice.axis,
        value=advice.value,
        at=say("report.sweep.at", rate=rate(advice.at), latency=written(advice.at, "p99")),
        best_share=advice.share_of_best,
        beyond=beyond,
        limit_share=gain_share,
        sure="" if advice.certain else say("report.sweep.open", limit_share=gain_share),
    )


def rate(pooled: Pooled) -> str:
    """Write bandwidth for large blocks, IOPS for others."""
    if pooled.large_blocks:
        return units.figure(pooled.bandwidth, "binary")
    return f"{units.figure(pooled.iops, 'count')} IOPS"


def value(pooled: Pooled, what: str) -> float | None:
    """Return one of `TITLES`."""
    return {
        "iops": pooled.iops.value,
        "bandwidth": pooled.bandwidth.value,
        "p99": pooled.percentiles_ns[99.0],
        "sheet": None if pooled.sheet_share is None else pooled.sheet_share.value,
    }[what]


def written(pooled: Pooled, what: str) -> str:
    """Write one of `TITLES`."""
    if what == "sheet":
        return data_sheet.share(pooled.sheet_share)
    write = {"iops": units.count, "bandwidth": units.bandwidth, "p99": units.duration}[what]
    return write(value(pooled, what))


def table(sweep: Sweep) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of a sweep of one factor."""
    axis = sweep.axes[0]
    sheet = _held_against_a_sheet(sweep)
    headings = [axis.name, *HEADINGS, *([data_sheet.HEADING] if sheet else [])]
    rows = []
    for one in axis.values:
        cell = sweep.cell([one])
        cells = [units.NONE] * (len(headings) - 1)
        if cell is not None:
            cells = [*_cells(cell), *([data_sheet.share(cell.sheet_share)] if sheet else [])]
        rows.append([shown(axis.name, one), *cells])
    return headings, rows


def matrix(sweep: Sweep, fixed: Sequence[Factor], what: str) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the last two factors, the others fixed; `what` is one of `TITLES`."""
    down, across = sweep.axes[-2:]
    rows = []
    for row in down.values:
        cells = [sweep.cell([*fixed, row, column]) for column in across.values]
        rows.append(
            [shown(down.name, row), *(units.NONE if one is None else written(one, what) for one in cells)]
        )
    headings = [f"{down.name} \\ {across.name}", *(shown(across.name, column) for column in across.values)]
    return headings, rows


def planes(sweep: Sweep) -> Iterator[tuple[tuple[Factor, ...], str]]:
    """Return the values of all factors but the last two, and how they are called."""
    for fixed in itertools.product(*(axis.values for axis in sweep.axes[:-2])):
        pairs = zip(sweep.axes, fixed, strict=False)
        yield fixed, ", ".join(named(axis.name, value) for axis, value in pairs)


def _held_against_a_sheet(sweep: Sweep) -> bool:
    return any(cell.found is not None and cell.found.sheet_share is not None for cell in sweep.cells)


def _cells(pooled: Pooled) -> list[str]:
    return [
        units.with_error(pooled.iops, "count"),
        units.with_error(pooled.bandwidth, "binary"),
        units.with_error(pooled.mean_ns, "time"),
        *(units.duration(pooled.percentiles_ns[percent]) for percent in (50.0, 99.0, 99.9)),
        str(pooled.runs),
    ]
