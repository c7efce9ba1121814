"""What probes measured, as it is kept in a bundle.

Knows shapes only. A reading is a logarithm of a ratio unless its row in `predictions` says otherwise.
"""

from __future__ import annotations

import math
from typing import Final

from pydantic import Field

from loadstone.frozen_model import FrozenModel


class ProbeReading(FrozenModel):
    """One effect that was measured; `error` is one standard error."""

    name: str
    value: float
    error: float
    count: int = Field(description="I/Os it rests on, of the arm with fewer")

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return self.value - 1.96 * self.error, self.value + 1.96 * self.error

    @property
    def ratio(self) -> float:
        """The ratio it is the logarithm of."""
        return math.exp(self.value)


class Tried(FrozenModel):
    """One probe that ran."""

    name: str
    bundle: str = Field(description="its run, relative to the bundle")
    seconds: float
    written_bytes: int
    result: str = Field(description="what it measured, in a sentence")
    readings: tuple[ProbeReading, ...]
    complete: bool = True
    """False: it was interrupted, and what it measured until then counts."""


MOMENTS: Final = frozenset({"run.dips", "longer.dips", "heartbeat.worst"})
"""Readings of how often nothing happened: where the load generator has no CPU, they are of that."""
NO_TIME: Final = "the budget is used up"


class LeftOut(FrozenModel):
    """A probe that could not be done here, and why."""

    name: str
    why: str


class Probed(FrozenModel):
    """`probes.json`: everything that was tried after a run."""

    stage: int
    budget_s: float
    tried: tuple[Tried, ...]
    left_out: tuple[LeftOut, ...]
    ended: str = Field(description="why no further probe was done")

    def without(self, names: frozenset[str]) -> Probed:
        """Return the same without readings of these names."""
        kept = [
            one.model_copy(
                update={"readings": tuple(told for told in one.readings if told.name not in names)}
            )
            for one in self.tried
        ]
        return self.model_copy(update={"tried": tuple(kept)})
