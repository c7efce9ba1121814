"""Interval lines and their headers, column by column as vdbench prints them.

Knows the two layouts: 5.04.07 splits the longest response time into reads and writes. Knows
where a time of day comes from only by its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.report.vdbench.interval_totals import CpuUse, IntervalTotals

Layout = Literal["50407", "50406"]
EVERY: Final = 30
"""Lines after which the header comes again."""
UNKNOWN: Final = "n/a"


@dataclass(frozen=True, slots=True)
class LineColumn:
    """One column: the two words above it, its width, and how its value is written."""

    above: str
    below: str
    width: int
    digits: int
    value: Callable[[IntervalTotals], float]

    def text(self, tally: IntervalTotals) -> str:
        """Return the value, with a blank before it."""
        return f" {self.value(tally):{self.width}.{self.digits}f}"


def _longest(tally: IntervalTotals) -> float:
    return tally.both.longest_ms


_COMMON: Final = (
    LineColumn("MB/sec", "1024**2", 8, 2, lambda tally: tally.mib_per_s),
    LineColumn("bytes", "i/o", 7, 0, lambda tally: float(tally.bytes_per_io)),
    LineColumn("read", "pct", 6, 2, lambda tally: tally.read_percent),
    LineColumn("resp", "time", 8, 3, lambda tally: tally.both.response_ms),
    LineColumn("read", "resp", 8, 3, lambda tally: tally.reads.response_ms),
    LineColumn("write", "resp", 8, 3, lambda tally: tally.writes.response_ms),
)
_DEVIATION: Final = LineColumn("resp", "stddev", 8, 3, lambda tally: tally.deviation_ms)
_COLUMNS: Final[dict[Layout, tuple[LineColumn, ...]]] = {
    "50407": (
        LineColumn("i/o", "rate", 10, 1, lambda tally: tally.rate),
        *_COMMON,
        LineColumn("read", "max", 8, 2, lambda tally: tally.reads.longest_ms),
        LineColumn("write", "max", 8, 2, lambda tally: tally.writes.longest_ms),
        _DEVIATION,
        LineColumn("queue", "depth", 6, 1, lambda tally: tally.queue_depth),
    ),
    "50406": (
        LineColumn("i/o", "rate", 10, 2, lambda tally: tally.rate),
        *_COMMON,
        LineColumn("resp", "max", 8, 3, _longest),
        _DEVIATION,
        LineColumn("queue", "depth", 5, 1, lambda tally: tally.queue_depth),
    ),
}
_NAME_WIDTH: Final[dict[Layout, int]] = {"50407": 12, "50406": 10}


def header(layout: Layout, date: str, *, cpu: bool) -> list[str]:
    """Return the empty line and the two of the header; `date` as `Nov 21, 2026`."""
    width, columns = _NAME_WIDTH[layout], _COLUMNS[layout]
    above = f"{date}{'interval':>{width}}" + "".join(f" {one.above:>{one.width}}" for one in columns)
    below = " " * (12 + width) + "".join(f" {one.below:>{one.width}}" for one in columns)
    if cpu:
        above, below = f"{above}  cpu%  cpu%", f"{below} sys+u   sys"
    return ["", above, below]


def line(
    layout: Layout, time: str, name: str, tally: IntervalTotals, cpu: CpuUse | Literal[False] | None
) -> str:
    """Return one line; `cpu` False: the page has no such columns, None: nothing is known."""
    text = f"{time}{name:>{_NAME_WIDTH[layout]}}" + "".join(column.text(tally) for column in _COLUMNS[layout])
    if cpu is False:
        return text
    known = (UNKNOWN, UNKNOWN) if cpu is None else (f"{cpu.used:.1f}", f"{cpu.system:.1f}")
    return text + "".join(f" {one:>5}" for one in known)
