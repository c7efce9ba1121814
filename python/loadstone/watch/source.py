"""What a way to watch a host must be able to do, and what it says when it cannot.

Knows readings. Knows no protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from loadstone.monitor.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping


class WatchError(Exception):
    """A host cannot be watched now. `lasting`: trying again will not help (a wrong password)."""

    def __init__(self, message: str, *, hint: str | None = None, lasting: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.lasting = lasting


LASTING: Final = partial(WatchError, lasting=True)


@dataclass(frozen=True, slots=True)
class WallClock:
    """What the watched host's clock said between `sent` and `received`, and how finely it tells."""

    unix_ns: int
    step_ns: int


@dataclass(frozen=True, slots=True)
class HostReading:
    """One look at a host. Times are CLOCK_MONOTONIC of this host, around the moment it was taken."""

    sent_ns: int
    received_ns: int
    counters: Counters
    uptime_ns: int | None = None
    """The watched host's own steady clock, which knows nothing of the network's delay."""
    age_ns: int | None = None
    """How long what is asked has been up, where it tells no steady clock: less than before is a new start."""
    own_ns: Mapping[str, int] = field(default_factory=dict)
    """Group of counters (`net`) to when the host took them, where that is not the moment of the look."""
    clock: WallClock | None = None
    coarse_clock: WallClock | None = None
    """The same to the second, where that costs nothing and is told by every look."""
    there_cpu_ns: int | None = None
    """What watching has cost on the watched host so far."""

    @property
    def middle_ns(self) -> int:
        """The best guess when it was taken."""
        return (self.sent_ns + self.received_ns) // 2

    @property
    def error_ns(self) -> int:
        """How far that may be off."""
        return (self.received_ns - self.sent_ns) // 2


class HostSource(Protocol):
    """One way to one host; used by one thread."""

    def connect(self) -> dict[str, Any]:
        """Reach the host and return what does not change: its name, system, processors, link rates.

        Raises `WatchError`.
        """

    def read(self) -> HostReading:
        """Look once. Raises `WatchError` when the host does not answer."""

    def close(self) -> int:
        """Let go, whatever state it is in; return the CPU time of helpers in ns."""


__all__ = ["Counters", "HostReading", "HostSource", "WallClock", "WatchError"]
