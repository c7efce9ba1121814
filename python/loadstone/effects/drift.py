"""Whether a metric moved with the time of the experiment, whatever was set.

Knows the design without its blocks and a line of time beside it. Knows no correction for many tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadstone.effects import fit
from loadstone.effects.contrast import KnownContrast
from loadstone.effects.design_matrix import MAX_INFLATION, line_of
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.metric_model import MetricModel
    from loadstone.effects.observations import Observation

MIN_FREEDOM = 2


@dataclass(frozen=True, slots=True)
class DriftLine:
    """The change of the logarithm over the whole experiment; None where it cannot be known, and why."""

    change: KnownContrast | None
    why: str | None


def drift(model: MetricModel, rows: Sequence[Observation]) -> DriftLine:
    """Fit a straight line of time beside the levels."""
    design = model.design
    without = [at for at in range(design.matrix.shape[1]) if at not in design.nuisance]
    plain = design.matrix[:, without]
    both = np.hstack([plain, line_of(rows)])
    if len(rows) - both.shape[1] < MIN_FREEDOM:
        return DriftLine(None, say("effects.drift.few"))
    time = line_of(rows)[:, 0]
    rest = time - plain @ np.linalg.lstsq(plain, time, rcond=None)[0]
    spread = float(((time - time.mean()) ** 2).sum())
    if spread == 0 or spread > MAX_INFLATION * float(rest @ rest):
        return DriftLine(None, say("effects.drift.follows"))
    fitted = fit.fit(both, model.fitted.values)
    contrast = np.zeros(both.shape[1])
    contrast[-1] = 1.0
    plots = design.plots
    error = (
        fit.pooled_error(fitted, contrast, model.floor)
        if plots is None
        else fit.cluster_error(fitted, contrast, plots, model.floor)
    )
    log = float(fitted.coefficients[-1])
    return DriftLine(
        KnownContrast(log, error.error, error.freedom) if error else KnownContrast(log, None, None), None
    )
