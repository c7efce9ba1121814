"""One metric of one pattern, modelled: its contrasts before anything is said of them.

Knows the design of its runs, the model, and which contrasts there are. Knows no other metric and no
correction.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from loadstone.analysis.statistics.significance import BUCKET_ERROR
from loadstone.effects import design_matrix as designs
from loadstone.effects import drift as drifts
from loadstone.effects import metric_model
from loadstone.effects.tests_together import MadeTest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.effects.contrast import KnownContrast
    from loadstone.effects.drift import DriftLine
    from loadstone.effects.joint_test import JointTest
    from loadstone.effects.metric_model import MetricModel
    from loadstone.effects.observations import Observations
    from loadstone.effects.runs_of import MetricRuns

    Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MainContrast:
    """A contrast of two levels before anything is said of it; None where a level has no data."""

    factor: int
    level: str
    against: str
    known: KnownContrast | None


@dataclass(frozen=True, slots=True)
class SimpleContrast:
    """A contrast of two levels of a factor at one level of another."""

    factor: int
    levels: tuple[str, str]
    other: int
    at: str
    known: KnownContrast


@dataclass(frozen=True, slots=True)
class PairContrasts:
    """An interaction before anything is said of it; no contrasts where the model does not have it."""

    factors: tuple[int, int]
    test: JointTest | None
    departures: tuple[Numbers, ...]
    """Of each combination: its interaction where it alone departs from the rest."""
    contrasts: tuple[tuple[tuple[str, str], tuple[str, str], KnownContrast], ...]
    simple: tuple[SimpleContrast, ...]

    @property
    def p(self) -> float | None:
        """Chance of an interaction at least as large when there is none."""
        return None if self.test is None else self.test.p


@dataclass(frozen=True, slots=True)
class StudiedMetric:
    """One metric of one pattern."""

    runs: MetricRuns
    model: MetricModel
    mains: tuple[MainContrast, ...]
    pairs: tuple[PairContrasts, ...]
    drift: DriftLine


def study(table: Observations, runs: MetricRuns, seed: int) -> StudiedMetric:
    """Model one metric of one pattern; the same runs and seed give the same model."""
    factors = table.factors
    design = designs.build(factors, runs.rows, table.rarely)
    names = (zlib.crc32(one.encode()) for one in (runs.pattern, runs.metric))
    chance = np.random.default_rng([seed, *names])
    # A percentile is known to within a bucket of its histogram, however alike the runs are.
    floor = BUCKET_ERROR if runs.metric.startswith("lat_p") else 0.0
    model = metric_model.make(design, runs.values, floor=floor, chance=chance)
    mains = tuple(
        MainContrast(at, level, against, known_of(model, design.main(at, level, against) if known else None))
        for at, factor in enumerate(factors)
        for against, level in combinations(factor.levels, 2)
        for known in [level in design.levels[at] and against in design.levels[at]]
    )
    pairs = tuple(_pair(model, one) for one in combinations(range(len(factors)), 2))
    return StudiedMetric(runs, model, mains, pairs, drifts.drift(model, runs.rows))


def known_of(model: MetricModel, contrast: Numbers | None) -> KnownContrast | None:
    """Return a contrast with its error; None where there is none."""
    return None if contrast is None else model.known(contrast)


def _pair(model: MetricModel, factors: tuple[int, int]) -> PairContrasts:
    design = model.design
    first, second = factors
    term = design.term(first, second)
    if term is None:
        return PairContrasts(factors, None, (), (), ())
    ups, acrosses = ([(b, a) for a, b in combinations(design.levels[at], 2)] for at in factors)
    rows = [(up, across, design.interaction(first, up, second, across)) for up in ups for across in acrosses]
    simple = [
        SimpleContrast(factor, levels, other, at, model.known(row))
        for factor, other, every in ((first, second, ups), (second, first, acrosses))
        for levels in every
        for at in design.levels[other]
        if (row := design.simple(factor, levels, other, at)) is not None
    ]
    contrasts = [(up, across, model.known(row)) for up, across, row in rows if row is not None]
    test = model.together(term.columns, [row for *_, row in rows if row is not None])
    return PairContrasts(factors, test, tuple(design.departures(*factors)), tuple(contrasts), tuple(simple))


def made_test(one: StudiedMetric, p: float | None) -> MadeTest:
    """Return a test of a metric, with the part of the allowed error that it takes from."""
    return MadeTest(p, one.runs.first, one.runs.again)
