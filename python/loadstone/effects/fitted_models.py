"""What is told of each model: its terms, its method, and why that one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.effects.design_matrix import written
from loadstone.effects.diagnostics import NOT_NORMAL, UNEQUAL
from loadstone.effects.findings import FittedModel
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.effects.metric_model import MetricModel
    from loadstone.effects.observations import Observations
    from loadstone.effects.studied_metric import StudiedMetric


def fitted_model(one: StudiedMetric, table: Observations) -> FittedModel:
    """Return what is told of a model."""
    model, design = one.model, one.model.design
    return FittedModel(
        pattern=one.runs.pattern,
        metric=one.runs.metric,
        runs=len(one.runs.rows),
        terms=[design.name(term.factors) for term in design.terms],
        blocks=design.blocks,
        method=model.method,
        freedom=float(model.fitted.freedom) if model.fitted.freedom > 0 else None,
        noise_share=math.expm1(math.sqrt(model.fitted.variance)) if model.fitted.freedom > 0 else None,
        normal_p=model.shape.normal_p,
        equal_noise_p=model.shape.equal_noise_p,
        notes=list(_notes(model, table)),
    )


def _notes(model: MetricModel, table: Observations) -> Iterator[str]:
    design, shape = model.design, model.shape
    if model.method == "none":
        yield say("effects.model.not_repeated")
    if design.pooled:
        yield say("effects.model.pooled", terms=written(", ".join(map(design.name, design.pooled))))
    for term, others in design.unknown:
        name = design.name(term)
        if others:
            yield say("effects.model.aliased", term=written(name), others=written(", ".join(others)))
        else:
            yield say("effects.model.missing_cells", term=written(name))
    if model.method == "bootstrap":
        yield say("effects.model.resistant", p=_p(shape.normal_p), limit=f"{NOT_NORMAL:g}")
    elif model.method == "welch":
        yield say("effects.model.unequal", p=_p(shape.equal_noise_p), limit=f"{UNEQUAL:g}")
    if design.taken_out in {"line", "blocks_and_line"}:
        yield say("effects.model.line")
    if design.plots is not None:
        yield say("effects.model.rarely", factors=", ".join(table.rarely))
    if design.cannot_part:
        key = "one_order" if design.taken_out == "blocks" else "not_parted"
        yield say(f"effects.model.{key}", factors=", ".join(design.cannot_part))


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
