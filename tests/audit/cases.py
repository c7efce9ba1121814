"""Cases as a watched run gives them: a load over time, and what the device beside it counted.

Made from a few numbers, so that each test can put one of them wrong. The comparison with the
device goes through the product's own `watched.traffic`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from loadstone.analysis.latency import Latency
from loadstone.audit import monitor_readings
from loadstone.audit.case import (
    Case,
    Figure,
    JobRequest,
    OpMeasurement,
    PayloadProperties,
    TargetState,
)
from loadstone.audit.rule import Clear, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.audit.case import Op
    from loadstone.audit.rule import Answer, Rule

SECOND_NS = 10**9
WINDOW_NS = SECOND_NS // 10
DEVICE = "block.loop0"
MIB = 1 << 20


def job(**changed: Any) -> JobRequest:
    told: dict[str, Any] = {
        "job": "job",
        "clones": 1,
        "iodepth": 1,
        "read_percent": 100.0,
        "random_percent": 100.0,
        "block_bytes": {4096: 1.0},
        "read_block_bytes": {4096: 1.0},
        "direct": True,
        "synchronous": False,
        "end_fsync": False,
        "flushes": False,
        "backend": "io_uring",
        "paced": False,
        "polls": False,
        "ramp_s": 0.0,
    }
    return JobRequest(**told | changed)


def writer(**changed: Any) -> JobRequest:
    told: dict[str, Any] = {
        "read_percent": 0.0,
        "read_block_bytes": {},
        "write_block_bytes": {4096: 1.0},
        "payload": PayloadProperties("random", repeats=False),
    }
    return job(**told | changed)


def disk(**changed: Any) -> TargetState:
    told: dict[str, Any] = {
        "path": "/dev/loop0",
        "size_bytes": 128 * MIB,
        "kind": "block",
        "unwritten_bytes_before": 0,
        "carriers": (DEVICE,),
        "rotational": False,
    }
    return TargetState(**told | changed)


def file(**changed: Any) -> TargetState:
    told: dict[str, Any] = {
        "path": "/mnt/data",
        "kind": "file",
        "file_system": "ext4",
        "allocated_bytes_before": 128 * MIB,
        "allocated_bytes_after": 128 * MIB,
        "unwritten_bytes_after": 0,
    }
    return disk(**told | changed)


def run(
    iops: float | Sequence[float] = 1000.0,
    *,
    seconds: float = 10.0,
    op: Op = "read",
    jobs: tuple[JobRequest, ...] | None = None,
    targets: tuple[TargetState, ...] | None = None,
    block: int = 4096,
    mean_ns: float | None = None,
    min_ns: float | None = None,
    device_bytes: float = 1.0,
    device_ios: float = 1.0,
    device_ns: float | None = None,
    extra: Mapping[str, float | Sequence[float]] | None = None,
    **changed: Any,
) -> Case:
    """A run of one operation. `iops`: one number, or one for each tenth of a second.

    `device_bytes` and `device_ios` are what the device moved for each byte and I/O of the job;
    `extra` are more columns of the host table, per second. `mean_ns` keeps the depth unless told.
    """
    asked = jobs if jobs is not None else ((job() if op == "read" else writer()),)
    count = round(seconds * SECOND_NS / WINDOW_NS)
    done = [iops / 10] * count if isinstance(iops, int | float) else [one / 10 for one in iops]
    length_s = len(done) / 10
    depth = sum((one.iodepth or 1) * (one.clones or 1) for one in asked)
    latency_ns = mean_ns if mean_ns is not None else depth * 1e9 * length_s / sum(done)
    series = _series(done, op, block)
    host = _host(done, op, block, device_bytes, device_ios, device_ns or latency_ns * 0.95, extra or {})
    used = targets if targets is not None else (disk(),)
    measured = _measured(done, block, latency_ns, min_ns if min_ns is not None else latency_ns * 0.8)
    told: dict[str, Any] = {
        "name": "run",
        "source": "bundle",
        "jobs": asked,
        "total": measured,
        "ops": {op: measured},
        "by_job": {asked[0].job: {op: measured}} if len(asked) == 1 else {},
        "seconds": length_s,
        "targets": used,
        "series": series,
        "host": host,
        "traffic": monitor_readings.traffic(host, series, used, (0, round(length_s * SECOND_NS))),
        "environment": {},
        "problems": (),
        "generator_cpu_percent": 20.0,
        "host_cpu_percent": 30.0,
        "host_cpus": 2,
    }
    return Case(**told | changed)


def _series(done: list[float], op: str, block: int) -> pl.DataFrame:
    """What was done in each tenth of a second."""
    return pl.DataFrame(
        {
            "op": [op] * len(done),
            "start_ns": [at * WINDOW_NS for at in range(len(done))],
            "end_ns": [(at + 1) * WINDOW_NS for at in range(len(done))],
            "seconds": [0.1] * len(done),
            "ops": done,
            "bytes": [one * block for one in done],
            "errors": [0] * len(done),
        }
    )


def _measured(done: list[float], block: int, mean_ns: float, min_ns: float) -> OpMeasurement:
    total = sum(done)
    rate = total / (len(done) / 10)
    return OpMeasurement(
        operations=round(total),
        bytes=round(total * block),
        errors=0,
        iops=Figure(rate, rate * 0.005),
        bandwidth=Figure(rate * block),
        latencies={"lat": Latency(round(total), mean_ns, min_ns=min_ns)},
    )


def _host(
    done: list[float],
    op: str,
    block: int,
    device_bytes: float,
    device_ios: float,
    device_ns: float,
    extra: Mapping[str, float | Sequence[float]],
) -> pl.DataFrame:
    rows = [sum(done[at : at + 10]) for at in range(0, len(done), 10)]
    lengths = [len(done[at : at + 10]) * WINDOW_NS for at in range(0, len(done), 10)]
    columns: dict[str, list[float]] = {
        "t_ns": [sum(lengths[: at + 1]) for at in range(len(rows))],
        "dt_ns": list(lengths),
    }
    for name in ("read", "write", "trim"):
        mine = name == op
        columns |= {
            f"{DEVICE}.{name}s": [one * device_ios * mine for one in rows],
            f"{DEVICE}.{name}_bytes": [one * block * device_bytes * mine for one in rows],
            f"{DEVICE}.{name}_merges": [0] * len(rows),
            f"{DEVICE}.{name}_time_ns": [one * device_ns * mine for one in rows],
        }
    columns[f"{DEVICE}.flushes"] = [0] * len(rows)
    for name, value in extra.items():
        columns[name] = [value] * len(rows) if isinstance(value, int | float) else list(value)
    return pl.DataFrame(columns, strict=False)


def one(rule: Rule, case: Case) -> Finding:
    """The only finding of a rule."""
    answer = rule.judge(case)
    assert isinstance(answer, tuple), answer
    assert len(answer) == 1, answer
    return answer[0]


def is_clear(answer: Answer) -> bool:
    return isinstance(answer, Clear)
