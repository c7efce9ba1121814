"""Interval lines of runs on file systems, group by group as vdbench prints them.

Knows the groups and their widths, and how vdbench makes a number fit: by leaving digits out. Knows
where a time of day comes from only by its text.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from loadstone.report.vdbench.interval_lines import UNKNOWN
from loadstone.report.vdbench.interval_totals import MIB, OneWay, added

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from loadstone.report.vdbench.interval_lines import Layout
    from loadstone.report.vdbench.interval_totals import CpuUse, IntervalTotals

OFTEN: Final = ("mkdir", "rmdir", "create", "open", "close", "delete")
"""Operations that every page of 5.04.06 shows; others only where one was asked for."""
_ALWAYS: Final = ("open", "close")
"""Those of 5.04.07."""
SOMETIMES: Final = ("getattr", "setattr", "access", "copy", "move")
_NAME_WIDTH: Final[dict[Layout, int]] = {"50407": 12, "50406": 10}
_Number = float | None
_Place = tuple[str, int, int]
"""The word below, its width, and its digits."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Columns under one word."""

    above: str
    places: tuple[_Place, ...]

    def head(self) -> tuple[str, str]:
        """Return the two lines above the numbers."""
        width = sum(width for _, width, _ in self.places) + len(self.places) - 1
        dots = width - len(self.above)
        left = dots // 2
        above = f" {'.' * left}{self.above}{'.' * (dots - left)}"
        return above, "".join(f" {below:>{wide}}" for below, wide, _ in self.places)

    def text(self, numbers: Sequence[_Number], unknown: str = UNKNOWN) -> str:
        """Return numbers, each with a blank before it."""
        return "".join(
            f" {unknown:>{width}}" if number is None else f" {fitted(number, width, digits)}"
            for number, (_, width, digits) in zip(numbers, self.places, strict=True)
        )


def fitted(number: float, width: int, digits: int) -> str:
    """Write a number with as many digits as there is room for."""
    for decimals in range(digits, -1, -1):
        text = f"{number:.{decimals}f}"
        if len(text) <= width:
            break
    return f"{text:>{width}}"


_RATE: Final[tuple[_Place, ...]] = (("rate", 6, 1), ("resp", 6, 3))
_OPERATION: Final[tuple[_Place, ...]] = (("rate", 5, 1), ("resp", 6, 3))
_REQUESTED: Final = _Group("ReqstdOps.", _RATE)
_CPU: Final = _Group("cpu%", (("total", 5, 1), ("sys", 4, 2)))
_REST: Final = (
    _Group(" read", (("pct", 5, 1),)),
    _Group("read", _RATE),
    _Group("write", _RATE),
    _Group("mb/sec", (("read", 5, 2), ("write", 5, 2))),
    _Group("mb/sec", (("total", 6, 2),)),
    _Group("xfer", (("size", 7, 0),)),
)


def shown(used: Collection[str], layout: Layout) -> tuple[str, ...]:
    """Return the operations a page shows when these were asked for, or a format needs them."""
    often = [op for op in OFTEN if layout == "50406" or op in _ALWAYS or op in used]
    return (*often, *(op for op in SOMETIMES if op in used))


def _groups(ops: Sequence[str], *, cpu: bool) -> list[_Group]:
    return [_REQUESTED, *([_CPU] if cpu else []), *_REST, *(_Group(op, _OPERATION) for op in ops)]


def header(layout: Layout, date: str, ops: Sequence[str], *, cpu: bool) -> list[str]:
    """Return the empty line and the two of the header; `date` as `Nov 21, 2026`."""
    name = _Group("Interval", (("", _NAME_WIDTH[layout], 0),)).head()
    heads = [name, *(group.head() for group in _groups(ops, cpu=cpu))]
    return ["", date + "".join(above for above, _ in heads), " " * 12 + "".join(below for _, below in heads)]


