"""`flatfile.html`: every interval and average as one row of words.

Knows the columns and what each says. What is not known, or differs between workloads, is `n/a`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.vdbench.tally import Counted, Cpu, Tally

MAX_RATE: Final = 9_999_988.0
CURVE_RATE: Final = 9_999_977.0
"""What stands for a rate that was not asked for."""
GIB: Final = float(1 << 30)
_COLUMNS: Final = (
    ("Run", "Name of run from RD="),
    ("Interval", "Reporting interval number"),
    ("reqrate", "Requested i/o rate"),
    ("rate", "Observed i/o rate"),
    ("MB/sec", "Megabytes per second (MB=1024*1024)"),
    ("bytes/io", "Average data transfersize"),
    ("read%", "Observed read percentage"),
    ("resp", "Observed response time, milliseconds"),
    ("read_resp", "Observed read response time"),
    ("write_resp", "Observed write response time"),
    ("resp_max", "Observed maximum response time"),
    ("resp_std", "Standard deviation"),
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
_ASKED: Final = ("threads", "rdpct", "rhpct", "whpct", "seekpct")


def header() -> list[str]:
    """Return the comments and the line of names, which begins with a blank."""
    return head_of(_COLUMNS)


def head_of(columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the comments and the names of columns, given with their meanings."""
    comments = ["*", "* One row per reporting interval, and one per average.", "*"]
    comments += [f"* {name:<16}: {meaning}" for name, meaning in columns]
    comments += [f"* {chr(39) + 'n/a' + chr(39):<16}: not known, or different for several workloads", "*"]
    return [*comments, f"{'tod':>12} {'timestamp':>23} " + "".join(f"{name:>10} " for name, _ in columns)]


def row(stamps: tuple[str, str], counted: Counted, name: str, tally: Tally, cpu: Cpu | None) -> str:
    """Return one row. `stamps`: the time of day, and that with the date and zone."""
    both = tally.both
    values: list[str | float | int | None] = [
        counted.facts["rd"],
        name,
        asked_rate(counted),
        tally.rate,
        tally.mib_per_s,
        tally.bytes_per_io,
        tally.read_percent,
        both.response_ms,
        tally.reads.response_ms,
        tally.writes.response_ms,
        both.max_ns / 1e6,
        tally.deviation_ms,
        _whole(same(counted, "xfersize")),
        *(
            _whole(value) if word == "threads" else value
            for word in _ASKED
            for value in (same(counted, word),)
        ),
        _lun_size(counted),
        f"loadstone{__version__}",
        number(counted.facts.get("compratio")),
        number(counted.facts.get("dedupratio")),
        tally.queue_depth,
        *((cpu.used, cpu.user, cpu.system, cpu.wait, cpu.idle) if cpu else [None] * 5),
    ]
    return f"{stamps[0]:>12} {stamps[1]:>24}" + "".join(cell(value) for value in values)


def cell(value: str | float | None) -> str:
    """Write a value with a blank behind it."""
    if value is None:
        return f"{'n/a':>10} "
    if isinstance(value, float):
        return f"{value:10.4f} "
    return f"{value:>10} "


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
    found = {job["own_options"].get(word) for job in counted.jobs}
    return number(found.pop()) if len(found) == 1 else None


def _lun_size(counted: Counted) -> float | None:
    """Return the gigabytes of all luns in use."""
    sizes: Sequence[int] = [target.size_bytes for target in counted.bundle.plan.targets]
    return sum(sizes) / GIB if sizes and all(sizes) else None
