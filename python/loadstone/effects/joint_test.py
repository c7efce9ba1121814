"""Several coefficients at once: whether all are zero, and which sizes of theirs would have been found.

Knows a fit and the contrasts that these coefficients make. The test is Fisher's F, with the pooled error
made as much wider as the widest interval of the contrasts is. Where they share no error (the bootstrap, or
settings that are made rarely), the clearest contrast counts, with Bonferroni's correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.comparison.gate import chance
from loadstone.effects import fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.effects.contrast import KnownContrast
    from loadstone.effects.fit import LinearFit

    Numbers = NDArray[np.float64]

LARGEST_SHIFT: Final = 1e4
"""Beyond this noncentrality nothing is missed."""


@dataclass(frozen=True, slots=True)
class JointTest:
    """The test of some coefficients; `wider` is None where their contrasts share no error."""

    fitted: LinearFit
    columns: tuple[int, ...]
    contrasts: tuple[tuple[Numbers, KnownContrast], ...]
    floor: float
    wider: float | None

    @property
    def p(self) -> float | None:
        """Chance of coefficients at least as far from zero when all are zero."""
        if self.wider is None:
            ps = [p for _, known in self.contrasts if (p := known.p) is not None]
            return min(1.0, len(ps) * min(ps)) if ps else None
        part = self.fitted.coefficients[list(self.columns)]
        if self._variance == 0:
            return 0.0 if np.abs(part).max() > 0 else 1.0
        size = self._shift(part) / len(self.columns)
        return fit.f_upper(size, len(self.columns), self.fitted.freedom)

    def found(self, part: Numbers, alpha: float) -> float | None:
        """Return how often coefficients of this size are told from zero; None where no error is known."""
        if self.wider is None:
            sizes = [
                (abs(float(row[list(self.columns)] @ part)), known.error, known.freedom)
                for row, known in self.contrasts
                if known.error is not None and known.freedom is not None
            ]
            each = alpha / max(1, len(sizes))
            return max((chance(size, error, freedom, each) for size, error, freedom in sizes), default=None)
        if self._variance == 0:
            return float(np.abs(part).max() > 0)
        shift = self._shift(part)
        if shift > LARGEST_SHIFT:
            return 1.0
        return fit.f_beyond(alpha, len(self.columns), self.fitted.freedom, shift)

    @property
    def _variance(self) -> float:
        return max(self.fitted.variance, self.floor**2) * (self.wider or 1.0) ** 2

    def _shift(self, part: Numbers) -> float:
        """Return the sum of squares of some coefficients, in variances."""
        columns = list(self.columns)
        covariance = (self.fitted.solver @ self.fitted.solver.T)[np.ix_(columns, columns)]
        return float(part @ np.linalg.solve(covariance, part)) / self._variance
