"""fio's human output.

Knows fio's lines, their columns and when a line is left out. Deliberately knows no
bundle: it is given a `Report`. Disk lines are those of fio 3.42.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from loadstone.plan import io_priority
from loadstone.report.fio.document import mean_of, share_of_group
from loadstone.report.fio.number_text import both, scaled
from loadstone.report.fio.stats import (
    MS_LIMITS,
    NS_LIMITS,
    READ,
    US_LIMITS,
    Direction,
    DiskUse,
    Idleness,
    JobLine,
    LatencyGoal,
    Report,
    SteadyState,
    depth_shares,
    latency_shares,
    percentiles,
    printed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.latency import Latency

_LINE_WIDTH: Final = 73
_LEVELS: Final = ("1", "2", "4", "8", "16", "32", ">=64")
_BATCHES: Final = ("0", "4", "8", "16", "32", "64", ">=64")


def text(report: Report) -> str:
    """Everything fio prints after the run, from the blank line before the first job on."""
    parts = ["\n"]
    parts += [_job(line, report) for line in report.lines if line.ios or line.error]
    parts += [_group(report, group) for group in report.groups()]
    parts.append(disks(report.disks))
    if report.idleness is not None:
        parts.append("\n" + idleness(report.idleness))
    return "".join(parts)


def idleness(idle_times: Idleness) -> str:
    """Lay out how idle the CPUs were."""
    rows = ["CPU idleness:", f"  system: {idle_times.system:3.2f}%"]
    if idle_times.each is not None:
        rows.append("  percpu: " + ", ".join(f"{share:3.2f}%" for share in idle_times.each))
    return "".join(row + "\n" for row in rows) + unit_work(idle_times.unit_mean_us, idle_times.unit_stdev_us)


def unit_work(mean_us: float, stdev_us: float) -> str:
    """Lay out the time of a unit of work."""
    return f"  unit work: mean={mean_us:3.2f}us, stddev={stdev_us:3.2f}\n"


def _job(line: JobLine, report: Report) -> str:
    failed = f" ({line.error_text})" if line.error else ""
    when = time.ctime(report.unix_ms // 1000)
    rows = [
        f"{line.name}: (groupid={line.group}, jobs={line.members}): err={line.error:2d}{failed}:"
        f" pid={line.pid}: {when}"
    ]
    if line.description:
        rows.append(f"  Description  : [{line.description}]")
    for name, number, figures in line.shown():
        if figures.bytes:
            rows += _direction(name, number, figures, line, report)
    ns, us, ms = latency_shares(line)
    rows += _ranges("nsec", NS_LIMITS, ns)
    rows += _ranges("usec", US_LIMITS, us)
    rows += _ranges("msec", MS_LIMITS, ms)
    if line.sync.count:
        rows.append("  fsync/fdatasync/sync_file_range:")
        rows.append(_latency("sync", line.sync))
        rows += _percentiles("sync", line.sync, line)
    rows += _totals(line)
    return "\n".join(rows) + "\n"


def _totals(line: JobLine) -> list[str]:
    total = ",".join(str(d.ios) for d in line.directions)
    shorts = ",".join(str(d.shorts) for d in line.directions)
    rows = [
        f"  cpu          : usr={line.user_percent:3.2f}%, sys={line.system_percent:3.2f}%,"
        f" ctx={line.context_switches}, majf={line.major_faults}, minf={line.minor_faults}",
        "  IO depths    : " + _shares(_LEVELS, depth_shares(line.depth, sum(line.depth))),
        "     submit    : " + _shares(_BATCHES, depth_shares(line.submit, sum(line.submit))),
        "     complete  : " + _shares(_BATCHES, depth_shares(line.complete, sum(line.complete))),
        f"     issued rwts: total={total},{line.sync_ios} short={shorts},0 dropped=0,0,0,0",
    ]
    if line.continue_on_error:
        rows.append(
            f"     errors    : total={line.total_errors},"
            f" first_error={line.first_error}/<{_error_name(line.first_error)}>"
        )
    goal = line.latency_goal or LatencyGoal(0, 0, 100.0, line.iodepth)
    rows.append(
        f"     latency   : target={_time(goal.target_ns)}, window={_time(goal.window_ns)},"
        f" percentile={goal.percentile:.2f}%, depth={goal.depth}"
    )
    if line.steady is not None:
        rows.append(_steady(line.steady, line))
    return rows


def _time(value_ns: int) -> str:
    """Write a time in the unit fio 3.42 takes: at least 2 of it."""
    for unit, unit_ns in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value_ns >= 2 * unit_ns:
            return f"{value_ns / unit_ns:.2f}{unit}"
    return f"{value_ns:.2f}ns"


def _steady(state: SteadyState, line: JobLine) -> str:
    digits = line.significant_figures
    rate = mean_of(state.bytes_per_s) * (8 if line.bits else 1)
    bw, other_bw = both(rate, digits, unit=_rate_unit(line), binary_first=line.kb_base == 1024)
    iops = scaled(mean_of(state.iops), digits, binary=False)
    latency = f", lat={mean_of(state.lat_ns)}nsec" if state.metric == "lat" else ""
    measure = f"{state.metric} {'slope' if state.slope_wanted else 'mean dev'}"
    return (
        f"  steadystate  : attained={'yes' if state.attained else 'no'}, bw={bw} ({other_bw}), iops={iops}"
        f"{latency}, {measure}={state.criterion:.3f}{'%' if state.percent else ''}"
    )


def _error_name(number: int) -> str:
    import os  # noqa: PLC0415 (only on this rare line)

    return os.strerror(number) if number else "Success"


def _shares(names: Sequence[str], shares: Sequence[float]) -> str:
    return ", ".join(f"{n}={s:3.1f}%" for n, s in zip(names, shares, strict=True))


def _rate_unit(line: JobLine) -> str:
    return "bit/s" if line.bits else "B/s"


def _direction(name: str, number: int, figures: Direction, line: JobLine, report: Report) -> list[str]:
    if not figures.runtime_ms:
        return []
    binary = line.kb_base == 1024
    digits = line.significant_figures
    rate = figures.bytes_per_s * (8 if line.bits else 1)
    bw, other_bw = both(rate, digits, unit=_rate_unit(line), binary_first=binary)
    moved = scaled(figures.bytes, digits, binary=binary, unit="B")
    iops = scaled(1000 * figures.ios // figures.runtime_ms, digits, binary=False)
    after = "; 0 zone resets" if name == "write" else ""
    rows = [f"  {name}: IOPS={iops}, BW={bw} ({other_bw})({moved}/{figures.runtime_ms}msec){after}"]
    for label, latency in (("slat", figures.slat), ("clat", figures.clat), (" lat", figures.lat)):
        if latency.count:
            rows.append(_latency(label, latency))
    by_priority = [
        ("{} prio {}/{}/{}".format(line.shown_latency, *io_priority.parts(priority)), latency)
        for priority, latency in line.by_priority(figures)
    ]
    rows += [_latency(label, latency) for label, latency in by_priority]
    for label, latency, wanted in (
        ("slat", figures.slat, line.slat_percentiles),
        ("clat", figures.clat, line.clat_percentiles),
        ("lat", figures.lat, line.lat_percentiles),
    ):
        if wanted:
            rows += _percentiles(label, latency, line)
    if line.clat_percentiles or line.lat_percentiles:
        for label, latency in by_priority:
            share = 100.0 * (latency.count or 0) / getattr(figures, line.shown_latency).count
            rows += _percentiles(f"{label} ({share:.2f}% of IOs)", latency, line)
    group = report.group_lines(line.group)[READ if line.unified == "mixed" else number]
    return rows + _windows(figures, line, group.bytes_per_s if group else 0)


def _windows(figures: Direction, line: JobLine, group_bytes_per_s: int) -> list[str]:
    rows = []
    bw = figures.bandwidth
    if bw.samples:
        base = line.kb_base
        small, large = (
            (("Kibit", "Mibit") if base == 1024 else ("kbit", "Mibit"))
            if line.bits
            else (("KiB", "MiB") if base == 1024 else ("kB", "MiB"))
        )
        factor = 8.0 if line.bits else 1.0
        low, high, mean, deviation = (factor * v for v in (bw.min, bw.max, bw.mean, bw.stddev))
        unit = small
        if mean > base * base:
            low, high, mean, deviation = (v / base for v in (low, high, mean, deviation))
            unit = large
        share = share_of_group(bw, group_bytes_per_s)
        rows.append(
            f"   bw ({unit:>5}/s): min={int(low):5d}, max={int(high):5d}, per={share:3.2f}%,"
            f" avg={mean:5.2f}, stdev={deviation:5.2f}, samples={bw.samples}"
        )
    iops = figures.iops_windows
    if iops.samples:
        rows.append(
            f"   iops        : min={iops.min:5d}, max={iops.max:5d}, avg={iops.mean:5.2f},"
            f" stdev={iops.stddev:5.2f}, samples={iops.samples}"
        )
    return rows


def _latency(label: str, latency: Latency) -> str:
    low, high, mean, deviation = printed(latency)
    unit, divisor = "nsec", 1
    if low > 2_000_000 and high > 99_999_999 and deviation > 1_000_000.0:
        unit, divisor = "msec", 1_000_000
    elif low > 2000 and high > 99_999 and deviation > 1000.0:
        unit, divisor = "usec", 1000
    least, most = (scaled(v // divisor, 6, binary=False) for v in (low, high))
    return (
        f"    {label} ({unit}): min={least}, max={most}, avg={mean / divisor:5.2f},"
        f" stdev={deviation / divisor:5.2f}"
    )


def _percentiles(label: str, latency: Latency, line: JobLine) -> list[str]:
    points = percentiles(latency, line.percentiles)
    if not points:
        return []
    low, high = points[0][1], points[-1][1]
    unit, divisor = "nsec", 1
    if low > 2_000_000 and high > 99_999_999:
        unit, divisor = "msec", 1_000_000
    elif low > 2000 and high > 99_999:
        unit, divisor = "usec", 1000
    precision = 2
    width = max(5, int(math.log10(high // divisor) + 1) if high // divisor else 0)
    per_line = _LINE_WIDTH // (precision + 10 + width)
    cells = [f"{p:{precision + 3}.{precision}f}th=[{-(-value // divisor):{width}d}]" for p, value in points]
    rows = [cells[i : i + per_line] for i in range(0, len(cells), per_line)]
    body = ["     | " + ", ".join(row) for row in rows]
    return [f"    {label} percentiles ({unit}):", *(b + "," for b in body[:-1]), body[-1]]


def _ranges(unit: str, limits: Sequence[int], shares: Sequence[float]) -> list[str]:
    names = [f"{limit}=" for limit in limits]
    if len(shares) > len(names):
        names.append(f">={limits[-1]}=")
    cells = [f"{name}{share:3.2f}%" for name, share in zip(names, shares, strict=True) if share > 0]
    return [f"  lat ({unit})   : " + ", ".join(cells[i : i + 5]) for i in range(0, len(cells), 5)]


def _group(report: Report, group: int) -> str:
    rows = ["", f"Run status group {group} (all jobs):"]
    unified = report.unified_group(group)
    line = next(line for line in (*report.lines, *report.left_out) if line.group == group)
    names = ("  MIXED",) * 3 if unified == "mixed" else ("   READ", "  WRITE", "   TRIM")
    parts = list(zip(names, report.group_lines(group), strict=True))
    if unified == "both":
        parts.append(("  MIXED", report.group_total(group)))
    binary = line.kb_base == 1024
    factor = 8 if line.bits else 1
    for name, part in parts:
        if part is None:
            continue
        bws, other_bws = zip(
            *(
                both(rate * factor, line.significant_figures, unit=_rate_unit(line), binary_first=binary)
                for rate in (part.bytes_per_s, part.min_bytes_per_s, part.max_bytes_per_s)
            ),
            strict=True,
        )
        moved, moved_too = both(part.bytes, line.significant_figures, unit="B", binary_first=binary)
        rows.append(
            f"{name}: bw={bws[0]} ({other_bws[0]}), {bws[1]}-{bws[2]} ({other_bws[1]}-{other_bws[2]}),"
            f" io={moved} ({moved_too}), run={part.min_runtime_ms}-{part.max_runtime_ms}msec"
        )
    return "\n".join(rows) + "\n"


def disks(used: Sequence[DiskUse]) -> str:
    """Write the `Disk stats` block, empty when no block device was seen."""
    if not used:
        return ""
    rows = ["", "Disk stats (read/write):"]
    for disk in used:
        row = (
            f"{'  ' if disk.parts else ''}  {disk.name}: ios={disk.read_ios}/{disk.write_ios},"
            f" sectors={disk.read_sectors}/{disk.write_sectors},"
            f" merge={disk.read_merges}/{disk.write_merges},"
            f" ticks={disk.read_ticks_ms}/{disk.write_ticks_ms}, in_queue={disk.in_queue_ms},"
            f" util={disk.utilisation_percent:3.2f}%"
        )
        if disk.parts:
            row += _parts(disk.parts)
        rows.append(row)
    return "\n".join(rows) + "\n"


def _parts(parts: Sequence[DiskUse]) -> str:
    def mean(name: str) -> int:
        return sum(int(getattr(part, name)) for part in parts) // len(parts)

    return (
        f", aggrios={mean('read_ios')}/{mean('write_ios')},"
        f" aggsectors={mean('read_sectors')}/{mean('write_sectors')},"
        f" aggrmerge={mean('read_merges')}/{mean('write_merges')},"
        f" aggrticks={mean('read_ticks_ms')}/{mean('write_ticks_ms')},"
        f" aggrin_queue={mean('in_queue_ms')},"
        f" aggrutil={max(part.utilisation_percent for part in parts):3.2f}%"
    )
