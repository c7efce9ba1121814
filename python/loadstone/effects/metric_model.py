"""The model of one metric of one pattern: which method its errors allow, and any contrast with its interval.

Knows a design and positive values. Knows no other metric, no test beside its own, and no sentence.

On the logarithm a change is a factor. A contrast has the widest of its intervals: with the error
pooled over all runs, and with the noise of each level of each factor; no test of the noise chooses
between them. Where residuals are not normal, Huber's estimate and the bootstrap take the place of
the pooled error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.statistics.distributions import t_quantile
from loadstone.effects import bootstrap, diagnostics, fit
from loadstone.effects.contrast import LEVEL, KnownContrast
from loadstone.effects.diagnostics import NOT_NORMAL, UNEQUAL
from loadstone.effects.fit import GroupNoise
from loadstone.effects.joint_test import JointTest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from loadstone.effects.bootstrap import DrawnFits
    from loadstone.effects.design_matrix import Design
    from loadstone.effects.diagnostics import ErrorShape
    from loadstone.effects.findings import Method
    from loadstone.effects.fit import ContrastError, LinearFit

    Numbers = NDArray[np.float64]

BOOTSTRAP_FREEDOM: Final = 6
BETWEEN: Final = 0.05
"""Above this share between plots the error of a contrast is that of plots."""


@dataclass(frozen=True, slots=True)
class MetricModel:
    """One metric of one pattern, fitted."""

    design: Design
    fitted: LinearFit
    measured: Numbers
    """Logarithms of what was measured."""
    method: Method
    shape: ErrorShape
    floor: float
    drawn: DrawnFits | None
    noises: tuple[GroupNoise, ...] = ()
    """Of each factor, how noisy each of its levels is."""

    @property
    def unequal(self) -> bool:
        """Whether levels are shown to differ in noise."""
        return self.shape.equal_noise_p is not None and self.shape.equal_noise_p < UNEQUAL

    def known(self, contrast: Numbers) -> KnownContrast:
        """Return a contrast with its error."""
        log = float(contrast @ self.fitted.coefficients)
        pooled = fit.pooled_error(self.fitted, contrast, self.floor)
        if pooled is None:
            return KnownContrast(log, None, None)
        plots = self.design.plots
        if plots is not None and fit.between_plots(self.fitted, contrast, plots) > BETWEEN:
            whole = fit.cluster_error(self.fitted, contrast, plots, self.floor)
            return (
                KnownContrast(log, None, None)
                if whole is None
                else KnownContrast(log, whole.error, whole.freedom)
            )
        if self.drawn is not None:
            reach = self.drawn.critical(contrast, LEVEL)
            usual = t_quantile(0.5 + LEVEL / 2, pooled.freedom)
            pooled = fit.ContrastError(pooled.error * reach / usual, pooled.freedom)
        weights = contrast @ self.fitted.solver
        widest = max((pooled, *(one.error(weights, self.floor) for one in self.noises)), key=_reach)
        return KnownContrast(log, widest.error, widest.freedom)

    def together(self, columns: Sequence[int], contrasts: Sequence[Numbers]) -> JointTest | None:
        """Return the test of several coefficients, which make these contrasts; None without an error."""
        if self.fitted.freedom < 1 or not contrasts:
            return None
        plots = self.design.plots
        across = plots is not None and any(
            fit.between_plots(self.fitted, one, plots) > BETWEEN for one in contrasts
        )
        known = tuple((one, self.known(one)) for one in contrasts)
        shared = len(columns) > 1 and self.drawn is None and not across
        wider = max(self._wider(*pair) for pair in known) if shared else None
        return JointTest(self.fitted, tuple(columns), known, self.floor, wider)

    def _wider(self, contrast: Numbers, known: KnownContrast) -> float:
        """Return how many times wider the interval of a contrast is than with the pooled error."""
        pooled = fit.pooled_error(self.fitted, contrast, self.floor)
        if pooled is None or known.error is None or known.freedom is None or pooled.error == 0:
            return 1.0
        return _reach(fit.ContrastError(known.error, known.freedom)) / _reach(pooled)


def make(
    design: Design, values: Sequence[float], *, floor: float, chance: np.random.Generator
) -> MetricModel:
    """Fit one metric; `floor` is the least relative error that any run has."""
    logs = np.log(np.array(values, dtype=np.float64))
    fitted = fit.fit(design.matrix, logs)
    if fitted.freedom < 1:
        return MetricModel(design, fitted, logs, "none", diagnostics.UNKNOWN, floor, None)
    groups = _groups(design)
    shape = diagnostics.shape(fitted, groups, chance)
    odd = shape.normal_p is not None and shape.normal_p < NOT_NORMAL
    unequal = shape.equal_noise_p is not None and shape.equal_noise_p < UNEQUAL
    if odd and shape.noisy is not None and fitted.freedom >= BOOTSTRAP_FREEDOM:
        _, huber_values = fit.huber(design.matrix, logs[:, None], shape.noisy)
        resistant = fit.fit(design.matrix, huber_values[:, 0])
        drawn = bootstrap.draw(resistant, logs, chance, shape.noisy)
        return MetricModel(
            design, resistant, logs, "bootstrap", shape, floor, drawn, _noises(resistant, groups)
        )
    return MetricModel(
        design, fitted, logs, "welch" if unequal else "t", shape, floor, None, _noises(fitted, groups)
    )


def _noises(fitted: LinearFit, groups: Sequence[NDArray[np.int64]]) -> tuple[GroupNoise, ...]:
    return tuple(noise for one in groups if (noise := GroupNoise.of(fitted, one)) is not None)


def _reach(error: ContrastError) -> float:
    """Return half the width of an interval."""
    return t_quantile(0.5 + LEVEL / 2, error.freedom) * error.error


def _groups(design: Design) -> list[NDArray[np.int64]]:
    """Return for each factor the number of each run's level."""
    mains = [term for term in design.terms if len(term.factors) == 1]
    return [
        np.unique(design.matrix[:, list(term.columns)], axis=0, return_inverse=True)[1].ravel()
        for term in mains
    ]
