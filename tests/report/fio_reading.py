"""Reads a JSON+ document that real fio wrote back into a `Report`.

So the writers are held against fio itself: the same figures must give the same text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loadstone.analysis.histogram import Histogram
from loadstone.analysis.latency import NO_IO, Latency, counted
from loadstone.report.fio.stats import Direction, DiskUse, JobLine, RateWindows, Report


def bucket_of(value_ns: int) -> int:
    """The bucket a bin's key stands for."""
    bits = max(value_ns.bit_length(), 7)
    shift = bits - 7
    return (shift << 6) + (value_ns >> shift)


def latency(doc: dict[str, Any]) -> Latency:
    bins = doc.get("bins", {})
    n, mean, deviation = doc["N"], doc["mean"], doc["stddev"]
    return counted(
        n,
        mean * n,
        deviation**2 * (n - 1) + mean * mean * n if n else 0.0,
        doc["min"],
        doc["max"],
        histogram=Histogram.of(
            np.array([bucket_of(int(key)) for key in bins], np.int64), np.array(list(bins.values()), np.int64)
        ),
    )


def direction(doc: dict[str, Any]) -> Direction:
    return Direction(
        bytes=doc["io_bytes"],
        ios=doc["total_ios"],
        shorts=doc["short_ios"],
        runtime_ms=doc["runtime"],
        slat=latency(doc["slat_ns"]),
        clat=latency(doc["clat_ns"]),
        lat=latency(doc["lat_ns"]),
        bandwidth=RateWindows(doc["bw_samples"], doc["bw_min"], doc["bw_max"], doc["bw_mean"], doc["bw_dev"]),
        iops_windows=RateWindows(
            doc["iops_samples"], doc["iops_min"], doc["iops_max"], doc["iops_mean"], doc["iops_stddev"]
        ),
    )


def _shares(doc: dict[str, float]) -> list[int]:
    return [round(share * 1000) for share in doc.values()]


def line(doc: dict[str, Any], number: int) -> JobLine:
    options = doc.get("job options", {})
    runtime_ms = doc["job_runtime"]
    mixed = "mixed" in doc and "read" not in doc
    directions = [direction(doc[name]) if name in doc else Direction() for name in ("read", "write", "trim")]
    if mixed:
        directions[0] = direction(doc["mixed"])
    return JobLine(
        name=doc["jobname"],
        group=doc["groupid"],
        members=int(options.get("numjobs", 1)) if "group_reporting" in options else 1,
        number=number,
        error=doc["error"],
        continue_on_error="total_err" in doc,
        total_errors=doc.get("total_err", 0),
        first_error=doc.get("first_error", 0),
        description=doc.get("desc", ""),
        options=options,
        unified="mixed" if mixed else "both" if "mixed" in doc else "none",
        slat_percentiles=options.get("slat_percentiles") == "1",
        lat_percentiles=options.get("lat_percentiles") == "1",
        clat_percentiles=options.get("clat_percentiles") != "0",
        iodepth=doc["latency_depth"],
        directions=directions,
        sync_ios=doc["sync"]["total_ios"] if "sync" in doc else 0,
        sync=latency(doc["sync"]["lat_ns"]) if "sync" in doc else NO_IO,
        runtime_ms=runtime_ms,
        user_ns=doc["usr_cpu"] * runtime_ms * 1e4,
        system_ns=doc["sys_cpu"] * runtime_ms * 1e4,
        context_switches=doc["ctx"],
        major_faults=doc["majf"],
        minor_faults=doc["minf"],
        depth=_shares(doc["iodepth_level"]),
        submit=_shares(doc["iodepth_submit"]),
        complete=_shares(doc["iodepth_complete"]),
    )


def report(doc: dict[str, Any]) -> Report:
    disks = [
        DiskUse(
            d["name"],
            d["read_ios"],
            d["write_ios"],
            d["read_merges"],
            d["write_merges"],
            d.get("read_sectors", 0),
            d.get("write_sectors", 0),
            d["read_ticks"],
            d["write_ticks"],
            d["in_queue"],
            round(d["util"] * 1000),
            100_000,
        )
        for d in doc.get("disk_util", [])
    ]
    return Report(
        lines=[line(job, i + 1) for i, job in enumerate(doc["jobs"])],
        global_options=doc.get("global options", {}),
        disks=disks,
        unix_ms=doc["timestamp_ms"],
        elapsed_s=doc["jobs"][0]["elapsed"],
    )
