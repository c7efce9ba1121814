"""How far the strangest reading lies from what the storage itself predicts.

A cause that is in no list of explanations shows as one reading that the storage does not make, however
well all others fit. Knows predictions and readings; weighs nothing.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from loadstone.explanations.cells import cells_of, predicted
from loadstone.explanations.names import BY_NAME, possible
from loadstone.explanations.predictions import LEAST_ERROR, READINGS
from loadstone.explanations.readings import MOMENTS

if TYPE_CHECKING:
    from loadstone.explanations.cells import Hypothesis
    from loadstone.explanations.job_facts import JobFacts
    from loadstone.explanations.readings import Probed, ProbeReading

USUAL: Final = 2.0
"""Deviations: of 378 honest situations of seeds 100001 to 101122, 9 in 10 have no reading further off."""
FAR: Final = 1.0
"""Seeds 100002 to 120140 that no rule decided: 1 of 312 honest ones is further off, and 97 of 158 lies.
Beside others on the CPUs it is 4 and 54."""
RAREST: Final = 1e-40
NORMAL: Final = NormalDist()
MOST: Final = 8.0
"""Beyond this many more it says no more: no prediction is known that far out."""


def strangeness(job: JobFacts, probed: Probed | None) -> float:
    """Return by how many deviations more than usual the worst reading is off, in the best regime."""
    storage = [one for one in cells_of(possible(job)).every if BY_NAME[one.name].effect == "measures"]
    readings = [
        one for tried in (probed.tried if probed else ()) for one in tried.readings if one.name in READINGS
    ]
    if not storage or not readings:
        return 0.0
    worst = min(max(_off(cell, one) for one in readings) for cell in storage)
    return min(MOST, max(0.0, worst - USUAL))


def _off(cell: Hypothesis, reading: ProbeReading) -> float:
    """Return how rare a reading this far out is, as so many deviations of a normal distribution."""
    own = math.hypot(reading.error, LEAST_ERROR)
    parts = predicted(cell.like, cell.regime, reading.name)
    # The fewest moments that can be told depend on the length of a run: none at all are not strange.
    least = min(mean for _, mean, _ in parts) if reading.name in MOMENTS else -math.inf
    value = max(reading.value, least)
    beyond = sum(
        weight * _tail(abs(value - mean) / math.hypot(deviation, own)) for weight, mean, deviation in parts
    )
    return -NORMAL.inv_cdf(max(beyond, RAREST) / 2)


def _tail(deviations: float) -> float:
    """Return the share of a normal distribution that is further out, on both sides."""
    return math.erfc(deviations / math.sqrt(2))
