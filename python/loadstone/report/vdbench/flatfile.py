"""`flatfile.html`: every interval and average as one row of words.

Knows the columns of the two layouts and what each says: 5.04.07 has longest response times and deviations
of reads and writes apart, and pads nothing. What is not known, or differs between workloads, is `n/a`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.vdbench.interval_lines import Layout
    from loadstone.report.vdbench.interval_totals import Counted, CpuUse, IntervalTotals

MAX_RATE: Final = 9_999_988.0
CURVE_RATE: Final = 9_999_977.0
"""What stands for a rate that was not asked for."""
_WIDTH: Final = 10
"""Of a column in 5.04.06."""
GIB: Final = float(1 << 30)
_COLUMNS: Final = (
    ("Run", "Name of run from RD="),
    ("Interval", "Reporting interval number"),
    ("reqrate", "Requested i/o rate"),
    ("rate", "Observed i/o rate"),
    ("MB/sec", "Megabytes per second (MB=1024*1024)"),
    ("bytes/io", "Average data transfersize"),
    ("read%", "Observed read percentage"),
    ("resp", "Observed response time"),
    ("read_resp", "Observed read response time"),
    ("write_resp", "Observed write response time"),
    ("resp_max", "Observed maximum response time"),
    ("read_max", "Observed maximum read response time"),
    ("write_max", "Observed maximum write response time"),
    ("resp_std", "Standard deviation response time"),
    ("read_std", "Standard deviation reads"),
    ("write_std", "Standard deviation writes"),
    ("xfersize", "data transfer size requested"),
    ("threads", "number of threads requested"),
    ("rdpct", "read% requested"),
    ("rhpct", "readhit% requested"),
    ("whpct", "writehit% requested"),
    ("seekpct", "seek% requested"),
    ("lunsize", "Total amount of Gigabytes of all luns (GB= 1024*1024*1024)"),
    ("version", "Version of the program that measured"),
    ("compratio", "Requested compression ratio"),
    ("dedupratio", "Requested dedup ratio"),
    ("queue_depth", "Calculated average i/o queue depth"),
    ("cpu_used", "cpu% user+sys"),
    ("cpu_user", "cpu% user"),
    ("cpu_kernel", "cpu% sys"),
    ("cpu_wait", "cpu% wait"),
    ("cpu_idle", "cpu% idle"),
)
_NEWER: Final = frozenset(("read_max", "write_max", "read_std", "write_std"))
"""Columns that 5.04.06 lacks."""
_ASKED: Final = ("threads", "rdpct", "rhpct", "whpct", "seekpct")


def header(layout: Layout) -> list[str]:
    """Return the comments and the line of names, which begins with a blank."""
    return head_of(layout, [column for column in _COLUMNS if _has(layout, column[0])])


def _has(layout: Layout, name: str) -> bool:
    return layout == "50407" or name not in _NEWER


def head_of(layout: Layout, columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the comments and the names of columns, given with their meanings."""
    comments = ["*", "* One row per reporting interval, and one per average.", "*"]
    comments += [f"* {name:<16}: {meaning}" for name, meaning in columns]
    comments += [f"* {chr(39) + 'n/a' + chr(39):<16}: not known, or different for several workloads", "* "]
    width = 0 if layout == "50407" else _WIDTH
    names = "".join(f"{name:>{width}} " for name, _ in columns)
    return [*comments, f"{'tod':>12} {'timestamp':>23} {names}"]


def row(
    layout: Layout,
    stamps: tuple[str, str],
    counted: Counted,
    name: str,
    tally: IntervalTotals,
    *,
    cpu: CpuUse | None,
) -> str:
    """Return one row. `stamps`: the time of day, and that with the date and zone."""
    both = tally.both
    values: dict[str, str | float | int | None] = {
        "Run": counted.facts["rd"],
        "Interval": name,
        "reqrate": asked_rate(counted),
        "rate": tally.rate,
        "MB/sec": tally.mib_per_s,
        "bytes/io": tally.bytes_per_io,
        "read%": tally.read_percent,
        "resp": both.response_ms,
        "read_resp": tally.reads.response_ms,
        "write_resp": tally.writes.response_ms,
        "resp_max": both.longest_ms,
        "read_max": tally.reads.longest_ms,
        "write_max": tally.writes.longest_ms,
        "resp_std": tally.deviation_ms,
        "read_std": tally.reads.deviation_ms,
        "write_std": tally.writes.deviation_ms,
        "xfersize": _whole(same(counted, "xfersize")),
        **{
            word: _whole(value) if word == "threads" else value
            for word in _ASKED
            for value in (same(counted, word),)
        },
        "lunsize": _lun_size(counted),
        "version": f"loadstone{__version__}",
        "compratio": number(counted.facts.get("compratio")),
        "dedupratio": number(counted.facts.get("dedupratio")),
        "queue_depth": tally.queue_depth,
    }
    shares = (None,) * 5 if cpu is None else (cpu.used, cpu.user, cpu.system, cpu.wait, cpu.idle)
    values |= zip(("cpu_used", "cpu_user", "cpu_kernel", "cpu_wait", "cpu_idle"), shares, strict=True)
    cells = (cell(layout, values[column]) for column, _ in _COLUMNS if _has(layout, column))
    return f"{stamps[0]:>12} {stamps[1]:>24}" + "".join(cells)


def cell(layout: Layout, value: str | float | None) -> str:
    """Write a value with a blank behind it; 5.04.07 leaves out what a number does not need."""
    text = "n/a" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
    if layout == "50407":
        if isinstance(value, float):
            text = text.rstrip("0").rstrip(".")
        return f"{text} "
    return f"{text:>{_WIDTH}} "


def asked_rate(counted: Counted) -> float | None:
    """Return the rate asked for, or what stands for none."""
    rate = counted.facts.get("fwdrate") or counted.facts["iorate"]
    return {"max": MAX_RATE, "curve": CURVE_RATE}.get(rate, number(rate))


def number(text: str | None) -> float | None:
    """Read a number, None where there is none."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def same(counted: Counted, word: str) -> float | None:
    """Return what all workloads asked for, None when they differ."""
    values = {job["own_options"].get(word) for job in counted.jobs}
    return number(values.pop()) if len(values) == 1 else None


def _lun_size(counted: Counted) -> float | None:
    """Return the gigabytes of all luns in use."""
    sizes: Sequence[int] = [target.size_bytes for target in counted.bundle.plan.targets]
    return sum(sizes) / GIB if sizes and all(sizes) else None
