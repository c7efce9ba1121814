"""Two measurements of the same thing: by how much they differ, and whether chance explains it.

Knows statistics of positive numbers that were measured in correlated intervals, or in several
runs. Knows no run and no metric by name.

Everything is done on the logarithm, so that a change is a factor and its interval never crosses
zero: with standard errors s of values x, the error of log(b/a) is sqrt((s_a/a)^2 + (s_b/b)^2)
(delta method), its degrees of freedom are Welch and Satterthwaite's (B. L. Welch, Biometrika 34,
1947), and p-values of one comparison are corrected for their number by Holm's procedure
(S. Holm, Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.estimate import long_run_variance
from loadstone.analysis.histogram import MIN_BEYOND
from loadstone.analysis.statistics.distributions import binomial_p, t_quantile, t_upper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LEVEL: Final = 0.95
REPLICATES: Final = 400
MIN_WINDOWS: Final = 8
BUCKET_ERROR: Final = 0.0079 / math.sqrt(3)
"""Standard error of a value that is known to within 0.79 %, evenly."""
NO_ERROR_FREEDOM: Final = 1e9
SEED: Final = 20260101
"""Any number: the same data always give the same interval."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value with one standard error and its degrees of freedom; both None when not known.

    `runs` is how many runs it is the mean of. The error of one run is from within it and knows
    nothing of how much runs differ. `widening`: a test takes the error as so much wider.
    `shared`: the error was taken from the other side, so that there is only one of them.
    `bound`: the error is at most this; the spread of repeats tells it better.
    `from_within`: repeats lie nearer to each other than each knows itself, and the error is what they know.
    """

    value: float
    error: float | None
    freedom: float | None
    runs: int = 1
    widening: float = 1.0
    shared: bool = False
    bound: bool = False
    from_within: bool = False


@dataclass(frozen=True, slots=True)
class Contrast:
    """How much `b` is above `a`, as a share (0.1: ten percent), with a 95 % interval.

    `p` is the chance of a difference at least this large when there is none; after `holm` it is
    the corrected one. Everything but `change` is None where a side has no error.
    """

    change: float
    low: float | None
    high: float | None
    p: float | None


def contrast(a: Sample, b: Sample, level: float = LEVEL) -> Contrast | None:
    """Compare two samples; None when one of the values is not above zero."""
    if a.value <= 0 or b.value <= 0:
        return None
    log = math.log(b.value / a.value)
    error = ratio_error(a, b)
    if error is None:
        return Contrast(math.expm1(log), None, None, None)
    if error.of_log == 0:
        return Contrast(math.expm1(log), math.expm1(log), math.expm1(log), 1.0 if log == 0 else 0.0)
    reach = t_quantile(0.5 + level / 2, error.freedom) * error.of_log
    p = 2 * t_upper(abs(log) / error.of_log, error.freedom)
    return Contrast(math.expm1(log), math.expm1(log - reach), math.expm1(log + reach), p)


@dataclass(frozen=True, slots=True)
class RatioError:
    """The standard error of the logarithm of a ratio, and its degrees of freedom."""

    of_log: float
    freedom: float


def ratio_error(a: Sample, b: Sample) -> RatioError | None:
    """Return the error of the logarithm of b over a; None where a side has none."""
    if a.value <= 0 or b.value <= 0 or a.error is None or b.error is None or not a.freedom or not b.freedom:
        return None
    parts = [one.widening * (one.error or 0.0) / one.value for one in (a, b)]
    whole = math.hypot(*parts)
    if whole == 0:
        return RatioError(0.0, NO_ERROR_FREEDOM)
    if a.shared or b.shared:
        # Both sides have the spread of the same runs.
        return RatioError(whole, min(a.freedom, b.freedom))
    beneath = sum(part**4 / (one.freedom or 1.0) for part, one in zip(parts, (a, b), strict=True))
    return RatioError(whole, whole**4 / beneath)


def of_runs(samples: Sequence[Sample]) -> Sample:
    """Return the mean of several runs with the error that their spread shows; one run as it is."""
    if len(samples) == 1:
        return samples[0]
    values = np.array([one.value for one in samples])
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return Sample(float(values.mean()), error, len(values) - 1, len(values))


def failures(a: tuple[int, int], b: tuple[int, int]) -> float | None:
    """Return the p-value of two shares of failed I/Os, each (failed, all); None without I/Os.

    Given the number of failures in all, those of one side are binomial when nothing differs
    (J. Przyborowski and H. Wilenski, Biometrika 31, 1940).
    """
    (a_failed, a_all), (b_failed, b_all) = a, b
    if not a_all or not b_all:
        return None
    if not a_failed + b_failed:
        return 1.0
    return binomial_p(b_failed, a_failed + b_failed, b_all / (a_all + b_all))


def holm(ps: Sequence[float]) -> list[float]:
    """Correct p-values for being one of many, in their own order."""
    order = sorted(range(len(ps)), key=lambda at: ps[at])
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[at]))
        corrected[at] = highest
    return corrected


def percentile_errors(
    windows: NDArray[np.float64], values: NDArray[np.float64], percents: Sequence[float]
) -> dict[float, float]:
    """Return the relative standard errors of percentiles over consecutive windows.

    `windows` has a row per window and a column per bucket of `values` (ns). Windows follow each
    other and are not independent: whole blocks of them are drawn, around the end (D. N. Politis
    and J. P. Romano, A circular block-resampling procedure for stationary data, 1992), each as
    long as the correlation of the windows' means lasts. With too few windows or samples beyond
    it a percentile is missing.
    """
    count = len(windows)
    sizes = windows.sum(axis=1)
    whole = sizes.sum()
    known = [one for one in percents if whole * min(one / 100, 1 - one / 100) >= MIN_BEYOND]
    if count < MIN_WINDOWS or not known:
        return {}
    length = _block_length(windows @ values / np.maximum(sizes, 1.0))
    generator = np.random.default_rng(SEED)
    starts = generator.integers(0, count, (REPLICATES, math.ceil(count / length)))
    drawn = ((starts[:, :, None] + np.arange(length)) % count).reshape(REPLICATES, -1)[:, :count]
    places = (drawn + np.arange(REPLICATES)[:, None] * count).ravel()
    drawn_times = np.bincount(places, minlength=REPLICATES * count).reshape(REPLICATES, count)
    weights = drawn_times.astype(np.float64)
    upto = np.cumsum(windows, axis=1)
    errors = {}
    for percent in known:
        reached = values[first_reaching(weights, upto, percent / 100)]
        errors[percent] = math.hypot(float(np.log(reached).std(ddof=1)), BUCKET_ERROR)
    return errors


def first_reaching(
    weights: NDArray[np.float64], upto: NDArray[np.float64], share: float
) -> NDArray[np.int64]:
    """Return for each row of weights the first bucket up to which the weighted windows hold a share.

    `upto` has a row per window: how many samples lie in its buckets up to each. By bisection: only some ten
    of its columns are added up for each row of weights.
    """
    wanted = share * (weights @ upto[:, -1])
    low = np.zeros(len(weights), np.int64)
    high = np.full(len(weights), upto.shape[1] - 1)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        reached = np.einsum("rw,wr->r", weights, upto[:, middle]) >= wanted
        high = np.where(open_ & reached, middle, high)
        low = np.where(open_ & ~reached, middle + 1, low)
    return low


def _block_length(means: NDArray[np.float64]) -> int:
    """Return twice the integrated autocorrelation time of the windows' means, in windows."""
    deviations = means - means.mean()
    variance = float(deviations.var(ddof=1))
    if variance == 0:
        return 1
    lasting = long_run_variance(deviations) / variance
    return int(np.clip(math.ceil(2 * lasting), 1, len(means) // 4))
