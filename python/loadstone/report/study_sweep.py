"""What a sweep says on a terminal.

Knows tables and matrices. Every number comes from `analysis.sweep`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from loadstone import units
from loadstone.analysis.sweep import named, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from loadstone.analysis.pooled import Pooled
    from loadstone.analysis.sweep import Advice, Sweep
    from loadstone.bundle.study import Factor

HEADINGS: Final = ("IOPS", "bandwidth", "mean", "p50", "p99", "p99.9", "runs")


def terminal(sweep: Sweep, gain_share: float, console: Console) -> None:
    """Print a sweep: a table for one factor, matrices for more, and what is recommended."""
    if len(sweep.axes) == 1:
        console.print(_table(sweep))
    else:
        for fixed in itertools.product(*(axis.values for axis in sweep.axes[:-2])):
            for title, write in (("achieved", rate), ("p99", p99)):
                console.print(Text(", ".join([title, *_fixed(sweep, fixed)]), "bold"))
                console.print(_matrix(sweep, fixed, write))
    for one in sweep.advice:
        console.print(Text(sentence(one, gain_share)))


def sentence(advice: Advice, gain_share: float) -> str:
    """Say where to operate, and why."""
    of = ", ".join(named(name, value) for name, value in advice.others)
    where = f"{of}: " if of else ""
    gained = f"{units.digits(abs(advice.gain_beyond) * 100)}{units.THIN}% per doubling"
    asked = f"{gain_share * 100:g}{units.THIN}%"
    if advice.value is None:
        sure = "" if advice.certain else ", as far as the errors tell"
        return f"{where}no {advice.axis} is recommended: the last still gained {gained}{sure}; sweep further"
    beyond = f"gains at most {gained}" if advice.gain_beyond >= 0 else f"loses {gained}"
    sure = "" if advice.certain else f"; the errors leave open whether it gains less than {asked}"
    return (
        f"{where}recommended {advice.axis} {advice.value}: {rate(advice.at)} at p99 {p99(advice.at)}, "
        f"{advice.share_of_best * 100:.0f}{units.THIN}% of the best; beyond it throughput {beyond}, "
        f"{asked} was asked for{sure}"
    )


def rate(found: Pooled) -> str:
    """Write bandwidth for large blocks, IOPS for others."""
    if found.large_blocks:
        return units.bandwidth(found.bandwidth.value)
    return f"{units.count(found.iops.value)} IOPS"


def p99(found: Pooled) -> str:
    """Write the 99th percentile."""
    return units.duration(found.percentiles_ns[99.0])


def _table(sweep: Sweep) -> Table:
    axis = sweep.axes[0]
    table = Table(box=None, pad_edge=False)
    for heading in (axis.name, *HEADINGS):
        table.add_column(heading, justify="right", no_wrap=True)
    for value in axis.values:
        found = sweep.cell([value])
        cells = [units.NONE] * len(HEADINGS) if found is None else _cells(found)
        here = any(advice.value == value and not advice.others for advice in sweep.advice)
        table.add_row(shown(axis.name, value), *cells, style="bold" if here else "")
    return table


def _cells(found: Pooled) -> list[str]:
    return [
        units.with_error(found.iops, "count"),
        units.with_error(found.bandwidth, "binary"),
        units.with_error(found.mean_ns, "time"),
        *(units.duration(found.percentiles_ns[percent]) for percent in (50.0, 99.0, 99.9)),
        str(found.runs),
    ]


def _matrix(sweep: Sweep, fixed: Sequence[Factor], write: Callable[[Pooled], str]) -> Table:
    down, across = sweep.axes[-2:]
    table = Table(box=None, pad_edge=False)
    table.add_column(f"{down.name} \\ {across.name}", justify="right", no_wrap=True)
    for value in across.values:
        table.add_column(shown(across.name, value), justify="right", no_wrap=True)
    for row in down.values:
        found = [sweep.cell([*fixed, row, value]) for value in across.values]
        cells = [units.NONE if one is None else write(one) for one in found]
        table.add_row(shown(down.name, row), *cells)
    return table


def _fixed(sweep: Sweep, fixed: Sequence[Factor]) -> list[str]:
    pairs = zip(sweep.axes, fixed, strict=False)
    return [named(axis.name, value) for axis, value in pairs]
