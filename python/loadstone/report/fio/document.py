"""fio's JSON and JSON+ documents.

Knows the keys of fio 3.42's `--output-format=json` and their order, and how fio lays the
text out. Deliberately knows no bundle: it is given a `Report`. Two keys are Loadstone's
own and stand last, so that a reader of fio's keys is not disturbed: `loadstone version`
and `loadstone notes`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from loadstone.plan import io_priority
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
    RateWindows,
    Report,
    SteadyState,
    depth_shares,
    latency_shares,
    printed,
)
from loadstone.report.fio.stats import percentiles as fio_percentiles
from loadstone.version import FIO_VERSION, __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.analysis.latency import Latency

_LEVELS: Final = ("1", "2", "4", "8", "16", "32", ">=64")
_BATCHES: Final = ("0", "4", "8", "16", "32", "64", ">=64")


def document(report: Report, *, plus: bool) -> dict[str, Any]:
    """Give the document as a dict in fio's key order; with `plus`, histogram bins as well."""
    seconds, milliseconds = divmod(report.unix_ms, 1000)
    root: dict[str, Any] = {
        "fio version": FIO_VERSION,
        "timestamp": seconds,
        "timestamp_ms": seconds * 1000 + milliseconds,
        "time": time.ctime(seconds),
    }
    if report.global_options:
        root["global options"] = dict(report.global_options)
    root["jobs"] = [_job(line, report, plus=plus) for line in report.lines]
    if report.disks:
        root["disk_util"] = [_disk(disk) for disk in report.disks]
    if report.idleness is not None:
        root["cpu_idleness"] = _idleness(report.idleness)
    root["loadstone version"] = __version__
    if report.notes:
        root["loadstone notes"] = list(report.notes)
    return root


def _idleness(idleness: Idleness) -> dict[str, float]:
    each = {f"cpu-{number}": share for number, share in enumerate(idleness.each or ())}
    return {
        "system": idleness.system,
        **each,
        "unit_mean": idleness.unit_mean_us,
        "unit_stddev": idleness.unit_stdev_us,
    }


def text(root: Mapping[str, Any]) -> str:
    """Lay the document out as fio prints it: two blanks per level, ` : `, floats with six decimals."""
    return _value(root, 0) + "\n"


def _job(line: JobLine, report: Report, *, plus: bool) -> dict[str, Any]:
    job: dict[str, Any] = {
        "jobname": line.name,
        "groupid": line.group,
        "job_start": line.start_unix_ms,
        "error": line.error,
        "eta": report.eta_s,
        "elapsed": report.elapsed_s,
    }
    if line.options:
        job["job options"] = dict(line.options)
    shown = line.shown()
    for name, number, direction in shown if line.unified != "both" else shown[:3]:
        job[name] = _direction(line, report, number, direction, plus=plus)
    if line.unified != "mixed":  # fio leaves it out then
        percentiles = line.clat_percentiles or line.lat_percentiles
        job["sync"] = {
            "total_ios": line.sync_ios,
            "lat_ns": _latency(line, line.sync, percentiles, plus=plus),
        }
    if line.unified == "both":
        name, number, direction = shown[3]
        job[name] = _direction(line, report, number, direction, plus=plus)
    job.update(
        job_runtime=line.runtime_ms,
        usr_cpu=line.user_percent,
        sys_cpu=line.system_percent,
        ctx=line.context_switches,
        majf=line.major_faults,
        minf=line.minor_faults,
        iodepth_level=dict(zip(_LEVELS, depth_shares(line.depth, sum(line.depth)), strict=True)),
        iodepth_submit=dict(zip(_BATCHES, depth_shares(line.submit, sum(line.submit)), strict=True)),
        iodepth_complete=dict(zip(_BATCHES, depth_shares(line.complete, sum(line.complete)), strict=True)),
    )
    ns, us, ms = latency_shares(line)
    job["latency_ns"] = dict(zip(map(str, NS_LIMITS), ns, strict=True))
    job["latency_us"] = dict(zip(map(str, US_LIMITS), us, strict=True))
    job["latency_ms"] = dict(zip([*map(str, MS_LIMITS), ">=2000"], ms, strict=True))
    if line.continue_on_error:
        job.update(total_err=line.total_errors, first_error=line.first_error)
    job.update(_latency_goal(line))
    if line.description:
        job["desc"] = line.description
    if line.steady is not None:
        job["steadystate"] = _steady(line.steady)
    return job


def _latency_goal(line: JobLine) -> dict[str, Any]:
    goal = line.latency_goal or LatencyGoal(0, 0, 100.0, line.iodepth)
    return {
        "latency_depth": goal.depth,
        "latency_target": goal.target_ns,
        "latency_target_ns": goal.target_ns,
        "latency_percentile": goal.percentile,
        "latency_window": goal.window_ns // 1000,
        "latency_window_us": goal.window_ns // 1000,
    }


def _steady(state: SteadyState) -> dict[str, Any]:
    data: dict[str, Any] = {
        "bw_mean": mean_of(state.bytes_per_s),
        "iops_mean": mean_of(state.iops),
    }
    if state.metric == "lat":
        data["lat_mean"] = mean_of(state.lat_ns)
    data |= {"iops": list(state.iops), "bw": list(state.bytes_per_s)}
    if state.metric == "lat":
        data["lat"] = list(state.lat_ns)
    return {
        "ss": state.rule,
        "duration": state.duration_s,
        "attained": int(state.attained),
        "criterion": f"{state.criterion:f}{'%' if state.percent else ''}",
        "max_deviation": state.deviation,
        "slope": state.slope,
        "data": data,
    }


