"""What is said of two levels of a factor: how large the change is, how sure, and what could have been seen.

Knows a contrast with its error and its p-value after correction. Corrects nothing itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.effects import power
from loadstone.effects.aliases import aliases_of
from loadstone.effects.contrast import as_ratio
from loadstone.effects.design_matrix import written
from loadstone.effects.findings import EffectJudgement, Interaction, LevelEffect
from loadstone.effects.observations import LARGER_IS_BETTER
from loadstone.effects.shares import TIME
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.effects.contrast import KnownContrast
    from loadstone.effects.observations import Observations
    from loadstone.effects.studied_metric import MainContrast, StudiedMetric


def level_effect(
    one: StudiedMetric,
    main: MainContrast,
    p: float | None,
    *,
    limits: tuple[float, float, float, float],
    interactions: Sequence[Interaction],
    table: Observations,
) -> LevelEffect:
    """Return what is said of two levels.

    `p` is the corrected one; `limits`: alpha, the margin, and the alphas of the strictest and the last step.
    """
    alpha, margin, each, last = limits
    runs, model, known = one.runs, one.model, main.known
    name = table.factors[main.factor].name
    raw = _raw(known) if runs.again else p
    judgement = _judged(one, name, known, raw, alpha=alpha, margin=margin, table=table)
    is_open = judgement == "open"
    could = (
        (None, None, None) if known is None else _could(one, known, math.log1p(margin), each, more=is_open)
    )
    aliases = aliases_of(one, (main.factor,), table)
    ends = None if known is None or p is None or p < alpha or runs.again else known.interval(1 - last)
    return LevelEffect(
        pattern=runs.pattern,
        metric=runs.metric,
        factor=name,
        level=main.level,
        against=main.against,
        change=None if known is None else known.ratio(p),
        together=None if ends is None else (as_ratio(ends[0]), as_ratio(ends[1])),
        judgement=judgement,
        method=model.method,
        first=runs.first,
        again=runs.again,
        smallest_seen=could[0],
        power=could[1],
        more_repeats=could[2],
        aliased_with=aliases,
        depends_on=[
            other
            for interaction in interactions
            if interaction.found and (interaction.pattern, interaction.metric) == (runs.pattern, runs.metric)
            if name in interaction.factors
            for other in interaction.factors
            if other != name
        ],
        why=_why_unknown(one, main, aliases, table),
    )


def _why_unknown(
    one: StudiedMetric, main: MainContrast, aliases: Sequence[str], table: Observations
) -> str | None:
    """Return what keeps the change from being known, or from being this factor's alone."""
    design, name = one.model.design, table.factors[main.factor].name
    missing = [level for level in (main.level, main.against) if level not in design.levels[main.factor]]
    if main.known is None and missing:
        unset = table.unset_levels.get(f"{name}={missing[0]}")
        return unset or say("effects.no_data.text", factor=name, level=missing[0])
    if main.known is None:
        return say("effects.model.aliased", term=name, others=written(", ".join(aliases)) or TIME)
    if name in design.cannot_part:
        key = "one_order" if design.taken_out == "blocks" else "not_parted"
        return say(f"effects.model.{key}", factors=name)
    return None


def _raw(known: KnownContrast | None) -> float | None:
    return None if known is None else known.p


def _judged(
    one: StudiedMetric,
    factor: str,
    known: KnownContrast | None,
    p: float | None,
    *,
    alpha: float,
    margin: float,
    table: Observations,
) -> EffectJudgement:
    ends = None if known is None else known.interval()
    if known is None or ends is None or p is None:
        return "unknown"
    if one.runs.metric in LARGER_IS_BETTER and table.requests(factor, one.runs.pattern):
        return "requested"
    if p < alpha:
        if factor in one.model.design.cannot_part and one.model.design.taken_out == "nothing":
            return "confounded"
        return "better" if (known.log > 0) == (one.runs.metric in LARGER_IS_BETTER) else "worse"
    inside = -math.log1p(margin) <= ends[0] and ends[1] <= math.log1p(margin)
    return "alike" if inside else "open"


def _could(
    one: StudiedMetric, known: KnownContrast, change: float, each: float, *, more: bool
) -> tuple[float | None, float | None, int | None]:
    """Return the least change found, the chance to find the margin, and the repeats to add for that."""
    if known.error is None or known.freedom is None:
        return None, None, None
    error, freedom = known.error, known.freedom
    least = power.smallest(lambda size: power.power(size, error, freedom, each))
    cells = len({tuple(row.levels.items()) for row in one.runs.rows})
    repeats = max(1, round(len(one.runs.rows) / cells))
    needed = None
    if more:
        per_repeat = known.freedom / max(1, repeats - 1)
        needed = power.more_repeats(
            change, known.error, known.freedom, each, repeats=repeats, per_repeat=per_repeat
        )
    return (
        None if least is None else math.expm1(least),
        power.power(change, known.error, known.freedom, each),
        needed,
    )
