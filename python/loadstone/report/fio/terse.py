"""fio's terse (`--minimal`) output, versions 2 to 5.

Knows the order of its semicolon-separated fields; latencies are in microseconds there.
Deliberately knows no bundle: it is given a `Report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.report.fio.stats import (
    READ,
    Direction,
    DiskUse,
    JobLine,
    Report,
    depth_shares,
    latency_shares,
    percentiles,
    printed,
)
from loadstone.version import FIO_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.latency import Latency

_PERCENTILE_FIELDS: Final = 20


def lines(report: Report, version: int) -> list[str]:
    """One line per job, without line ends. A version 2 description is on a line of its own."""
    return [_line(line, report, version) for line in report.lines]


def _line(line: JobLine, report: Report, version: int) -> str:
    head = ["2"] if version == 2 else [str(version), FIO_VERSION]
    fields = [*head, line.name, str(line.group), str(line.error)]
    for name, number, figures in line.shown():
        if name != "trim" or version != 3:
            fields += _direction(line, figures, _group_rate(line, report, number), version)
    fields += [
        f"{line.user_percent:f}%",
        f"{line.system_percent:f}%",
        str(line.context_switches),
        str(line.major_faults),
        str(line.minor_faults),
    ]
    fields += [f"{share:3.1f}%" for share in depth_shares(line.depth, sum(line.depth))]
    ns, us, ms = latency_shares(line)
    us[0] += sum(ns)
    fields += [f"{share:3.2f}%" for share in (*us, *ms)]
    if version >= 3:
        for disk in report.disks:
            fields += _disk(disk)
    if line.continue_on_error:
        fields += [str(line.total_errors), str(line.first_error)]
    text = ";".join(fields)
    if line.description:
        text += ("\n" if version == 2 else "") + ";" + line.description
    return text


def _group_rate(line: JobLine, report: Report, number: int) -> int:
    group = report.group_lines(line.group)[READ if line.unified == "mixed" else number]
    return group.bytes_per_s if group else 0


def _direction(line: JobLine, figures: Direction, group_bytes_per_s: int, version: int) -> list[str]:
    iops = 1000 * figures.ios // figures.runtime_ms if figures.runtime_ms else 0
    fields = [
        str(figures.bytes >> 10),
        str(figures.bytes_per_s // 1024),
        str(iops),
        str(figures.runtime_ms),
        *_latency(figures.slat),
        *_latency(figures.clat),
        *_percentiles(line, figures),
        *_latency(figures.lat),
    ]
    bw = figures.bandwidth
    share = 0.0
    if bw.samples:
        share = (
            min(100.0, bw.mean * 100 / (group_bytes_per_s // 1024)) if group_bytes_per_s >= 1024 else 100.0
        )
    fields += [str(bw.min), str(bw.max), f"{share:f}%", f"{bw.mean:f}", f"{bw.stddev:f}"]
    if version == 5:
        iops_windows = figures.iops_windows
        fields += [
            str(bw.samples),
            str(iops_windows.min),
            str(iops_windows.max),
            f"{iops_windows.mean:f}",
            f"{iops_windows.stddev:f}",
            str(iops_windows.samples),
        ]
    return fields


def _latency(latency: Latency) -> list[str]:
    low, high, mean, deviation = printed(latency)
    return [str(low // 1000), str(high // 1000), f"{mean / 1000:f}", f"{deviation / 1000:f}"]


def _percentiles(line: JobLine, figures: Direction) -> list[str]:
    wanted: Sequence[float] = sorted(line.percentiles)[:_PERCENTILE_FIELDS]
    if line.lat_percentiles:
        values = dict(percentiles(figures.lat, wanted))
    elif line.clat_percentiles:
        values = dict(percentiles(figures.clat, wanted))
    else:
        wanted, values = (), {}
    fields = [f"{p:f}%={values.get(p, 0) // 1000}" for p in wanted]
    return fields + ["0%=0"] * (_PERCENTILE_FIELDS - len(fields))


def _disk(disk: DiskUse) -> list[str]:
    fields = [disk.name, *_disk_figures([disk]), f"{disk.utilisation_percent:3.2f}%"]
    if disk.parts:
        busiest = max(part.utilisation_percent for part in disk.parts)
        fields += ["slaves", *_disk_figures(disk.parts), f"{busiest:3.2f}%"]
    return fields


def _disk_figures(disks: Sequence[DiskUse]) -> list[str]:
    """Means over the disks, rounded down."""
    figures = zip(
        *(
            (
                disk.read_ios,
                disk.write_ios,
                disk.read_merges,
                disk.write_merges,
                disk.read_ticks_ms,
                disk.write_ticks_ms,
                disk.in_queue_ms,
            )
            for disk in disks
        ),
        strict=True,
    )
    return [str(sum(figure) // len(disks)) for figure in figures]
