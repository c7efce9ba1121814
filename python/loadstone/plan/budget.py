"""What a Plan costs before it runs: memory, disk, time; and the interval of its samples.

Knows sizes of the engine's structures well enough for an upper bound; the engine itself
states the exact memory. Knows no job.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.plan.model import Plan, Stream

MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000
MIN_MEMORY_LIMIT_BYTES: Final = 64 << 20
MEMORY_MARGIN: Final = 1.25

_BASE_BYTES: Final = 8 << 20
"""The program, its tables and its output buffers."""
_SLOT_BYTES: Final = 256
_HISTOGRAM_BYTES: Final = 2496 * 8
_HISTOGRAMS: Final = 4
"""lat, slat, clat, wait."""
_WORKER_BYTES: Final = 256 << 10
_STREAM_BYTES: Final = 8 << 10
_ROW_BYTES: Final = 1024
"""One row of samples with its histograms, compressed little."""
_IO_ROW_BYTES: Final = 61


def interval_ns(duration_ns: int | None, log_windows_msec: Iterable[int]) -> int:
    """Choose the length of a sample: 1 s, less for short runs, a divisor of log windows."""
    longest = SECOND_NS
    if duration_ns is not None and duration_ns <= 30 * SECOND_NS:
        longest = (100 if duration_ns <= 5 * SECOND_NS else 250) * MILLISECOND_NS
    windows = [msec * MILLISECOND_NS for msec in log_windows_msec if msec]
    if not windows:
        return longest
    common = math.gcd(*windows)
    parts = -(-common // longest)
    while common % parts or (common // parts) % MILLISECOND_NS:
        parts += 1
    return common // parts


def duration_ns(stages: Iterable[Iterable[Stream]]) -> int | None:
    """Longest time a Plan may take, or None when some stream ends only by its bytes."""
    total = 0
    for streams in stages:
        longest = 0
        for stream in streams:
            if not stream.limits.runtime_ns:
                return None
            limits = stream.limits
            longest = max(longest, limits.start_delay_ns + limits.ramp_ns + limits.runtime_ns)
        total += longest
    return total


def memory_bytes(plan: Plan, buffers_bytes: int) -> int:
    """Upper bound of what the engine holds."""
    ops = 0
    for stream in plan.streams:
        pattern, flush = stream.pattern, stream.flush
        used = sum(p > 0 for p in (pattern.read_percent, pattern.write_percent, pattern.trim_percent))
        used += bool(flush.fsync_every or flush.fdatasync_every or flush.at_end or flush.on_close)
        ops += used * len({use.cell for use in stream.files})
    slots = sum(stream.iodepth for stream in plan.streams)
    return (
        _BASE_BYTES
        + buffers_bytes
        + slots * _SLOT_BYTES
        + ops * _HISTOGRAM_BYTES * _HISTOGRAMS
        + len(plan.workers) * _WORKER_BYTES
        + len(plan.streams) * _STREAM_BYTES
    )


def memory_limit_bytes(needed_bytes: int) -> int:
    """Bytes the engine may hold: what it needs and a margin."""
    return max(int(needed_bytes * MEMORY_MARGIN), MIN_MEMORY_LIMIT_BYTES)


def samples_bytes(plan: Plan, duration: int | None) -> int:
    """Bytes the samples take on disk; for an unknown duration those of an hour.

    A log of every I/O cannot be told before the run: it grows by 61 bytes per I/O.
    """
    intervals = -(-(duration or 3600 * SECOND_NS) // plan.interval_ns)
    rows = sum(len({use.cell for use in stream.files}) for stream in plan.streams)
    cells = min(rows, len(plan.cells))
    return intervals * max(cells, 1) * _ROW_BYTES
