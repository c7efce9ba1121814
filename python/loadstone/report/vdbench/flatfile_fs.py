"""`flatfile.html` of runs on file systems: every interval and average as one row of words.

Knows the columns of the two layouts: 5.04.07 has deviation and maximum beside each rate and
response time. What is not known, or differs between workloads, is `n/a`.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from loadstone.report.vdbench.flatfile import asked_rate, cell, head_of, number, same
from loadstone.report.vdbench.interval_totals import MIB, added

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.vdbench.interval_lines import Layout
    from loadstone.report.vdbench.interval_totals import Counted, CpuUse, IntervalTotals, OneWay

_OPS: Final = (
    *("read", "write", "mkdir", "rmdir", "create", "open", "close", "delete"),
    *("getattr", "setattr", "access", "copy", "move"),
)
_MEANINGS: Final = {
    "Run": "Name of run from RD=",
    "Interval": "Reporting interval number",
    "reqrate": "Requested rate of operations",
    "rate": "Observed rate of the requested operations",
    "resp": "Observed response time of the requested operations, milliseconds",
    "MB/sec": "Megabytes per second (MB=1024*1024)",
    "MB_read": "Megabytes read per second",
    "MB_write": "Megabytes written per second",
    "Xfersize": "Average transfer size",
    "Threads": "number of threads requested",
    "compratio": "Requested compression ratio",
    "dedupratio": "Requested dedup ratio",
    "cpu_used": "cpu% user+sys",
    "cpu_user": "cpu% user",
    "cpu_kernel": "cpu% sys",
    "cpu_wait": "cpu% wait",
    "cpu_idle": "cpu% idle",
}
_Value = str | float | int | None


def header(layout: Layout) -> list[str]:
    """Return the comments and the line of names, which begins with a blank."""
    return head_of(layout, [(name, _meaning(name)) for name, _ in _columns(layout, None, [])])


def row(
    layout: Layout,
    stamps: tuple[str, str],
    counted: Counted,
    name: str,
    parts: Sequence[IntervalTotals],
    *,
    cpu: CpuUse | None,
) -> str:
    """Return one row. `parts`: the intervals it is about."""
    values = dict(_columns(layout, added(parts), parts))
    values |= {"Run": counted.facts["rd"], "Interval": name}
    used: tuple[_Value, ...] = (None,) * 5
    if cpu is not None:
        used = (cpu.used, cpu.user, cpu.system, cpu.wait, cpu.idle)
    by_column = {
        "reqrate": asked_rate(counted),
        "threads": same(counted, "threads"),
        "compratio": number(counted.facts.get("compratio")),
        **dict(zip(("cpu_used", "cpu_user", "cpu_kernel", "cpu_wait", "cpu_idle"), used, strict=True)),
    }
    cells = [by_column.get(column.lower(), value) for column, value in values.items()]
    return f"{stamps[0]:>12} {stamps[1]:>24}" + "".join(cell(layout, value) for value in cells)


def _meaning(name: str) -> str:
    known = {word.lower(): text for word, text in _MEANINGS.items()}
    if name.lower() in known:
        return known[name.lower()]
    for ending, meaning in (("_std", ", standard deviation"), ("_max", ", maximum")):
        if name.endswith(ending):
            return _meaning(name.removesuffix(ending)) + meaning
    operation, _, quantity = name.partition("_")
    words = {"rate": "per second", "resp": "response time, milliseconds"}
    return f"{operation}: {words[quantity]}"


def _columns(
    layout: Layout, whole: IntervalTotals | None, parts: Sequence[IntervalTotals]
) -> list[tuple[str, _Value]]:
    """Return every column with its value, where that follows from the tally."""
    return _newer(whole, parts) if layout == "50407" else _older(whole)


def _older(whole: IntervalTotals | None) -> list[tuple[str, _Value]]:
    mib = _mib(whole)
    columns: list[tuple[str, _Value]] = [("Run", None), ("Interval", None), ("reqrate", None)]
    columns += [("rate", whole.rate if whole else None)]
    columns += [("resp", whole.requested.response_ms if whole else None), ("MB/sec", mib[0])]
    for op in _OPS:
        columns += _pair(op, whole)
        if op == "write":
            columns += [("MB_read", mib[1]), ("MB_write", mib[2])]
            columns += [("Xfersize", whole.bytes_per_io if whole else None)]
    return [*columns, *_end(("compratio", "dedupratio"))]


def _newer(whole: IntervalTotals | None, parts: Sequence[IntervalTotals]) -> list[tuple[str, _Value]]:
    mib = _mib(whole)
    columns: list[tuple[str, _Value]] = [("Run", None), ("Interval", None)]
    columns += [("Xfersize", whole.bytes_per_io if whole else None), ("Threads", None), ("Reqrate", None)]
    columns += _six("", whole, [(part, part.requested) for part in parts])
    columns += list(zip(("MB/sec", "MB_read", "MB_write"), mib, strict=True))
    for op in _OPS[:-2]:
        columns += _six(f"{op.capitalize()}_", whole, [(part, part.of(op)) for part in parts], op)
    return [*columns, *_end(("Compratio", "Dedupratio"))]


def _end(ratios: Sequence[str]) -> list[tuple[str, _Value]]:
    return [(name, None) for name in (*ratios, "cpu_used", "cpu_user", "cpu_kernel", "cpu_wait", "cpu_idle")]


def _pair(op: str, whole: IntervalTotals | None) -> list[tuple[str, _Value]]:
    name = op.capitalize()
    one = whole.of(op) if whole else None
    rate = whole.per_second(one) if whole and one else None
    return [(f"{name}_rate", rate), (f"{name}_resp", one.response_ms if one else None)]


def _six(
    prefix: str,
    whole: IntervalTotals | None,
    parts: Sequence[tuple[IntervalTotals, OneWay]],
    op: str | None = None,
) -> list[tuple[str, _Value]]:
    """Return rate and response time of an operation, each with its deviation and maximum."""
    words = ("rate", "rate_std", "rate_max", "resp", "resp_std", "resp_max")
    names = [f"{prefix}{word}" if prefix else word.capitalize() for word in words]
    if whole is None:
        return [(name, None) for name in names]
    one = whole.of(op) if op else whole.requested
    rates = [tally.per_second(each) for tally, each in parts]
    several = len(rates) > 1
    values: tuple[_Value, ...] = (
        whole.per_second(one),
        statistics.stdev(rates) if several else None,
        max(rates) if several else None,
        one.response_ms,
        one.deviation_ms,
        one.longest_ms,
    )
    return list(zip(names, values, strict=True))


def _mib(whole: IntervalTotals | None) -> list[float | None]:
    if whole is None or not whole.seconds:
        return [None] * 3
    return [one.bytes / whole.seconds / MIB for one in (whole.both, whole.reads, whole.writes)]
