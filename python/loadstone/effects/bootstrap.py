"""How far a contrast's t goes by chance where errors are not normal: residuals drawn again within the design.

Knows matrices and a seed. The residuals of the fit are enlarged by their leverage, drawn with
replacement and laid on the fit; each such experiment is fitted as the real one was, and its t is
kept without its sign (P. Hall, The Bootstrap and Edgeworth Expansion, 1992, sections 3.5 and 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.effects.fit import huber

if TYPE_CHECKING:
    from loadstone.effects.fit import LinearFit, Numbers

DRAWS: Final = 499
NO_ROOM: Final = 1e-6


@dataclass(frozen=True, slots=True)
class DrawnFits:
    """What was fitted of each experiment that was drawn."""

    solver: Numbers
    coefficients: Numbers
    scale: Numbers

    def critical(self, contrast: Numbers, level: float) -> float:
        """Return the value that a contrast's |t| stays below with probability `level`."""
        length = float(np.linalg.norm(contrast @ self.solver))
        sizes = np.abs(contrast @ self.coefficients) / np.maximum(length * self.scale, 1e-300)
        return float(np.quantile(sizes, level))


def draw(fitted: LinearFit, values: Numbers, chance: np.random.Generator, noisy: Numbers) -> DrawnFits:
    """Draw the experiments; `fitted` is the fit of Huber's values, `values` what was measured.

    `noisy`: of each run how noisy its level is.
    """
    room = np.diag(fitted.maker)
    residuals = values - fitted.matrix @ fitted.coefficients
    used = room > NO_ROOM
    enlarged = residuals[used] / np.sqrt(room[used]) / noisy[used]
    drawn = chance.choice(enlarged - enlarged.mean(), size=(len(values), DRAWS)) * noisy[:, None]
    coefficients, huber_values = huber(fitted.matrix, drawn, noisy)
    left = huber_values - fitted.matrix @ coefficients
    return DrawnFits(fitted.solver, coefficients, np.sqrt((left**2).sum(axis=0) / fitted.freedom))
