"""Whether a series has settled: SNIA's rule, a test for a trend, and where settling began.

Pure functions on a series of one value per round or interval, in the order of time. Knows no
run: what a round is and which series is looked at is the caller's business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.statistics.distributions import NORMAL, normal_upper
from loadstone.analysis.statistics.ranks import average_ranks, sen_slope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROUNDS: Final = 5
MAX_RANGE: Final = 0.20
"""Of the mean: by how much the rounds may differ."""
MAX_SLOPE: Final = 0.10
"""Of the mean: how far their best line may rise or fall from the first to the last."""
MIN_TREND: Final = 10
"""With fewer values the normal approximation of the trend test does not hold (Gilbert, Statistical
Methods for Environmental Pollution Monitoring, 1987, section 16.4.2)."""
LAG_LEVEL: Final = 0.05
"""Autocorrelations that could be chance at this level are not corrected for."""
BATCH: Final = 5


@dataclass(frozen=True, slots=True)
class SteadyCheck:
    """What the last rounds say; shares are of their mean, NaN where the mean is 0.

    `steady` is SNIA's rule alone. `trend_p` is how often chance makes a trend as strong as that
    of the whole series, None with too few values.
    """

    range_share: float
    slope_share: float
    steady: bool
    trend_p: float | None


def steady(values: Sequence[float]) -> SteadyCheck:
    """Judge a series by its last five values.

    SNIA Solid State Storage Performance Test Specification (PTS) 2.0.1, definition of steady
    state: over the last five rounds the largest less the smallest is at most 20 % of their mean,
    and the least-squares line through them rises or falls at most 10 % of it from the first
    round to the last. Fewer than five values are never steady.
    """
    series = np.asarray(values, np.float64)
    last = series[-ROUNDS:]
    mean = float(last.mean()) if len(last) else 0.0
    if len(last) < ROUNDS or not mean > 0:
        return SteadyCheck(math.nan, math.nan, steady=False, trend_p=trend_p(series))
    range_share = float(last.max() - last.min()) / mean
    steps = np.arange(ROUNDS) - (ROUNDS - 1) / 2
    slope = float(steps @ (last - mean)) / float(steps @ steps)
    slope_share = abs(slope) * (ROUNDS - 1) / mean
    is_steady = range_share <= MAX_RANGE and slope_share <= MAX_SLOPE
    return SteadyCheck(range_share, slope_share, is_steady, trend_p(series))


def rounds(values: Sequence[float], count: int = ROUNDS) -> list[float]:
    """Return the means of `count` parts of equal length, the oldest values left out where it does not divide.

    Empty when there are fewer values than rounds.
    """
    length = len(values) // count
    if not length:
        return []
    newest = np.asarray(values, np.float64)[-length * count :]
    return [float(mean) for mean in newest.reshape(count, length).mean(axis=1)]


def steady_from(values: Sequence[float]) -> int | None:
    """Return the index from which on a series is steady, None when it is nowhere.

    The start is cut where it makes the error of the rest's mean smallest (MSER-5: White, An
    Effective Truncation Heuristic for Bias Reduction in Simulation Output, Simulation 69, 1997),
    at most half of the series; the rest in five rounds must then be steady by SNIA's rule.
    """
    series = np.asarray(values, np.float64)
    batches = np.asarray(rounds(values, len(series) // BATCH) if len(series) >= BATCH else [])
    if len(batches) < 2 * ROUNDS:
        return None
    first = len(series) - len(batches) * BATCH
    errors = [float(batches[cut:].var()) / (len(batches) - cut) for cut in range(len(batches) // 2 + 1)]
    cut = int(np.argmin(errors))
    start = first + cut * BATCH if cut else 0
    return start if steady(rounds(list(series[start:]))).steady else None


def trend_p(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Return the two-sided p of the Mann-Kendall test for a trend, None with too few values.

    The variance is corrected for autocorrelation (Hamed and Rao, A modified Mann-Kendall trend
    test for autocorrelated data, Journal of Hydrology 204, 1998): of the ranks of the series
    without its Sen slope, at lags where it cannot be chance. A series that never changes has
    no trend: 1.
    """
    series = np.asarray(values, np.float64)
    count = len(series)
    if count < MIN_TREND:
        return None
    differences = np.sign(series[None, :] - series[:, None])
    statistic = float(np.triu(differences, 1).sum())
    _, ties = np.unique(series, return_counts=True)
    variance = (
        count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    ) / 18
    if variance <= 0:
        return 1.0
    variance *= _correction(series)
    z = max(0.0, abs(statistic) - 1) / math.sqrt(variance)
    return 2 * normal_upper(z)


def _correction(series: NDArray[np.float64]) -> float:
    """Return by how much the variance grows; never below 1, which a short series would only feign."""
    count = len(series)
    ranks = average_ranks(series - sen_slope(series) * np.arange(count))
    deviations = ranks - ranks.mean()
    whole = float(deviations @ deviations)
    if whole <= 0:
        return 1.0
    lags = np.arange(1, count)
    autocorrelations = np.array([float(deviations[:-lag] @ deviations[lag:]) / whole for lag in lags])
    chance = NORMAL.inv_cdf(1 - LAG_LEVEL / 2) / math.sqrt(count)
    significant = np.where(np.abs(autocorrelations) > chance, autocorrelations, 0.0)
    # Only up to the first lag that may be chance: later ones are mostly noise.
    ends = np.flatnonzero(significant == 0)
    if len(ends):
        significant[ends[0] :] = 0.0
    weights = (count - lags) * (count - lags - 1) * (count - lags - 2)
    return max(1.0, 1 + 2 / (count * (count - 1) * (count - 2)) * float(weights @ significant))
