"""Fits made without one kind, or one family of kinds, so that they can be scored on what they never saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.fit import model
from lab.probes import rows
from lab.probes.draw import FAMILIES, LIES, NEVER_FITTED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.fit.model import Sample
    from lab.probes.rows import Row

    from loadstone.explanations.weights import Fitted


def each_kind(every: Sequence[Row], whole: Fitted) -> dict[str, Fitted]:
    """Return a fit without each kind of lie, by its name."""
    sample = model.sample(every)
    return {
        kind.name: _without(every, sample, whole, lambda row, name=kind.name: row["kind"] == name)  # type: ignore[misc] # bound by default
        for kind in LIES
        if kind.family not in NEVER_FITTED
    }


def each_family(every: Sequence[Row], whole: Fitted) -> dict[str, Fitted]:
    """Return a fit without each family of lies, by its name."""
    sample = model.sample(every)
    return {
        family: _without(
            every,
            sample,
            whole,
            lambda row, family=family: rows.kind_row(row).family == family,  # type: ignore[misc] # bound by default
        )
        for family in FAMILIES
        if family not in NEVER_FITTED
    }


def _without(every: Sequence[Row], sample: Sample, whole: Fitted, leave: Callable[[Row], bool]) -> Fitted:
    weights = model.rounded(model.fit_weights(sample, leave, whole.weights))
    probed, limited = model.fit_probed(sample, weights, leave)
    return whole.model_copy(
        update={
            "weights": weights,
            "findings": model.fit_findings(every, leave),
            "untried": model.fit_untried(every, leave),
            "probed": probed,
            "strange": model.fit_strange(sample, leave),
            "limited": limited,
        }
    )
