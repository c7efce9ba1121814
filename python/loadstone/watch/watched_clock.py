"""How far a watched host's clock is from ours, with its error.

Knows that an answer was made between its request and its arrival: the shortest exchange says most.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.watch.source import HostReading, WallClock

DRIFT_NS: Final = 500_000_000
"""What clocks that nobody sets may drift apart during a long run."""


@dataclass(slots=True)
class ClockOffset:
    """The best estimate so far; `offset_ns` is above zero where the watched host's clock is ahead."""

    offset_ns: int | None = None
    error_ns: int | None = None

    def heard(
        self,
        reading: HostReading,
        now_unix_ns: int | None = None,
        now_ns: int | None = None,
        clock: WallClock | None = None,
    ) -> int | None:
        """Take note of a reading that has the watched host's time: that of `clock`, or its own.

        Returns by how many ns one of the two clocks was set since the best estimate; None: by nothing that
        the errors do not explain. What was known before holds no longer then.
        """
        clock = clock or reading.clock
        if clock is None:
            return None
        ours_ns = (time.time_ns() if now_unix_ns is None else now_unix_ns) - (
            time.monotonic_ns() if now_ns is None else now_ns
        )
        # A clock that tells whole seconds stands anywhere within the one it tells.
        theirs_ns = clock.unix_ns + clock.step_ns // 2
        error_ns = reading.error_ns + clock.step_ns // 2
        offset_ns = theirs_ns - (ours_ns + reading.middle_ns)
        moved_ns = None
        if self.offset_ns is not None and self.error_ns is not None:
            apart_ns = offset_ns - self.offset_ns
            if abs(apart_ns) > error_ns + self.error_ns + DRIFT_NS:
                moved_ns, self.error_ns = apart_ns, None
        if self.error_ns is None or error_ns < self.error_ns:
            self.offset_ns, self.error_ns = offset_ns, error_ns
        return moved_ns
