"""Student's t, chi-square and the binomial distribution, as far as intervals and tests need them.

SciPy has all of them; it takes 143 MB and 0.8 s to load for these five functions
(docs/libraries.md). The tests hold each against SciPy. Knows no measurement.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

NORMAL: Final = NormalDist()
NEARLY_NORMAL: Final = 1e7
"""From so many degrees of freedom on Student's t differs from the normal distribution by rounding only."""
SMALLEST: Final = 1e-300
PRECISION: Final = 1e-15
MOST_STEPS: Final = 60
TIES: Final = 1 + 1e-7
"""Probabilities this near each other count as equal, as in R and SciPy."""


def t_upper(value: float, freedom: float) -> float:
    """Return how often Student's t with so many degrees of freedom is above a value."""
    square = value * value
    if freedom > NEARLY_NORMAL:
        return normal_upper(value)
    if square < 1:
        # Near the middle, where the share of the tails would be 1 less next to nothing.
        middle = beta_share(0.5, freedom / 2, square / (freedom + square)) / 2
        return 0.5 - math.copysign(middle, value)
    tail = beta_share(freedom / 2, 0.5, freedom / (freedom + square)) / 2
    return tail if value > 0 else 1 - tail


def normal_upper(value: float) -> float:
    """Return how often a normal value is so many standard deviations above its mean."""
    return math.erfc(value / math.sqrt(2)) / 2


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: float) -> float:
    """Return the value that Student's t is below with probability `share`, which is 0.5 to 1."""
    if freedom > NEARLY_NORMAL:
        return NORMAL.inv_cdf(share)
    quantile = 0.0
    while t_upper(2 * quantile + 1, freedom) > 1 - share:
        quantile = 2 * quantile + 1
    # Above zero the upper share falls ever more slowly: Newton's steps end short of the value, never beyond.
    log_density = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    for _ in range(MOST_STEPS):
        density = math.exp(log_density - (freedom + 1) / 2 * math.log1p(quantile * quantile / freedom))
        step = (t_upper(quantile, freedom) - (1 - share)) / density
        quantile += step
        if abs(step) <= PRECISION * quantile:
            break
    return quantile


def chi_square_upper(value: float, freedom: int) -> float:
    """Return how often chi-square with a whole number of degrees of freedom is above a value."""
    half = value / 2
    if half <= 0:
        return 1.0
    above = math.exp(-half) if freedom % 2 == 0 else math.erfc(math.sqrt(half))
    for twice in range(2 - freedom % 2, freedom, 2):
        above += math.exp(twice / 2 * math.log(half) - half - math.lgamma(twice / 2 + 1))
    return min(above, 1.0)


def binomial_p(found: int, tries: int, chance: float) -> float:
    """Return the exact two-sided p-value of `found` successes: of all results as unlikely as this one."""

    def log_of(number: int) -> float:
        ways = math.lgamma(tries + 1) - math.lgamma(number + 1) - math.lgamma(tries - number + 1)
        return ways + number * math.log(chance) + (tries - number) * math.log1p(-chance)

    if not 0 < chance < 1:
        return float(found == tries * chance)
    most = min(tries, int((tries + 1) * chance))
    limit = log_of(found) + math.log(TIES)
    if log_of(most) <= limit:
        return 1.0
    # On the other side of the most likely number: the first that is no more likely than `found`.
    near, far = (most, tries + 1) if found < most else (most, -1)
    while abs(far - near) > 1:
        middle = (near + far) // 2
        near, far = (middle, far) if log_of(middle) > limit else (near, middle)
    low, high = min(found, far), max(found, far)
    below = beta_share(tries - low, low + 1, 1 - chance) if low >= 0 else 0.0
    above = beta_share(high, tries - high + 1, chance) if high <= tries else 0.0
    return min(1.0, below + above)


def beta_share(a: float, b: float, at: float) -> float:
    """Return the regularized incomplete beta function.

    By the continued fraction of DLMF 8.17.22 with Lentz's method, on the side where it converges.
    """
    if at <= 0:
        return 0.0
    if at >= 1:
        return 1.0
    if at > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - at)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(at) + b * math.log1p(-at)
    # Written out where a function would do: a comparison of studies goes through this half a million times.
    first = 1 - (a + b) * at / (a + 1)
    ratio, inverse = 1.0, 1 / (first if abs(first) > SMALLEST else SMALLEST)
    fraction = inverse
    step = 0
    while True:
        step += 1
        twice = a + 2 * step
        for term in (
            step * (b - step) * at / ((twice - 1) * twice),
            -(a + step) * (a + b + step) * at / (twice * (twice + 1)),
        ):
            below, ratio = 1 + term * inverse, 1 + term / ratio
            if -SMALLEST <= below <= SMALLEST:
                below = SMALLEST
            if -SMALLEST <= ratio <= SMALLEST:
                ratio = SMALLEST
            inverse = 1 / below
            fraction *= inverse * ratio
        if abs(inverse * ratio - 1) < PRECISION or step > 100_000:
            return math.exp(log) * fraction / a
