"""How far the strangest reading lies from what the storage itself predicts.

A cause that is in no list of explanations shows as one reading that the storage does not make, however
well all others fit. Knows predictions and readings; weighs nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.explanations.names import BY_NAME, possible
from loadstone.explanations.predictions import LEAST_ERROR, READINGS
from loadstone.explanations.weigh import cells_of, predicted

if TYPE_CHECKING:
    from loadstone.explanations.job_facts import JobFacts
    from loadstone.explanations.readings import Probed, ProbeReading
    from loadstone.explanations.weigh import Hypothesis

USUAL: Final = 2.0
"""Deviations: of 378 honest situations of seeds 100001 to 101122, 9 in 10 have no reading further off."""
FAR: Final = 5.0
"""Seeds 100002 to 101084 that no rule decided: 1 of 250 honest ones is further off, 37 of 124 lies."""
MOST: Final = 8.0
"""Beyond this many more it says no more: no prediction is known that far out."""


def strangeness(job: JobFacts, probed: Probed | None) -> float:
    """Return by how many deviations more than usual the worst reading is off, in the best regime."""
    storage = [one for one in cells_of(possible(job)) if BY_NAME[one.name].effect == "measures"]
    readings = [
        one for tried in (probed.tried if probed else ()) for one in tried.readings if one.name in READINGS
    ]
    if not storage or not readings:
        return 0.0
    worst = min(max(_off(cell, one) for one in readings) for cell in storage)
    return min(MOST, max(0.0, worst - USUAL))


def _off(cell: Hypothesis, reading: ProbeReading) -> float:
    """Return how many deviations a reading is from the nearest part of its prediction."""
    own = math.hypot(reading.error, LEAST_ERROR)
    parts = predicted(cell.like, cell.regime, reading.name)
    return min(abs(reading.value - mean) / math.hypot(deviation, own) for _, mean, deviation in parts)
