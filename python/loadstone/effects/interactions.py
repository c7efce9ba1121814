"""What is said of two factors together: whether the effect of one depends on the level of the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.effects import power
from loadstone.effects.aliases import aliases_of
from loadstone.effects.design_matrix import written
from loadstone.effects.findings import Interaction, InteractionContrast, SimpleEffect
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.contrast import KnownContrast
    from loadstone.effects.observations import Observations
    from loadstone.effects.studied_metric import PairContrasts, StudiedMetric


def interaction(
    one: StudiedMetric,
    pair: PairContrasts,
    p: float | None,
    *,
    limits: tuple[float, float, float],
    table: Observations,
) -> Interaction:
    """Return what is said of an interaction.

    `p` is the corrected one; `limits`: alpha, the margin, and the alpha of the strictest step.
    """
    alpha, margin, each = limits
    first, second = (table.factors[at].name for at in pair.factors)
    largest = max(pair.contrasts, key=lambda contrast: _clearness(contrast[2]), default=None)
    deciding_p = p if not one.runs.again else pair.p
    aliases = aliases_of(one, pair.factors, table)
    known = pair.p is not None
    least = power.smallest(lambda size: _power_of_one(pair, size, each)) if known else None
    return Interaction(
        pattern=one.runs.pattern,
        metric=one.runs.metric,
        factors=(first, second),
        found=None if deciding_p is None else deciding_p < alpha,
        p=p,
        raw_p=pair.p,
        largest=None
        if largest is None
        else InteractionContrast(levels=largest[0], at=largest[1], change=largest[2].ratio()),
        simple=[
            SimpleEffect(
                factor=table.factors[simple.factor].name,
                level=simple.levels[0],
                against=simple.levels[1],
                other=table.factors[simple.other].name,
                at=simple.at,
                change=simple.known.ratio(),
            )
            for simple in pair.simple
        ],
        first=one.runs.first,
        again=one.runs.again,
        smallest_seen=None if least is None else math.expm1(least),
        power=None if not known else _power_of_one(pair, math.log1p(margin), each),
        aliased_with=aliases,
        why=None if pair.contrasts else _why_unknown(one, pair, aliases),
    )


def _why_unknown(one: StudiedMetric, pair: PairContrasts, aliases: Sequence[str]) -> str:
    pooled = pair.factors in one.model.design.pooled
    if aliases and not pooled:
        return say("effects.interaction.aliased", others=written(", ".join(aliases)))
    return say(f"effects.interaction.{'pooled' if pooled else 'missing_cells'}")


def _power_of_one(pair: PairContrasts, size: float, alpha: float) -> float:
    """Return how often one combination that departs by so much is seen, in the combination hardest to see."""
    chances = [pair.test.found(size * one, alpha) for one in pair.departures] if pair.test else []
    return min((one for one in chances if one is not None), default=0.0)


def _clearness(known: KnownContrast) -> float:
    return abs(known.log) / known.error if known.error else abs(known.log)
