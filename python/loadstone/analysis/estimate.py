"""A number with its error, its count and its unit.

Knows how sure a rate or a mean is that was measured in intervals which follow each other,
and are therefore not independent. Knows nothing of where the numbers come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_INTERVALS: Final = 5
"""With fewer intervals there is no telling how much they vary, so there is no error."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`value` in `unit`, from `count` intervals. `error` is one standard error, `None` when not known."""

    value: float
    error: float | None
    count: int
    unit: str


def ratio(
    numerators: NDArray[np.float64],
    denominators: NDArray[np.float64],
    strata: NDArray[np.int64],
    unit: str,
) -> Estimate | None:
    """Estimate sum(numerators) / sum(denominators) over consecutive intervals; `None` without data.

    Operations over seconds is a rate; summed latency over operations is a mean. The error is
    the ratio estimator's (Cochran, Sampling Techniques, 3rd ed., section 6.3): with residuals
    r_i = y_i - R x_i, the standard error of R is sqrt(V(sum r)) / sum(x). Consecutive residuals
    are correlated (a slow second follows a slow second), so V uses `long_run_variance`.
    Stages do different things on purpose: each is a stratum with its own R, and variances add.
    """
    whole = float(denominators.sum())
    if whole <= 0:
        return None
    variances: list[float] = []
    for stratum in np.unique(strata):
        y, x = numerators[strata == stratum], denominators[strata == stratum]
        if x.sum() <= 0:
            continue
        enough = len(y) >= MIN_INTERVALS
        variances.append(len(y) * long_run_variance(y - y.sum() / x.sum() * x) if enough else math.nan)
    spread = math.sqrt(sum(variances)) / whole
    error = None if math.isnan(spread) else spread
    return Estimate(float(numerators.sum()) / whole, error, len(numerators), unit)


def long_run_variance(values: NDArray[np.float64]) -> float:
    """Return n times the variance of the mean of `values`, a stationary sequence with mean 0.

    Initial positive sequence estimator (Geyer, Practical Markov Chain Monte Carlo, Statistical
    Science 7, 1992, section 3.3): autocovariances are summed in adjacent pairs as long as a
    pair is positive. Never below what independent values would give, because a short run shows
    negative correlations that are not there.
    """
    count = len(values)
    deviations = values - values.mean()
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(deviations, size)
    covariances = np.fft.irfft(spectrum * np.conj(spectrum), size)[:count] / count
    pairs = covariances[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    kept = pairs[: ends[0]] if len(ends) else pairs
    independent = float(covariances[0]) * count / (count - 1)
    return max(independent, float(2 * kept.sum() - covariances[0]))
