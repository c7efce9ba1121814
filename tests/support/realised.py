"""What a Workload really does, I/O by I/O, on a simulated device.

Every job runs on a device of one service time and on a virtual clock, so a rate is kept
exactly and a day takes a second. Knows how a Plan is put on that device, and gives back the
engine's log of every I/O. Judges nothing but shares, by chi-square.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import scipy
from lab.steady_device import steady_device

from loadstone.bundle.read import Bundle
from loadstone.workload.placement import Amount
from tests.support import simulated

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.workload.model import Job, Workload

SERVICE_NS = 20_000
BLOCK_BYTES = 4096
P_VALUE = 1e-4
"""Chance of calling a good mix wrong; seeds are fixed, so it is drawn once."""


def realised(
    workload: Workload, directory: Path, *, size: Amount, ops: int = 20_000, seconds: float = 0.0
) -> pl.DataFrame:
    """Run a Workload for so many I/Os of each job, or so long; one row per I/O, in order.

    Columns of `layout.IOS`, with `job` (its name) and `start_ns` (when the I/O was due).
    """
    jobs = tuple(
        simulated.on_the_device(job, 0).changed(
            {
                **_range(job, size.bytes or 0),
                "recording.every_io": True,
                "limits.runtime_ns": round(seconds * 1e9) or None,
                "limits.time_based": bool(seconds) or None,
                "limits.ramp_ns": None,
                "limits.number_ios": None if seconds else ops,
                "limits.io_size": None
                if seconds
                else size.model_copy(update={"bytes": 1 << 50, "percent": None}),
            }
        )
        for job in workload.jobs
    )
    changed = workload.model_copy(update={"jobs": jobs, "needs_targets": False})
    path = simulated.run_changed(changed, changed, directory / "run", steady_device(SERVICE_NS, servers=64))
    bundle = Bundle.open(path)
    ios = bundle.ios()
    assert ios is not None
    names = [stream.name.rpartition(".")[0] for stream in bundle.plan.streams]
    return ios.with_columns(
        job=pl.col("stream").replace_strict(dict(enumerate(names)), return_dtype=pl.String),
        start_ns=pl.col("t_ns") - pl.col("lat_ns"),
    )


def _range(job: Job, whole: int) -> dict[str, Amount]:
    """The bytes a job would use of a target of `whole`, in whole blocks as on a real one."""
    start = job.placement.offset.of(whole) if job.placement.offset else 0
    start = -(-start // BLOCK_BYTES) * BLOCK_BYTES
    length = whole - start
    if job.placement.size is not None:
        length = min(length, job.placement.size.of(whole))
    return {
        "placement.offset": Amount(bytes=start),
        "placement.size": Amount(bytes=length - length % BLOCK_BYTES),
    }


def agrees(found: Mapping[Any, int], shares: Mapping[Any, float]) -> bool:
    """Tell whether counts are what shares (of any sum) lead to, by chi-square; nothing else may occur."""
    wanted = {key: share for key, share in shares.items() if share}
    if not set(found) <= set(wanted):
        return False
    total, whole = sum(found.values()), sum(wanted.values())
    if len(wanted) == 1:
        return total > 0
    observed = [found.get(key, 0) for key in wanted]
    expected = [share / whole * total for share in wanted.values()]
    return bool(scipy.stats.chisquare(observed, expected).pvalue > P_VALUE)


def sizes(ios: pl.DataFrame) -> dict[tuple[int, int], int]:
    """Count I/Os by (operation, size)."""
    return {(row[0], row[1]): row[2] for row in ios.group_by("op", "bytes").len().iter_rows()}
