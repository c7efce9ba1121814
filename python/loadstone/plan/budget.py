"""What a Plan costs before it runs, disk and time; and the interval of its samples.

Knows no job. The memory it needs is known to the engine (`engine.plan_check`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.plan.derived import cells_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.plan.model import Plan, Stream

MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000
_ROW_BYTES: Final = 1024
"""One row of samples with its histograms, compressed little."""


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


def duration_ns(streams: Sequence[Stream], stages: Sequence[int]) -> int | None:
    """Longest time a Plan may take, or None when some stream ends only by its bytes."""
    ends: list[int] = []
    longest: dict[int, int] = {}
    for stream, stage in zip(streams, stages, strict=True):
        limits = stream.limits
        if not limits.runtime_ns:
            return None
        # Those it waits for come before it.
        waits = max((ends[other] for other in stream.wait_for), default=0)
        ends.append(waits + limits.start_delay_ns + limits.ramp_ns + limits.runtime_ns)
        longest[stage] = max(longest.get(stage, 0), ends[-1])
    return sum(longest.values())


def samples_bytes(plan: Plan, duration: int | None) -> int:
    """Bytes the samples take on disk; for an unknown duration those of an hour.

    A log of every I/O cannot be told before the run: it grows by 61 bytes per I/O.
    """
    intervals = -(-(duration or 3600 * SECOND_NS) // plan.interval_ns)
    rows = sum(len(cells_of(stream)) for stream in plan.streams)
    cells = min(rows, len(plan.cells))
    return intervals * max(cells, 1) * _ROW_BYTES