def line(
    layout: Layout,
    time: str,
    name: str,
    tally: IntervalTotals,
    ops: Sequence[str],
    *,
    cpu: CpuUse | Literal[False] | None,
) -> str:
    """Return one line; `cpu` False: the page has no such columns, None: nothing is known."""
    used: list[_Number] = [None, None] if not cpu else [cpu.used, cpu.system]
    values = [_pair(tally, tally.requested), used, *_values(tally, ops)]
    return _line(layout, (time, name), values, ops, cpu=cpu is not False)


def _values(tally: IntervalTotals, ops: Sequence[str]) -> list[list[_Number]]:
    """Return the numbers of the groups behind those of the CPUs."""
    return [
        [100 * tally.reads.count / tally.both.count if tally.both.count else 0.0],
        _pair(tally, tally.reads),
        _pair(tally, tally.writes),
        [_mib(tally, tally.reads), _mib(tally, tally.writes)],
        [_mib(tally, tally.both)],
        [float(tally.bytes_per_io)],
        *(_pair(tally, tally.of(op)) for op in ops),
    ]


def short_header(ops: Sequence[str]) -> tuple[str, str]:
    """Return the two lines of a table without intervals and CPUs."""
    heads = [group.head() for group in _groups(ops, cpu=False)]
    return "".join(above for above, _ in heads), "".join(below for _, below in heads)


def short_line(tally: IntervalTotals, ops: Sequence[str]) -> str:
    """Return one line of such a table, after its label."""
    groups = _groups(ops, cpu=False)
    values = [_pair(tally, tally.requested), *_values(tally, ops)]
    return "".join(group.text(one) for group, one in zip(groups, values, strict=True))


def spread(
    layout: Layout,
    time: str,
    average_name: str,
    counted: Sequence[IntervalTotals],
    ops: Sequence[str],
    *,
    cpu: bool,
) -> list[str]:
    """Return the lines `std_` and `max_` below the averages of 5.04.07; 5.04.06 has none.

    Of what was asked for only when it was one operation: several have no deviation in common. What was
    not done is left blank.
    """
    if layout != "50407" or not counted:
        return []
    whole = added(counted)
    requested_ops = sorted(whole.asked or ())
    lines = []
    for kind, of in (("std", _deviations), ("max", _highest)):
        single: list[_Number] = [None, None]
        if len(requested_ops) == 1:
            single = of(counted, whole, requested_ops[0])
        values: list[list[_Number]] = [
            single,
            [None, None],
            [None],
            of(counted, whole, "read"),
            of(counted, whole, "write"),
            [None, None],
            [None],
            [None],
            *(of(counted, whole, op) for op in ops),
        ]
        begin = (time, average_name.replace("avg", kind))
        lines.append(_line(layout, begin, values, ops, cpu=cpu, unknown=""))
    return lines


def _deviations(counted: Sequence[IntervalTotals], whole: IntervalTotals, op: str) -> list[_Number]:
    if not whole.of(op).count:
        return [None, None]
    rates = [tally.per_second(tally.of(op)) for tally in counted]
    return [statistics.stdev(rates) if len(rates) > 1 else None, whole.of(op).deviation_ms]


def _highest(counted: Sequence[IntervalTotals], whole: IntervalTotals, op: str) -> list[_Number]:
    if not whole.of(op).count:
        return [None, None]
    return [max(tally.per_second(tally.of(op)) for tally in counted), whole.of(op).longest_ms]


def _line(
    layout: Layout,
    begin: tuple[str, str],
    values: Sequence[Sequence[_Number]],
    ops: Sequence[str],
    *,
    cpu: bool,
    unknown: str = UNKNOWN,
) -> str:
    if not cpu:
        values = [*values[:1], *values[2:]]
    groups = _groups(ops, cpu=cpu)
    numbers = "".join(group.text(one, unknown) for group, one in zip(groups, values, strict=True))
    return f"{begin[0]} {begin[1]:>{_NAME_WIDTH[layout]}}{numbers}"


def _pair(tally: IntervalTotals, one: OneWay) -> list[_Number]:
    return [tally.per_second(one), one.response_ms]


def _mib(tally: IntervalTotals, one: OneWay) -> float:
    return one.bytes / tally.seconds / MIB if tally.seconds else 0.0
