"""How far a host's clock is from ours, from questions and answers, with the error of that.

Pure. Each exchange has our time when the question left, the host's when it answered and ours when
the answer came. The answer was given somewhere in between, so the one with the shortest round
trip says most, and half of that is its bound (RFC 5905's reasoning, without a model of the network).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer, in ns of the two clocks."""

    asked_ns: int
    there_ns: int
    heard_ns: int

    @property
    def round_trip_ns(self) -> int:
        """Time from the question to its answer, by our clock."""
        return self.heard_ns - self.asked_ns


@dataclass(frozen=True, slots=True)
class HostClockOffset:
    """The host's clock is `offset_ns` ahead of ours, and surely within `error_ns` of that."""

    offset_ns: int
    error_ns: int
    round_trip_ns: int

    def there(self, ours_ns: int) -> int:
        """Return a time of ours by the host's clock."""
        return ours_ns + self.offset_ns

    def here(self, there_ns: int) -> int:
        """Return a time of the host's by our clock."""
        return there_ns - self.offset_ns


def offset(exchanges: Iterable[Exchange]) -> HostClockOffset | None:
    """Return the offset by the exchange with the shortest round trip; None without a usable one."""
    usable = [one for one in exchanges if one.round_trip_ns >= 0]
    if not usable:
        return None
    best = min(usable, key=lambda one: one.round_trip_ns)
    middle_ns = best.asked_ns + best.round_trip_ns // 2
    return HostClockOffset(
        best.there_ns - middle_ns, best.round_trip_ns - best.round_trip_ns // 2, best.round_trip_ns
    )
