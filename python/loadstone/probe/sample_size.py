"""How many I/Os an arm needs before an effect can be told from chance.

Knows the formula: n = 21.6 s^2 t / (ln r)^2 for both errors at 5 %, where s is the deviation of the
logarithm of a latency, r the ratio that matters, and t = (1 + c) / (1 - c) allows for the correlation c of
neighbours. Knows no device.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.probe.figures import Figures

BOTH_ERRORS: Final = 21.6
"""2 (1.96 + 1.32)^2: a 95 % interval, and 5 % of real effects missed."""
RATIO: Final = 1.15
"""An effect smaller than this changes no verdict."""
MOST_CORRELATED: Final = 0.8


def ios_per_arm(cv: float, correlation: float = 0.0, ratio: float = RATIO) -> int:
    """Return how many I/Os an arm needs. `cv`: deviation of a latency over its mean."""
    log_variance = math.log1p(cv * cv)
    rho = min(MOST_CORRELATED, max(0.0, correlation))
    wanted = BOTH_ERRORS * log_variance * (1 + rho) / (1 - rho) / math.log(ratio) ** 2
    return max(20, math.ceil(wanted))


def seconds_per_arm(main: Figures) -> float:
    """Return how long an arm of the run's own shape takes to do so many."""
    return ios_per_arm(main.cv, main.correlation) / max(main.rate, 1e-9)
