"""What an experiment will be able to see, before it runs: the least difference of two levels it finds.

Knows the runs that are planned and a scatter of repeats that is supposed. Of few runs values are drawn
from seeds and analysed as measured ones are, because what they show depends on how their noise is told;
of many the error follows from the design.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.statistics.distributions import t_quantile
from loadstone.comparison.gate import ENOUGH
from loadstone.comparison.matrix import FIRST_SHARE
from loadstone.effects import fit, power
from loadstone.effects.runs_of import MetricRuns
from loadstone.effects.studied_metric import study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.contrast import KnownContrast
    from loadstone.effects.observations import Observation, Observations
    from loadstone.effects.studied_metric import MainContrast, StudiedMetric

ALPHA: Final = 0.05
DRAWS: Final = 40
MANY: Final = 40
"""Runs of a pattern, from which on their error is taken from the design."""
METRIC: Final = "iops"
UNIT: Final = 0.01
"""Scatter that is drawn; what is found grows with it."""


def least_seen(planned: Observations, scatters: Sequence[float]) -> dict[float, float | None]:
    """Return the difference of two levels that 80 of 100 experiments find, of those told apart least well.

    `scatters`: standard deviations of repeats, as shares. `planned`: runs without figures. None: not even
    eleven times as much is found.
    """
    by_pattern: dict[str, list[Observation]] = {}
    for row in planned.rows:
        by_pattern.setdefault(row.pattern, []).append(row)
    # Patterns that have the same combinations as often are told apart equally well.
    alike: dict[frozenset[tuple[tuple[str, ...], int]], list[list[Observation]]] = {}
    for rows in by_pattern.values():
        key = frozenset(Counter(tuple(row.levels.values()) for row in rows).items())
        alike.setdefault(key, []).append(rows)
    first = [(_studied(planned, rows[0], 0), len(rows)) for rows in alike.values()]
    tests = sum(_tests(one) * times for one, times in first)
    each = ALPHA * (FIRST_SHARE if len(planned.metrics) > 1 else 1.0) / max(1, tests)
    least = max((_least(planned, one, each) for one, _ in first), default=math.inf)
    logs = {scatter: least * scatter / UNIT for scatter in scatters}
    return {at: None if log > power.LARGEST else math.expm1(log) for at, log in logs.items()}


def _studied(planned: Observations, rows: Sequence[Observation], seed: int) -> StudiedMetric:
    logs = UNIT * np.random.default_rng(seed).standard_normal(len(rows))
    drawn = tuple(
        replace(row, metrics={METRIC: 1000.0 * float(np.exp(log))})
        for row, log in zip(rows, logs, strict=True)
    )
    return study(planned, MetricRuns(rows[0].pattern, METRIC, drawn, first=True, again=False), seed)


def _tests(one: StudiedMetric) -> int:
    mains = sum(main.known is not None and main.known.p is not None for main in one.mains)
    return mains + sum(pair.p is not None for pair in one.pairs)


def _least(planned: Observations, one: StudiedMetric, each: float) -> float:
    """Return the logarithm of the difference that the least sure contrast shows, at the scatter drawn."""
    rows = one.runs.rows
    if len(rows) >= MANY:
        return max((_by_design(one, main, each) for main in one.mains), default=math.inf)
    drawn = [one, *(_studied(planned, rows, seed) for seed in range(1, DRAWS))]
    needed = [
        [end for draw in drawn for end in _needed(draw.mains[at].known, each)] for at in range(len(one.mains))
    ]
    return max((sorted(ends)[int(ENOUGH * len(ends))] for ends in needed), default=math.inf)


def _needed(known: KnownContrast | None, each: float) -> tuple[float, float]:
    """Return how large a rise and a fall would have had to be to be told apart from this chance."""
    if known is None or known.error is None or known.freedom is None:
        return math.inf, math.inf
    reach = t_quantile(1 - each / 2, known.freedom) * known.error
    return reach - known.log, reach + known.log


def _by_design(one: StudiedMetric, main: MainContrast, each: float) -> float:
    design, fitted = one.model.design, one.model.fitted
    contrast = design.main(main.factor, main.level, main.against)
    error = None if contrast is None else fit.pooled_error(fitted, contrast)
    if main.known is None or main.known.error is None or error is None or not fitted.variance:
        return math.inf
    wider = main.known.error / error.error if design.plots is not None else 1.0
    size = error.error / math.sqrt(fitted.variance) * UNIT * wider
    freedom = main.known.freedom or error.freedom
    least = power.smallest(lambda change: power.power(change, size, freedom, each))
    return math.inf if least is None else least
