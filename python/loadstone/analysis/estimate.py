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


MOST_CORRELATED: Final = 0.95
"""Of neighbouring intervals: more would leave nothing to be said of any run."""
MOST_SHARED: Final = 0.5
"""Of the variance that the run's own mean takes with it."""


@dataclass(frozen=True, slots=True)
class Caution:
    """What a test needs beside a standard error of few intervals: how much wider it may be, and its freedom.

    A short run shows less correlation than there is, so that its error is too small more often
    than too large, and a test would find differences that are not there.
    """

    widening: float
    freedom: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """`value` in `unit`, from `count` intervals. `error` is one standard error, `None` when not known."""

    value: float
    error: float | None
    count: int
    unit: str
    caution: Caution | None = None
    """For tests; None where the error is not of intervals that follow each other."""


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
    cautions: list[Caution] = []
    for stratum in np.unique(strata):
        y, x = numerators[strata == stratum], denominators[strata == stratum]
        if x.sum() <= 0:
            continue
        enough = len(y) >= MIN_INTERVALS
        residuals = y - y.sum() / x.sum() * x
        variances.append(len(y) * long_run_variance(residuals) if enough else math.nan)
        cautions += [_caution(residuals, variances[-1] / len(y))] if enough else []
    spread = math.sqrt(sum(variances)) / whole
    value = float(numerators.sum()) / whole
    if math.isnan(spread):
        return Estimate(value, None, len(numerators), unit)
    return Estimate(value, spread, len(numerators), unit, _together(variances, cautions))


def _caution(values: NDArray[np.float64], variance: float) -> Caution:
    """Return the caution for a long-run variance of a sequence with mean 0.

    The correlation of neighbours is estimated too low by (1 + 4 r) / n (Kendall, Note on bias in
    the estimation of autocorrelation, Biometrika 41, 1954), its standard error is 1 / sqrt(n), of
    which half is added; from it follow the variance of a first-order process and the number of
    independent intervals. Tried with `lab.comparisons`.
    """
    count = len(values)
    deviations = values - values.mean()
    square = float(deviations @ deviations)
    if not square:
        return Caution(1.0, count - 1.0)
    correlation = float(deviations[1:] @ deviations[:-1]) / square
    near = correlation + (1 + 4 * correlation) / count + 0.5 / math.sqrt(count)
    near = min(max(near, 0.0), MOST_CORRELATED)
    lasting = (1 + near) / (1 - near)
    wide = square / (count - 1) * lasting / (1 - min(MOST_SHARED, lasting / count))
    return Caution(math.sqrt(max(1.0, wide / variance)), max(1.0, count / lasting - 1))


def _together(variances: list[float], cautions: list[Caution]) -> Caution | None:
    """Return the caution for a sum of variances (Welch and Satterthwaite)."""
    wide = [one * caution.widening**2 for one, caution in zip(variances, cautions, strict=True)]
    if not sum(wide):
        return cautions[0] if cautions else None
    parts = sum(one**2 / caution.freedom for one, caution in zip(wide, cautions, strict=True))
    return Caution(math.sqrt(sum(wide) / sum(variances)), sum(wide) ** 2 / parts)


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
    positive_pairs = pairs[: ends[0]] if len(ends) else pairs
    independent = float(covariances[0]) * count / (count - 1)
    return max(independent, float(2 * positive_pairs.sum() - covariances[0]))
