"""What an experiment could have seen: the least change it finds, and how many repeats find one.

Knows errors of logarithms and degrees of freedom. A contrast's error falls with the square root of
the number of repeats; the degrees of freedom grow with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.comparison.gate import ENOUGH, chance

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST: Final = math.log(11.0)
MOST_REPEATS: Final = 1000
FINEST: Final = 1e-6
"""Nobody asks for a smaller change than a millionth."""


def power(change: float, error: float, freedom: float, alpha: float) -> float:
    """Return how often a change of the logarithm by so much is found."""
    return chance(change, error, freedom, alpha)


def smallest(error_at: Callable[[float], float]) -> float | None:
    """Return the least change of the logarithm found in 80 of 100 cases; None: none below eleven times.

    `error_at`: how often a change of this size is.
    """
    low, high = 0.0, LARGEST
    if error_at(high) < ENOUGH:
        return None
    while high - low > max(1e-3 * high, FINEST):
        middle = (low + high) / 2
        low, high = (middle, high) if error_at(middle) < ENOUGH else (low, middle)
    return high


def more_repeats(
    change: float, error: float, freedom: float, alpha: float, *, repeats: int, per_repeat: float
) -> int | None:
    """Return how many repeats to add until a change is found in 80 of 100 cases; None: over a thousand.

    `per_repeat`: degrees of freedom that each further repeat brings.
    """

    def enough(more: int) -> bool:
        shrunk = error * math.sqrt(repeats / (repeats + more))
        return chance(change, shrunk, freedom + per_repeat * more, alpha) >= ENOUGH

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_REPEATS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
