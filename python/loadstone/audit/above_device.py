"""How long I/Os wait above the device that carries the targets, by that device's own clock.

Knows Cases only. Judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries
from loadstone.audit.layer_flows import keeps_parity

if TYPE_CHECKING:
    from loadstone.audit.case import Case

HELD: Final = 0.7
"""With a smaller part of the outstanding I/Os at the device, the others are held above it."""
HOST_NS: Final = 100_000.0
"""An I/O spends at most about this in the host when nothing holds it back there."""


@dataclass(frozen=True, slots=True)
class AboveDevice:
    """`inflight` of `expected` I/Os are at the device; the others wait for `waited_ns` on average."""

    inflight: float
    expected: float
    waited_ns: float

    @property
    def held(self) -> bool:
        """Whether they wait for longer than a host takes that holds nothing back."""
        return self.inflight < HELD * self.expected and self.waited_ns > HOST_NS

    @property
    def share(self) -> float:
        """The part of a latency that passes above the device."""
        return max(0.0, 1 - self.inflight / self.expected)


def loaded_share(case: Case) -> float:
    """Return the part of the time in which new I/Os were begun: behind it fewer and fewer are in flight."""
    return 1 - case.drained_s / case.seconds if case.seconds else 1.0


def above_device(case: Case) -> AboveDevice | None:
    """Return how I/Os wait above the device; None where nothing counts them there.

    Nothing does where a layer keeps parity: a small write is old data read, then parity computed, then both
    written, and between these it is at no device, though the storage is at work on it.
    """
    if _parity(case):
        return None
    outstanding, inflight, latency = case_queries.outstanding(case), _inflight(case), case.total.latency
    if outstanding is None or inflight is None or latency is None or latency.mean_ns is None:
        return None
    # What waits for a flush is not at the device as an I/O: only its own part is.
    expected = max(outstanding * loaded_share(case) - case_queries.flushing(case), 1e-9)
    if case.total.kind == "lat" and case.total.iops is not None:
        # Fewer than asked for are outstanding where the generator keeps fewer: those wait nowhere.
        expected = min(expected, max(case.total.iops.value * latency.mean_ns / 1e9, 1e-9))
    return AboveDevice(inflight, expected, latency.mean_ns * (1 - inflight / expected))


def _parity(case: Case) -> bool:
    """Tell whether writes go through a layer that keeps parity."""
    paths = [one.path_layers for one in case.targets if one.path_layers is not None]
    return case_queries.does(case, "write") and any(
        keeps_parity(layer) for path in paths for layer in path.layers
    )


def _inflight(case: Case) -> float | None:
    """Return how many of the job's I/Os the device had: those merged into one were all there."""
    traffic = case.traffic
    if traffic is None or traffic.inflight is None:
        return None
    requested_ios, moved = (
        sum(one.ios for one in table.values()) for table in (traffic.asked, traffic.moved)
    )
    return traffic.inflight * max(1.0, requested_ios / moved if moved else 1.0)
