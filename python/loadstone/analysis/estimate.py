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
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Pair = tuple[NDArray[np.float64], NDArray[np.float64], str]
    """Numerators, denominators and the unit of a ratio."""

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
    return ratios([(numerators, denominators, unit)], strata)[0]


def ratios(pairs: Sequence[Pair], strata: NDArray[np.int64]) -> list[Estimate | None]:
    """Estimate several ratios over the same intervals, each as `ratio` does, in one go."""
    if len(strata) and (strata == strata[0]).all():
        # Nearly always: no part has to be copied out.
        parts = [_residuals(pairs)]
    else:
        parts = [
            _residuals([(y[strata == one], x[strata == one], unit) for y, x, unit in pairs])
            for one in np.unique(strata)
        ]
    of_pairs = zip(*parts, strict=True) if parts else [()] * len(pairs)
    return [
        _estimate(pair, [one for one in own if one is not None])
        for pair, own in zip(pairs, of_pairs, strict=True)
    ]


def _residuals(pairs: Sequence[Pair]) -> list[tuple[float, Caution | None] | None]:
    """Return the variance of the sum of residuals of each pair and its caution; None without data."""
    count = len(pairs[0][0])
    values, weights = np.array([one[0] for one in pairs]), np.array([one[1] for one in pairs])
    sums, wholes = values.sum(axis=1), weights.sum(axis=1)
    known = np.flatnonzero(wholes > 0)
    answers: list[tuple[float, Caution | None] | None] = [None] * len(pairs)
    if not len(known):
        return answers
    if count < MIN_INTERVALS:
        return [(math.nan, None) if whole > 0 else None for whole in wholes]
    residuals = values[known] - (sums[known] / wholes[known])[:, None] * weights[known]
    deviations = residuals - residuals.mean(axis=1)[:, None]
    for at, variance, own in zip(known, _long_run_variances(deviations), deviations, strict=True):
        whole_variance = count * variance
        answers[at] = whole_variance, _caution(own, whole_variance / count)
    return answers


def _estimate(pair: Pair, parts: Sequence[tuple[float, Caution | None]]) -> Estimate | None:
    numerators, denominators, unit = pair
    whole = float(denominators.sum())
    if whole <= 0:
        return None
    variances = [variance for variance, _ in parts]
    spread = math.sqrt(sum(variances)) / whole
    value = float(numerators.sum()) / whole
    if math.isnan(spread):
        return Estimate(value, None, len(numerators), unit)
    cautions = [caution for _, caution in parts if caution is not None]
    return Estimate(value, spread, len(numerators), unit, _together(variances, cautions))


def _caution(deviations: NDArray[np.float64], variance: float) -> Caution:
    """Return the caution for a long-run variance of a sequence, by its deviations from its mean.

    The correlation of neighbours is estimated too low by (1 + 4 r) / n (Kendall, Note on bias in
    the estimation of autocorrelation, Biometrika 41, 1954), its standard error is 1 / sqrt(n), of
    which half is added; from it follow the variance of a first-order process and the number of
    independent intervals. Tried with `lab.comparisons`.
    """
    count = len(deviations)
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
    return _long_run_variances((values - values.mean())[None, :])[0]


def _long_run_variances(deviations: NDArray[np.float64]) -> list[float]:
    """Return `long_run_variance` of several sequences of one length, a row each, by their deviations."""
    count = deviations.shape[1]
    size = 1 << (2 * count - 1).bit_length()
    spectra = np.fft.rfft(deviations, size)
    covariances = np.fft.irfft(spectra * np.conj(spectra), size)[:, :count] / count
    pairs = covariances[:, : count // 2 * 2].reshape(len(deviations), -1, 2).sum(axis=2)
    variances = []
    for own, first in zip(pairs, covariances[:, 0].tolist(), strict=True):
        ends = np.flatnonzero(own <= 0)
        positive = float((own[: ends[0]] if len(ends) else own).sum())
        variances.append(max(first * count / (count - 1), 2 * positive - first))
    return variances
