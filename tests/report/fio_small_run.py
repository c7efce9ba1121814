"""A small run made by hand: two clones of a mixed job for two seconds, then a writer.

Every latency is chosen, so every figure in the outputs can be worked out on paper.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from loadstone.bundle import layout
from loadstone.formats.fio import TextSource, read_jobfiles
from loadstone.plan.model import Plan
from loadstone.report.fio.collect import Source
from tests.support import plans

JOB = """
[global]
bs=4k
iodepth=4
ioengine=libaio
[mix]
rw=randrw
numjobs=2
runtime=2
time_based
log_avg_msec=1000
write_bw_log=mix
write_lat_log=mix
[after]
stonewall
rw=write
write_iops_log=after
log_offset=1
description=the second
"""
START_UNIX_NS = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def bucket_of(value_ns: int) -> int:
    bits = max(value_ns.bit_length(), 7)
    return ((bits - 7) << 6) + (value_ns >> (bits - 7))


def latency_columns(kind: str, values_ns: list[int]) -> dict[str, Any]:
    counts: dict[int, int] = {}
    for value in values_ns:
        counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
    return {
        f"{kind}_sum_ns": float(sum(values_ns)),
        f"{kind}_sumsq_ns2": float(sum(v * v for v in values_ns)),
        f"{kind}_min_ns": min(values_ns, default=0),
        f"{kind}_max_ns": max(values_ns, default=0),
        f"{kind}_bucket": sorted(counts),
        f"{kind}_count": [counts[b] for b in sorted(counts)],
    }


def row(
    interval: int,
    cell: int,
    op: int,
    stage: int,
    slat_ns: list[int],
    clat_ns: list[int],
    priority: int = 0,
) -> dict[str, Any]:
    """One row of samples: I/Os of 4 KiB with these latencies, in a one-second interval."""
    return {
        "interval": interval,
        "start_ns": interval * SECOND,
        "end_ns": (interval + 1) * SECOND,
        "stage": stage,
        "cell": cell,
        "op": op,
        "priority": priority,
        "ramp": False,
        "ops": len(clat_ns),
        "bytes": 4096 * len(clat_ns),
        "errors": 0,
        "shorts": 0,
        **latency_columns("lat", [s + c for s, c in zip(slat_ns, clat_ns, strict=True)]),
        **latency_columns("slat", slat_ns),
        **latency_columns("clat", clat_ns),
        **latency_columns("wait", []),
    }


def samples() -> pl.DataFrame:
    rows = []
    for interval in (0, 1):
        for cell in (0, 1):
            # 100 reads a second of 10 us to 1 ms, 50 writes of 2 ms
            rows.append(row(interval, cell, 0, 0, [1000] * 100, [10_000 * (i + 1) for i in range(100)]))
            rows.append(row(interval, cell, 1, 0, [3000] * 50, [2_000_000] * 50))
    rows.append(row(2, 2, 1, 1, [2000] * 4, [50_000] * 4))
    return frame(rows)


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=layout.SAMPLES)


def ios() -> pl.LazyFrame:
    """The writer's four I/Os, one every 100 ms."""
    rows = [
        {
            "t_ns": 2 * SECOND + (i + 1) * 100_000_000,
            "stream": 2,
            "target": 1,
            "op": 1,
            "priority": 0,
            "offset": 4096 * i,
            "bytes": 4096,
            "wait_ns": 0,
            "slat_ns": 2000,
            "clat_ns": 50_000,
            "lat_ns": 52_000,
            "error": 0,
            "ramp": False,
        }
        for i in range(4)
    ]
    return pl.DataFrame(rows, schema=layout.IOS).lazy()


def events() -> list[dict[str, Any]]:
    def end(stream: int, started_s: float, ended_s: float, issued: list[int]) -> dict[str, Any]:
        return {
            "type": "stream_end",
            "t_ns": int(ended_s * SECOND),
            "stream": stream,
            "reason": "runtime",
            "started_ns": int(started_s * SECOND),
            "ramp_end_ns": int(started_s * SECOND),
            "ended_ns": int(ended_s * SECOND),
            "issued": issued,
            "completed": issued,
            "failed": [0, 0, 0, 0],
            "depth": [1, 1, 298, 0, 0, 0, 0] if stream < 2 else [4, 0, 0, 0, 0, 0, 0],
            "submit_batches": [0, 10, 0, 0, 0, 0, 0],
            "complete_batches": [5, 5, 0, 0, 0, 0, 0],
            "backend": "io_uring",
        }

    return [
        {"type": "hello", "engine_version": "0", "pid": 4711},
        {"type": "start", "unix_ns": START_UNIX_NS, "startup_ns": 1},
        end(0, 0, 2, [200, 100, 0, 0]),
        end(1, 0, 2, [200, 100, 0, 0]),
        end(2, 2, 3, [0, 4, 0, 0]),
        {
            "type": "end",
            "t_ns": 3 * SECOND,
            "reason": "done",
            "cpu_user_ns": 604_000_000,
            "cpu_system_ns": 302_000_000,
            "voluntary_switches": 604,
            "involuntary_switches": 0,
            "major_faults": 0,
            "minor_faults": 604,
        },
    ]


def _stream(index: int, name: str) -> dict[str, Any]:
    mixed = index < 2
    return plans.stream(
        name=name,
        worker=0 if mixed else 1,
        files=[{"target": int(not mixed), "cell": index, "offset_bytes": 0, "length_bytes": 1 << 20}],
        seed=7 + index,
        iodepth=4,
        read_percent=50 if mixed else 0,
        random_percent=100 if mixed else 0,
        runtime_ns=2 * SECOND if mixed else 0,
        time_based=mixed,
        bytes=0 if mixed else 16384,
        log_ios=not mixed,
    )


def plan() -> Plan:
    document = plans.plan(
        [plans.target(path, create=True) for path in ("mix.0.0", "after.0.0")],
        [_stream(0, "mix.0"), _stream(1, "mix.1"), _stream(2, "after.0")],
        [plans.worker(stage=stage) for stage in (0, 1)],
        interval_ns=SECOND,
        units=[
            {"name": "mix", "group": 0, "clone": 0},
            {"name": "mix", "group": 0, "clone": 1},
            {"name": "after", "group": 1, "clone": 0},
        ],
        cells=[{"unit": 0, "target": 0}, {"unit": 1, "target": 0}, {"unit": 2, "target": 1}],
    )
    return Plan.model_validate_json(json.dumps(document))


def source(job: str = JOB) -> Source:
    workload = read_jobfiles([TextSource(job, "job.fio")])
    return Source(plan(), workload, samples(), events(), notes=["libaio runs on io_uring"])
