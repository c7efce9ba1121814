"""Which probe is worth its seconds: the most expected loss of entropy per second.

Knows what is possible, how probable each of it is, and what each probe's readings would be under each:
it draws readings from the predictions and looks at what would be left to tell. Pure; the draws have a
fixed seed, so the same state gives the same choice.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.explanations.cells import likelihoods
from loadstone.explanations.predictions import READINGS
from loadstone.explanations.weights import FITTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from loadstone.explanations.cells import Cells
    from loadstone.explanations.weigh import Chances

DRAWS: Final = 64
TYPICAL_ERROR: Final = 0.05
LEAST_BITS: Final = 0.02
"""A probe that is expected to tell less than this tells nothing."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A probe that may be done: what it would measure and what it costs."""

    name: str
    seconds: float
    readings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Worth:
    """What a candidate is expected to tell."""

    candidate: Candidate
    bits: float

    @property
    def per_second(self) -> float:
        """Bits for each second."""
        return self.bits / self.candidate.seconds


def worth(known: Chances, candidates: Sequence[Candidate]) -> list[Worth]:
    """Return the candidates with what each would tell, the best per second first."""
    worths = [Worth(one, expected_bits(known, one.readings)) for one in candidates]
    return sorted(worths, key=lambda one: -one.per_second)


def entropy_bits(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much is left to tell, of each row of probabilities."""
    bits: NDArray[np.float64] = -np.sum(chances * np.log2(np.maximum(chances, 1e-300)), axis=-1)
    return bits


def expected_bits(known: Chances, readings: Sequence[str]) -> float:
    """Return the expected loss of entropy of the explanations when these readings are known."""
    chance = np.random.default_rng(1)
    cells, chances = known.cells, known.each
    to_rows = np.zeros((len(chances), 1 + max(cells.rows)))
    to_rows[np.arange(len(chances)), cells.rows] = 1
    truth = chance.choice(len(chances), DRAWS, p=chances / chances.sum())
    logs = np.tile(np.log(np.maximum(chances, 1e-300)), (DRAWS, 1))
    for name in readings:
        values = _draw(cells, truth, name, chance)
        densities = likelihoods(cells, name, values, TYPICAL_ERROR, FITTED.weights)
        logs += FITTED.weights.dependence * np.log(np.maximum(densities.T, 1e-300))
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    before = float(entropy_bits(chances @ to_rows))
    return max(0.0, before - float(entropy_bits(shares @ to_rows).mean()))


def _draw(
    cells: Cells, truth: NDArray[np.intp], reading: str, chance: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a reading under each of these hypotheses."""
    unlike = cells.unlike(reading, FITTED.weights)[truth]
    expected = cells.predicted(reading)
    # As `Generator.choice` draws: it takes ten times as long, for a choice of two or three.
    upto = [np.cumsum([part[0] for part in parts]) for parts in expected.predictions]
    shares = [(one / one[-1]).tolist() for one in upto]
    values = np.empty(len(truth))
    for at, place in enumerate(expected.places[truth]):
        if chance.random() < unlike[at]:
            mean, deviation = READINGS[reading].anything
        else:
            _, mean, deviation = expected.predictions[place][bisect_right(shares[place], chance.random())]
        values[at] = chance.normal(mean, math.hypot(deviation, TYPICAL_ERROR))
    return values
