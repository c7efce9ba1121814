"""What the hosts' engines say once a second, put together for one live display.

Pure. A second is shown when all hosts have told theirs, or when one has told the next but one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.hosts.merge import shifted_event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.bundle.hosts import HostPart

PATIENCE: Final = 2
"""Intervals that a host may be behind before the others are shown without it."""


class MergedTicks:
    """Collects the hosts' ticks by interval."""

    def __init__(self, parts: Sequence[HostPart]) -> None:
        self._parts = {part.name: part for part in parts}
        self._waiting: dict[int, dict[str, list[Mapping[str, Any]]]] = {}
        self._shown = -1
        self._speaking = set(self._parts)

    def heard(self, name: str, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take an event of a host's; return what can be shown now."""
        part = self._parts[name]
        if event.get("type") != "tick":
            return [shifted_event(event, part)]
        interval = int(event["interval"])
        if interval <= self._shown:
            # Late: its rows count all the same.
            return [self._tick({name: [event]})]
        self._waiting.setdefault(interval, {}).setdefault(name, []).append(event)
        ticks = []
        for one in sorted(self._waiting):
            whole = self._speaking <= self._waiting[one].keys()
            if whole or interval - one >= PATIENCE:
                ticks.append(self._tick(self._waiting.pop(one)))
                self._shown = one
        return ticks

    def ended(self, name: str) -> None:
        """Wait for this host no more."""
        self._speaking.discard(name)

    def _tick(self, events: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        rows = []
        for name, host_events in events.items():
            first = self._parts[name].first_cell
            rows += [
                {**row, "cell": row["cell"] + first} for event in host_events for row in event.get("rows", ())
            ]
        every = [event for host_events in events.values() for event in host_events]
        return {
            "type": "tick",
            "t_ns": max(int(event["t_ns"]) for event in every),
            "interval": int(every[0]["interval"]),
            "rows": rows,
        }
