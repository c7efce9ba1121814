"""How long the rest of a study will take.

Knows what runs were planned to take and what they took; what comes on top of a plan (files,
calibration, sealing) is taken to be what it was so far. Knows no run that nobody told it of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.study.controller import Next


class TimeEstimate:
    """Planned and actual lengths of runs, by name."""

    def __init__(self) -> None:
        self._planned_s: dict[str, float | None] = {}
        self._took_s: dict[str, float] = {}

    def planned(self, run: Next, duration_ns: int | None) -> None:
        """Take note of a planned length, None for a run that ends by its bytes."""
        self._planned_s[run.name] = None if duration_ns is None else duration_ns / 1e9 + run.pause_s

    def ran(self, run: Next, took_s: float) -> None:
        """Take note of a run that is over."""
        self._took_s[run.name] = took_s + run.pause_s

    def left_s(self, known: Sequence[Next], expected: int | None) -> float | None:
        """Return the time left, None when nobody knows how many runs there will be."""
        if expected is None or not self._took_s:
            return None
        usual_s = sum(self._took_s.values()) / len(self._took_s)
        extra_s = self._extra_s()
        ahead = [run.name for run in known if run.name not in self._took_s]
        planned_s = [self._planned_s.get(name) for name in ahead]
        unknown = max(0, expected - len(self._took_s) - len(ahead))
        return unknown * usual_s + sum(usual_s if one is None else one + extra_s for one in planned_s)

    def _extra_s(self) -> float:
        extras = [
            max(0.0, took_s - planned_s)
            for name, took_s in self._took_s.items()
            if (planned_s := self._planned_s.get(name)) is not None
        ]
        return sum(extras) / len(extras) if extras else 0.0
