"""What an experiment will be able to see, before it runs: the least difference of two levels it finds.

Knows the runs that are planned and a scatter of repeats that is supposed. Values are drawn from a seed and
analysed as measured ones are, because what few repeats can show depends on how their noise is told.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.comparison.matrix import FIRST_SHARE
from loadstone.effects import power
from loadstone.effects.runs_of import MetricRuns
from loadstone.effects.studied_metric import study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.contrast import KnownContrast
    from loadstone.effects.observations import Observation, Observations
    from loadstone.effects.studied_metric import StudiedMetric

ALPHA: Final = 0.05
DRAWS: Final = 15
MANY: Final = 40
"""So many runs of a pattern tell much the same whatever is drawn; from here on one draw is enough."""
METRIC: Final = "iops"


def least_seen(planned: Observations, scatter: float) -> float | None:
    """Return the difference of two levels found in 80 of 100 cases, of those told apart least well.

    `scatter`: standard deviation of repeats, as a share. `planned`: runs without figures. The median of
    some draws; None: not even one of eleven times.
    """
    by_pattern: dict[str, list[Observation]] = {}
    for row in planned.rows:
        by_pattern.setdefault(row.pattern, []).append(row)
    # Patterns that have the same combinations as often are told apart equally well.
    alike: dict[frozenset[tuple[tuple[str, ...], int]], tuple[list[Observation], int]] = {}
    for rows in by_pattern.values():
        key = frozenset(Counter(tuple(row.levels.values()) for row in rows).items())
        alike[key] = (alike.get(key, (rows, 0))[0], alike.get(key, (rows, 0))[1] + 1)
    draws = DRAWS if max((len(rows) for rows, _ in alike.values()), default=0) < MANY else 1
    found = [_drawn(planned, list(alike.values()), scatter, seed) for seed in range(draws)]
    middle = statistics.median(found) if found else math.inf
    return None if math.isinf(middle) else math.expm1(middle)


def _drawn(
    planned: Observations, groups: Sequence[tuple[Sequence[Observation], int]], scatter: float, seed: int
) -> float:
    """Return what one draw finds, as a logarithm; infinite where it finds nothing."""
    chance = np.random.default_rng(seed)
    studied = []
    for rows, times in groups:
        drawn = _with(rows, scatter, chance)
        runs = MetricRuns(rows[0].pattern, METRIC, drawn, first=True, again=False)
        studied.append((study(planned, runs, seed), times))
    tests = sum(_tests(one) * times for one, times in studied)
    share = FIRST_SHARE if len(planned.metrics) > 1 else 1.0
    each = ALPHA * share / max(1, tests)
    return max((_least(one, each) for one, _ in studied), default=math.inf)


def _with(
    rows: Sequence[Observation], scatter: float, chance: np.random.Generator
) -> tuple[Observation, ...]:
    drawn = np.exp(scatter * chance.standard_normal(len(rows)))
    return tuple(
        replace(row, metrics={METRIC: 1000.0 * float(value)}) for row, value in zip(rows, drawn, strict=True)
    )


def _tests(one: StudiedMetric) -> int:
    mains = sum(main.known is not None and main.known.p is not None for main in one.mains)
    return mains + sum(pair.p is not None for pair in one.pairs)


def _least(one: StudiedMetric, each: float) -> float:
    """Return the logarithm of the difference that the least sure contrast would show."""
    found = [_smallest(main.known, each) for main in one.mains]
    return max(found, default=math.inf)


def _smallest(known: KnownContrast | None, each: float) -> float:
    if known is None or known.error is None or known.freedom is None:
        return math.inf
    error, freedom = known.error, known.freedom
    least = power.smallest(lambda size: power.power(size, error, freedom, each))
    return math.inf if least is None else least
