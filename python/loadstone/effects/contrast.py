"""One contrast of logarithms with its error: its interval, its p-value, and the ratio it stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from loadstone.analysis.statistics.distributions import t_quantile, t_upper
from loadstone.effects.findings import RatioInterval

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class KnownContrast:
    """A contrast of logarithms. `error` is scaled so that Student's t with `freedom` gives the interval."""

    log: float
    error: float | None
    freedom: float | None

    @property
    def p(self) -> float | None:
        """Chance of a contrast at least as far from zero when there is none."""
        if self.error is None or self.freedom is None:
            return None
        if self.error == 0:
            return 1.0 if self.log == 0 else 0.0
        return 2 * t_upper(abs(self.log) / self.error, self.freedom)

    def interval(self, level: float = LEVEL) -> tuple[float, float] | None:
        """Return the ends of its interval, as logarithms."""
        if self.error is None or self.freedom is None:
            return None
        reach = t_quantile(0.5 + level / 2, self.freedom) * self.error
        return self.log - reach, self.log + reach

    def ratio(self, p: float | None = None) -> RatioInterval:
        """Return it as a ratio; `p` is the corrected one."""
        ends = self.interval()
        low, high = (None, None) if ends is None else (as_ratio(ends[0]), as_ratio(ends[1]))
        return RatioInterval(ratio=as_ratio(self.log), low=low, high=high, p=p, raw_p=self.p)


def as_ratio(log: float) -> float:
    """Return the ratio that a logarithm stands for; what is beyond all numbers as the largest."""
    return math.exp(min(log, 700.0))
