"""How long a Plan may take, and the interval of its samples.

Knows no job. The memory it needs is known to the engine (`engine.plan_check`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.plan.model import Stream

MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000


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
