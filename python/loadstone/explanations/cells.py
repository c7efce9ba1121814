"""Every explanation in every regime it can hold in, and what each predicts of a reading.

Knows the list of explanations and the table of predictions, as arrays: they are weighed after each probe,
some hundred times in a run. Weighs nothing itself. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.explanations.names import UNEXPLAINED
from loadstone.explanations.predictions import (
    ANY_DEPTH,
    AT_A_LIMIT,
    IN_REGIMES,
    LEAST_ERROR,
    READINGS,
    REGIMES,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from loadstone.explanations.names import Explanation
    from loadstone.explanations.predictions import Prediction
    from loadstone.explanations.weights import Weights

    Floats: TypeAlias = NDArray[np.float64]

LISTS_KEPT: Final = 64
"""What is possible depends on the job: a program sees a handful of lists, the lab some dozen."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An explanation in one regime: what readings depend on. `row`: the explanation's place."""

    row: int
    name: str
    regime: str
    odds: float
    """Before anything was tried."""
    like: str
    """Whose predictions hold; of something unexplained each of the named in turn."""
    nearly: bool = False
    """Something unexplained that differs from what it is like in little."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """What is predicted of one reading. `places`: of each hypothesis, which of the predictions is its own."""

    predictions: tuple[Prediction, ...]
    places: NDArray[np.intp]
    weights: Floats
    """Of the parts of each prediction, and their means and deviations: a row for each prediction."""
    means: Floats
    deviations: Floats


@dataclass(frozen=True, slots=True)
class Cells:
    """Hypotheses with what they have in common as arrays, in their order."""

    every: tuple[Hypothesis, ...]
    rows: NDArray[np.intp]
    odds: Floats
    unknown: NDArray[np.bool_]
    nearly: NDArray[np.bool_]
    at_a_limit: NDArray[np.bool_]
    """In a regime in which nothing is idle."""
    _predicted: dict[str, Predicted] = field(default_factory=dict)

    def predicted(self, reading: str) -> Predicted:
        """Return what is predicted of a reading."""
        if reading not in self._predicted:
            own = [predicted(one.like, one.regime, reading) for one in self.every]
            distinct = tuple(dict.fromkeys(own))
            place = {one: at for at, one in enumerate(distinct)}
            most = max(map(len, distinct), default=0)
            # A prediction of fewer parts has some more that weigh nothing.
            parts = np.array([[*one, *[(0.0, 0.0, 1.0)] * (most - len(one))] for one in distinct])
            places = np.array([place[one] for one in own], np.intp)
            self._predicted[reading] = Predicted(distinct, places, *np.moveaxis(parts, 2, 0))
        return self._predicted[reading]

    def unlike(self, reading: str, weights: Weights) -> Floats:
        """Return the share of this reading that the predictions of each do not hold for."""
        unknown = np.where(self.nearly, weights.fewer, weights.unlike)
        return np.where(self.unknown, unknown, weights.surprise_of(reading))

    def sums(self, values: Floats) -> Floats:
        """Add up values of hypotheses by explanation."""
        return np.bincount(self.rows, values).astype(np.float64)


def cells_of(rows: Sequence[Explanation]) -> Cells:
    """Return every explanation in every regime with its odds before anything was tried."""
    return _cells_of(tuple(rows))


@lru_cache(LISTS_KEPT)
def _cells_of(rows: tuple[Explanation, ...]) -> Cells:
    named = [
        Hypothesis(index, row.name, regime, row.odds * weight, row.name)
        for index, row in enumerate(rows)
        for weight, regime in IN_REGIMES.get(row.name, ANY_DEPTH)
        if row.name != UNEXPLAINED
    ]
    whole = sum(one.odds for one in named)
    unknown = [
        Hypothesis(index, UNEXPLAINED, one.regime, row.odds * one.odds / whole / 2, one.like, nearly)
        for index, row in enumerate(rows)
        if row.name == UNEXPLAINED
        for nearly in (False, True)
        for one in named
    ]
    every = (*named, *unknown)
    return Cells(
        every,
        rows=np.array([one.row for one in every], np.intp),
        odds=np.array([one.odds for one in every]),
        unknown=np.array([one.name == UNEXPLAINED for one in every]),
        nearly=np.array([one.nearly for one in every]),
        at_a_limit=np.array([one.regime in AT_A_LIMIT for one in every]),
    )


def predicted(explanation: str, regime: str, reading: str) -> Prediction:
    """Return what is predicted of a reading."""
    row = READINGS[reading]
    return REGIMES[regime].get(reading) or row.under.get(explanation, row.others)


def likelihoods(cells: Cells, reading: str, values: Floats, error: float, weights: Weights) -> Floats:
    """Return the density of readings under each explanation in its regime: a row for each of them."""
    explained, anything = densities(cells, reading, values, error)
    unlike = cells.unlike(reading, weights)[:, None]
    mixture: Floats = (1 - unlike) * explained + unlike * anything[None, :]
    return mixture


def densities(cells: Cells, reading: str, values: Floats, error: float) -> tuple[Floats, Floats]:
    """Return what each predicts of readings, and the density of those that nothing predicts."""
    mean, deviation = READINGS[reading].anything
    own = math.hypot(error, LEAST_ERROR)
    anything = _density(values, mean, math.hypot(deviation, error))
    expected = cells.predicted(reading)
    spread = np.hypot(expected.deviations, own)
    off = (values - expected.means[..., None]) / spread[..., None]
    heights = expected.weights / (spread * math.sqrt(2 * math.pi))
    each = (heights[..., None] * np.exp(-(off**2) / 2)).sum(axis=1)
    return each[expected.places], anything


def _density(values: Floats, mean: float, deviation: float) -> Floats:
    return np.exp(-(((values - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
