"""What a probe is: arms that take turns, and what they tell.

Knows how an effect is made from two arms. A probe is one file of `probes/` and one row of its table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.explanations.readings import ProbeReading
from loadstone.messages import say
from loadstone.probe.figures import Arm, together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.probe.arms import Turns
    from loadstone.probe.base import Base
    from loadstone.probe.figures import Figures


@dataclass(frozen=True, slots=True)
class Measured:
    """What the turns of a probe measured, by the name of the arm, in their order."""

    turns: Mapping[str, Sequence[Figures]]
    fills: bool = False
    """Flushes queue up at the beginning of each turn."""

    def arm(self, name: str) -> Arm | None:
        """Return an arm; None when none of its turns measured anything."""
        turns = self.turns.get(name, ())
        return together(turns, fills=self.fills) if turns else None

    def effect(self, reading: str, of: str, against: str) -> list[ProbeReading]:
        """Return the logarithm of one arm's rate over another's; nothing where either is missing."""
        one, other = self.arm(of), self.arm(against)
        if one is None or other is None:
            return []
        return [
            ProbeReading(
                name=reading,
                value=one.log_rate - other.log_rate,
                error=math.hypot(one.error, other.error),
                count=min(one.count, other.count),
            )
        ]

    def against_main(self, reading: str, of: str, main: Figures) -> list[ProbeReading]:
        """Return the logarithm of an arm's rate over that of the run."""
        one = self.arm(of)
        if one is None:
            return []
        return [
            ProbeReading(
                name=reading,
                value=one.log_rate - math.log(main.rate),
                error=math.hypot(one.error, main.log_error),
                count=one.count,
            )
        ]


@dataclass(frozen=True, slots=True)
class Probe:
    """One row. `turns` answers with the arms, or says why it cannot be done here.

    `of_the_job`: it can be done only where the job has something that most jobs do not have: addresses off
    the grid, content that repeats, a part of its target, several targets. What that does to a number no
    other probe shows.
    """

    name: str
    readings: tuple[str, ...]
    turns: Callable[[Base], Turns | str]
    read: Callable[[Measured, Base], list[ProbeReading]]
    of_the_job: bool = False

    @property
    def asks(self) -> str:
        """What is measured, in a few words."""
        return say(f"probe.asks.{self.name}")


def comparison(
    name: str,
    turns: Callable[[Base], Turns | str],
    effects: Mapping[str, tuple[str, str]],
    *,
    of_the_job: bool = False,
) -> Probe:
    """Return a probe of which each reading is the rate of one arm over that of another."""

    def read(measured: Measured, _: Base) -> list[ProbeReading]:
        return [one for reading, arms in effects.items() for one in measured.effect(reading, *arms)]

    return Probe(name, tuple(effects), turns, read, of_the_job)
