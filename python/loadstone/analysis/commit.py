"""The time of a commit: writes, and the flush that makes them durable.

Knows totals and what a job flushes after how many writes. Only the mean is known: which write and
which flush belong together is not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.plan.derived import targets_of
from loadstone.plan.model import OpenSync

if TYPE_CHECKING:
    from loadstone.analysis.measurement import Measurement
    from loadstone.analysis.totals import Total
    from loadstone.plan.model import Plan, Stream


def writes_per_commit(plan: Plan, stream: Stream) -> int | None:
    """Return after how many writes they are durable; None when nothing makes them so on the way."""
    every = [one for one in (stream.flush.fsync_every, stream.flush.fdatasync_every) if one]
    if every:
        return min(every)
    used = [plan.targets[number] for number in targets_of(plan, stream)]
    return 1 if used and all(target.sync != OpenSync.NONE for target in used) else None


def mean_ns(measurement: Measurement, total: Total) -> float | None:
    """Return the mean time of a commit of a line; None where there is none, or several kinds."""
    plan = measurement.plan
    streams = [plan.streams[index] for index in total.line.streams]
    writing = [one for one in streams if one.pattern.write_percent and one.tree is None]
    kinds = {(writes_per_commit(plan, one), one.iodepth > 1) for one in writing}
    if len(kinds) != 1:
        return None
    writes, deep = kinds.pop()
    written, flushed = (
        stats.latencies.get("lat") if (stats := total.ops.get(op)) is not None else None
        for op in ("write", "sync")
    )
    # Of several writes in flight at once nobody knows how long they took together.
    if writes is None or written is None or (deep and writes > 1):
        return None
    flushes = any(one.flush.fsync_every or one.flush.fdatasync_every for one in writing)
    if flushes and flushed is None:
        return None
    flush_ns = flushed.mean_ns if flushes and flushed is not None else 0.0
    return None if written.mean_ns is None or flush_ns is None else writes * written.mean_ns + flush_ns
