"""How far a watched host's clock is from ours, with its error.

Knows that an answer was made between its request and its arrival: the shortest exchange says most.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.watch.source import HostReading


@dataclass(slots=True)
class ClockOffset:
    """The best estimate so far; `offset_ns` is above zero where the watched host's clock is ahead."""

    offset_ns: int | None = None
    error_ns: int | None = None

    def heard(self, reading: HostReading, now_unix_ns: int | None = None, now_ns: int | None = None) -> None:
        """Take note of a reading that has the watched host's time."""
        if reading.clock is None:
            return
        ours_ns = (time.time_ns() if now_unix_ns is None else now_unix_ns) - (
            time.monotonic_ns() if now_ns is None else now_ns
        )
        # A clock that tells whole seconds stands anywhere within the one it tells.
        theirs_ns = reading.clock.unix_ns + reading.clock.step_ns // 2
        error_ns = reading.error_ns + reading.clock.step_ns // 2
        if self.error_ns is None or error_ns < self.error_ns:
            self.offset_ns = theirs_ns - (ours_ns + reading.middle_ns)
            self.error_ns = error_ns