def mean_of(samples: Sequence[int]) -> int:
    """Whole mean of samples, 0 of none, as fio."""
    return sum(samples) // len(samples) if samples else 0


def _direction(
    line: JobLine, report: Report, number: int, figures: Direction, *, plus: bool
) -> dict[str, Any]:
    group = report.group_lines(line.group)[number if line.unified != "mixed" else READ]
    rate = figures.bytes_per_s
    return {
        "io_bytes": figures.bytes,
        "io_kbytes": figures.bytes >> 10,
        "bw_bytes": rate,
        "bw": rate // 1024,
        "iops": figures.iops,
        "runtime": figures.runtime_ms,
        "total_ios": figures.ios,
        "short_ios": figures.shorts,
        "drop_ios": 0,
        "slat_ns": _latency(line, figures.slat, line.slat_percentiles, plus=plus),
        "clat_ns": _latency(line, figures.clat, line.clat_percentiles, plus=plus),
        "lat_ns": _latency(line, figures.lat, line.lat_percentiles, plus=plus),
        **_priorities(line, figures, plus=plus),
        **_bandwidth(figures.bandwidth, group.bytes_per_s if group else 0),
        "iops_min": figures.iops_windows.min,
        "iops_max": figures.iops_windows.max,
        "iops_mean": figures.iops_windows.mean,
        "iops_stddev": figures.iops_windows.stddev,
        "iops_samples": figures.iops_windows.samples,
    }


def _priorities(line: JobLine, figures: Direction, *, plus: bool) -> dict[str, Any]:
    latencies = line.by_priority(figures)
    percentiles = line.clat_percentiles or line.lat_percentiles
    entries = []
    for priority, latency in latencies:
        class_, level, hint = io_priority.parts(priority)
        entries.append(
            {
                "prioclass": class_,
                "prio": level,
                "priohint": hint,
                line.shown_latency + "_ns": _latency(line, latency, percentiles, plus=plus),
            }
        )
    return {"prios": entries} if entries else {}


def share_of_group(windows: RateWindows, group_bytes_per_s: int) -> float:
    """Mean bandwidth in percent of the group's, at most 100; 100 for a group under 1 KiB/s."""
    if not windows.samples:
        return 0.0
    if group_bytes_per_s <= 1024:
        return 100.0
    return min(100.0, windows.mean * 100.0 / (group_bytes_per_s / 1024.0))


def _bandwidth(windows: RateWindows, group_bytes_per_s: int) -> dict[str, Any]:
    return {
        "bw_min": windows.min,
        "bw_max": windows.max,
        "bw_agg": share_of_group(windows, group_bytes_per_s),
        "bw_mean": windows.mean,
        "bw_dev": windows.stddev,
        "bw_samples": windows.samples,
    }


def _latency(line: JobLine, latency: Latency, percentiles: bool, *, plus: bool) -> dict[str, Any]:
    low, high, mean, deviation = printed(latency)
    figures: dict[str, Any] = {
        "min": low,
        "max": high,
        "mean": mean,
        "stddev": deviation,
        "N": latency.count,
    }
    if percentiles and latency.count:
        figures["percentile"] = {f"{p:f}": value for p, value in fio_percentiles(latency, line.percentiles)}
        if plus:
            figures["bins"] = {str(value_ns): count for value_ns, count in latency.histogram.bins()}
    return figures


def _disk(disk: DiskUse) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": disk.name,
        "read_ios": disk.read_ios,
        "write_ios": disk.write_ios,
        "read_sectors": disk.read_sectors,
        "write_sectors": disk.write_sectors,
        "read_merges": disk.read_merges,
        "write_merges": disk.write_merges,
        "read_ticks": disk.read_ticks_ms,
        "write_ticks": disk.write_ticks_ms,
        "in_queue": disk.in_queue_ms,
        "util": disk.utilisation_percent,
    }
    if disk.parts:
        entry.update(
            aggr_read_ios=_mean(disk.parts, "read_ios"),
            aggr_write_ios=_mean(disk.parts, "write_ios"),
            aggr_read_sectors=_mean(disk.parts, "read_sectors"),
            aggr_write_sectors=_mean(disk.parts, "write_sectors"),
            aggr_read_merges=_mean(disk.parts, "read_merges"),
            aggr_write_merge=_mean(disk.parts, "write_merges"),  # fio's own spelling of the key
            aggr_read_ticks=_mean(disk.parts, "read_ticks_ms"),
            aggr_write_ticks=_mean(disk.parts, "write_ticks_ms"),
            aggr_in_queue=_mean(disk.parts, "in_queue_ms"),
            aggr_util=max(part.utilisation_percent for part in disk.parts),
        )
    return entry


def _mean(parts: Sequence[DiskUse], name: str) -> int:
    return sum(int(getattr(part, name)) for part in parts) // len(parts)


def _value(value: object, level: int) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        return f"{value:f}"
    if isinstance(value, dict):
        rows = [f"{json.dumps(str(k))} : {_value(v, level + 1)}" for k, v in value.items()]
        return _block("{", rows, "}", level)
    if isinstance(value, list | tuple):
        return _block("[", [_value(v, level + 1) for v in value], "]", level)
    return json.dumps(value)


def _block(opening: str, rows: list[str], closing: str, level: int) -> str:
    inner = "  " * (level + 1)
    body = ",\n".join(inner + row for row in rows)
    return f"{opening}\n{body}\n{'  ' * level}{closing}"
