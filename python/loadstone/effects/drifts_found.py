"""Which metrics moved with the time of the experiment, all of them corrected for together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.effects import tests_together
from loadstone.effects.findings import DriftFound
from loadstone.effects.studied_metric import made_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.studied_metric import StudiedMetric


def drifts_found(studied: Sequence[StudiedMetric], alpha: float) -> list[DriftFound]:
    """Return what is said of the drift of each metric."""
    ps = tests_together.corrected(
        [made_test(one, one.drift.change.p if one.drift.change else None) for one in studied]
    )
    drifts = []
    for one, p in zip(studied, ps, strict=True):
        change = one.drift.change
        deciding_p = p if not one.runs.again or change is None else change.p
        drifts.append(
            DriftFound(
                pattern=one.runs.pattern,
                metric=one.runs.metric,
                change=None if change is None else change.ratio(p),
                found=None if deciding_p is None else deciding_p < alpha,
                taken_out=one.model.design.taken_out,
                confounded=list(one.model.design.cannot_part),
                why=one.drift.why,
            )
        )
    return drifts
