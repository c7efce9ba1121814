"""What probes measured, as it is kept in a bundle.

Knows shapes only. A reading is a logarithm of a ratio unless its row in `predictions` says otherwise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pydantic import Field

from loadstone.frozen_model import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    taken: float | None = Field(
        default=None, description="part of a rate that others on this host's CPUs could take meanwhile"
    )


MOMENTS: Final = frozenset({"run.dips", "longer.dips", "heartbeat.worst"})
"""Readings of how often nothing happened: where the load generator has no CPU, they are of that."""
OF_MORE_WORK: Final = frozenset({"together.sum"})
"""Readings that two loads at once would have to be as fast as each alone for: where others take the CPUs that
serve both, those are shared. Of four honest runs on two such disks one was 2.9 errors off, and it fell to a
sum of half."""
AGAINST_RUN: Final = frozenset({"again.repeat", "again.now", "longer.main", "generator.null"})
"""Readings that hold a probe against the run itself: its turns are not beside each other."""
NO_RATES: Final = frozenset({"contents.zeros"})
"""Readings that others on the CPUs change nothing of."""
DRIFT: Final = "turns.drift"
CONTENDED: Final = 0.1
"""With more of a rate in the hands of others on the CPUs, moments and turns of a probe tell of those."""
OF_OTHERS: Final = 0.12
"""A rate is known no better than to this power of what others leave of it. 75 readings that an honest load
leaves as they are were tried (15 kinds of seeds 9001 to 9017, 55 to 91 % taken). 4 were more than 2 errors
off, and 17 without it."""
DRIFTS: Final = 0.17
"""The same between two ends of a probe that has not the same load at both. One in two of 79 probes beside
others was 0.21 or more from itself (seeds 13801 to 13934, half with over 85 % taken)."""
UNLIKE: Final = math.log(2)
"""A host that left half as much, or twice as much, was another one."""
NO_TIME: Final = "the budget is used up"


def of_others(taken: float | None) -> frozenset[str]:
    """Return the readings that tell of this host's CPUs, not of storage, with so much in others' hands."""
    return MOMENTS | OF_MORE_WORK if (taken or 0.0) >= CONTENDED else frozenset()


def left(taken: float | None) -> float:
    """Return the logarithm of what others on the CPUs left of a rate."""
    return math.log(max(0.01, 1 - (taken or 0.0)))


def unlike(one: float | None, other: float | None) -> bool:
    """Tell whether others on the CPUs took such different parts that rates cannot be held together.

    Where a run is not known to have had others beside it, a probe that had is not like it: a generator that
    gets no CPU has no monitor that tells so.
    """
    return abs(left(one) - left(other)) > UNLIKE


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
        tried = [_without(one, names) for one in self.tried]
        return self.model_copy(update={"tried": tuple(tried)})

    def beside_others(self, taken: float | None) -> Probed:
        """Return the same with the doubt that others on the CPUs cast on each reading.

        `taken`: the part of a rate that they could take while the run itself measured.
        """
        apart = _apart([one for one in self.tried if _contended(one, taken)])
        tried = [_beside_others(one, taken, apart) for one in self.tried]
        return self.model_copy(update={"tried": tuple(tried)})


def _contended(tried: Tried, taken: float | None) -> bool:
    return max(tried.taken or 0.0, taken or 0.0) >= CONTENDED


def _apart(tried: Sequence[Tried]) -> float:
    """Return how far one load was from itself at other times: by what both ends of each probe differ."""
    drifts = [one.value for probe in tried for one in probe.readings if one.name == DRIFT]
    return math.sqrt(sum(drift**2 for drift in drifts) / len(drifts)) if drifts else 0.0


def _beside_others(tried: Tried, taken: float | None, apart: float) -> Tried:
    """`apart`: how far the same load was from itself between two times of these probes."""
    most = max(tried.taken or 0.0, taken or 0.0)
    names = of_others(most) | (AGAINST_RUN if unlike(tried.taken, taken) else frozenset())
    doubt = OF_OTHERS * -left(most)
    if most >= CONTENDED:
        # The same load at both ends of a probe: what lies between them lies between other turns, too.
        usual = max(apart, DRIFTS * -left(most))
        drift = next((one.value for one in tried.readings if one.name == DRIFT), usual)
        doubt = math.hypot(doubt, drift / math.sqrt(2))
    # The run lies further back than the other end of a probe.
    doubts = {name: math.hypot(doubt, apart) for name in AGAINST_RUN} if _contended(tried, taken) else {}
    trusted = _without(tried, names).readings
    readings = tuple(
        one
        if one.name in NO_RATES
        else one.model_copy(update={"error": math.hypot(one.error, doubts.get(one.name, doubt))})
        for one in trusted
    )
    return tried.model_copy(update={"readings": readings})


def _without(tried: Tried, names: frozenset[str]) -> Tried:
    readings = tuple(one for one in tried.readings if one.name not in names)
    return tried.model_copy(update={"readings": readings})
