"""Student's t, chi-square, Fisher's F and the binomial distribution, as intervals and tests need them.

Those are SciPy's; the test of a share is not: SciPy's takes 0.5 s to load. Knows no measurement.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

from scipy import special

NORMAL: Final = NormalDist()
TIES: Final = 1 + 1e-7
"""Probabilities this near each other count as equal, as in R and SciPy."""


def t_upper(value: float, freedom: float) -> float:
    """Return how often Student's t with so many degrees of freedom is above a value."""
    return float(special.stdtr(freedom, -value))


def t_quantile(share: float, freedom: float) -> float:
    """Return the value that Student's t is below with a probability."""
    return float(special.stdtrit(freedom, share))


def f_upper(value: float, first: float, second: float) -> float:
    """Return how often Fisher's F with so many degrees of freedom is above a value."""
    return float(special.fdtrc(first, second, value))


def chi_square_upper(value: float, freedom: int) -> float:
    """Return how often chi-square is above a value."""
    return float(special.chdtrc(freedom, value))


def normal_upper(value: float) -> float:
    """Return how often a normal value is so many standard deviations above its mean."""
    return math.erfc(value / math.sqrt(2)) / 2


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
    below = float(special.betainc(tries - low, low + 1, 1 - chance)) if low >= 0 else 0.0
    above = float(special.betainc(high, tries - high + 1, chance)) if high <= tries else 0.0
    return min(1.0, below + above)
