"""Whether the wall clock moved against the clock that a run is measured by.

`clock.offset_ns` is how far CLOCK_REALTIME has gone from CLOCK_MONOTONIC since the monitors began:
a step shows as a jump, a clock that is slewed as a slope. `clock.suspended_ns` is how long the host
slept meanwhile.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from loadstone.monitor.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS = 3
NS_PER_MS = 1_000_000


class Clock:
    """Levels in ns. `read_ns` reads a clock by its id."""

    def __init__(self, read_ns: Callable[[int], int] = time.clock_gettime_ns) -> None:
        self._read_ns = read_ns
        self._real_ns = self._ahead(time.CLOCK_REALTIME)
        self._boot_ns = self._ahead(time.CLOCK_BOOTTIME)

    def read(self) -> Counters:
        """Read now."""
        return Counters(
            levels={
                "clock.offset_ns": self._ahead(time.CLOCK_REALTIME) - self._real_ns,
                # Whole milliseconds: the reading itself differs by some ns, and no sleep is shorter.
                "clock.suspended_ns": self._suspended_ns(),
            }
        )

    def _suspended_ns(self) -> int:
        return round((self._ahead(time.CLOCK_BOOTTIME) - self._boot_ns) / NS_PER_MS) * NS_PER_MS

    def _ahead(self, clock: int) -> int:
        """Return how far a clock is ahead of CLOCK_MONOTONIC, from the closest of a few readings."""
        readings: list[tuple[int, int]] = []
        for _ in range(ATTEMPTS):
            before = self._read_ns(time.CLOCK_MONOTONIC)
            clock_ns = self._read_ns(clock)
            after = self._read_ns(time.CLOCK_MONOTONIC)
            readings.append((after - before, clock_ns - (before + after) // 2))
        return min(readings)[1]
