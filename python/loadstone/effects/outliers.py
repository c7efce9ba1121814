"""Runs that are too far from what the others let expect of them.

Knows a fitted model. Takes no run out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.analysis.statistics.distributions import t_upper
from loadstone.effects.diagnostics import UNEQUAL
from loadstone.effects.findings import OutlierRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.metric_model import MetricModel
    from loadstone.effects.studied_metric import StudiedMetric


def outlier_runs(studied: Sequence[StudiedMetric]) -> list[OutlierRun]:
    """Return runs whose residual, without them in the error, is too far (Bonferroni over all runs)."""
    outliers = []
    own = [one for one in studied if not one.runs.again]
    for one in studied:
        shape, fitted = one.model.shape, one.model.fitted
        if shape.furthest is None or shape.expected is None or fitted.freedom < 4:
            continue
        least = far_p(one.model, shape.furthest)
        p = min(1.0, least * len(fitted.values) * len(own))
        if p < UNEQUAL:
            outliers.append(
                OutlierRun(
                    pattern=one.runs.pattern,
                    metric=one.runs.metric,
                    run=one.runs.rows[shape.furthest].run,
                    ratio=math.exp(float(one.model.measured[shape.furthest]) - shape.expected),
                    p=p,
                )
            )
    return outliers


def far_p(model: MetricModel, at: int) -> float:
    """Return the p-value of one run's residual with an error that it has no part in (Student's t)."""
    residuals = model.fitted.maker @ model.measured
    if model.unequal and model.shape.noisy is not None:
        residuals = residuals / model.shape.noisy
    room = float(model.fitted.maker[at, at])
    freedom = model.fitted.freedom - 1
    whole, own = float(residuals @ residuals), float(residuals[at] ** 2) / room
    rest = max(whole - own, 1e-30) / freedom
    return 2 * t_upper(math.sqrt(own / rest), freedom)
