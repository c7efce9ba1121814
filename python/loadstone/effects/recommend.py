"""The combination to choose for an aim, what is as good as it, and what it costs.

Knows the fitted models of one pattern. Chooses among combinations that were measured and are
valid; one keeps a limit when the upper end of its 95 % interval does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.analysis.statistics.significance import holm
from loadstone.effects.findings import MetricCost, RatioInterval, Recommendation
from loadstone.effects.metric_names import name_of, value
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.effects.metric_model import MetricModel
    from loadstone.effects.observations import Aim, Factor, Observation

    Levels = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Candidate:
    levels: Levels
    log: float


def recommend(
    pattern: str,
    aim: Aim,
    factors: Sequence[Factor],
    *,
    models: Mapping[str, MetricModel],
    rows: Mapping[str, Sequence[Observation]],
    alpha: float,
) -> Recommendation:
    """Choose; `models` and `rows` are those of the pattern, by metric."""
    model = models.get(aim.metric)
    if model is None:
        return _none(pattern, aim, say("effects.choice.none_valid", metric=name_of(aim.metric)))
    candidates, why_none = _within_limit(aim, _measured(model, rows[aim.metric]), models, rows)
    if not candidates:
        return _none(pattern, aim, why_none)
    sign = 1.0 if aim.larger_is_better else -1.0
    best = max(candidates, key=lambda one: sign * one.log)
    good = _as_good(model, best, candidates, alpha)
    start = {one.name: one.levels[0] for one in factors}
    if start in good:
        # Nothing is shown to be better than what was there before: it stays.
        start_mean = next(one for one in candidates if one.levels == start)
        good = [best.levels if levels == start else levels for levels in good]
        best = start_mean
    known = start != best.levels and any(dict(row.levels) == start for row in rows[aim.metric])
    return Recommendation(
        pattern=pattern,
        metric=aim.metric,
        larger_is_better=aim.larger_is_better,
        limit_metric=aim.limit_metric,
        limit_at_most=aim.limit_at_most,
        levels=best.levels,
        value=math.exp(best.log),
        against=start if known else None,
        change=_between(model, best.levels, start) if known else None,
        as_good=good,
        does_not_matter=_does_not_matter(factors, best.levels, good, candidates),
        costs=_costs(aim, models, rows, best.levels, start) if known else [],
        why=None,
    )


def _within_limit(
    aim: Aim,
    candidates: list[_Candidate],
    models: Mapping[str, MetricModel],
    rows: Mapping[str, Sequence[Observation]],
) -> tuple[list[_Candidate], str]:
    """Return the combinations that keep the aim's limit, and what is said where none does."""
    if aim.limit_metric is None or aim.limit_at_most is None:
        return candidates, say("effects.choice.none_valid", metric=name_of(aim.metric))
    limited_by = name_of(aim.limit_metric)
    limited = models.get(aim.limit_metric)
    if limited is None:
        return [], say("effects.choice.no_limit_data", limit_metric=limited_by)
    has = [one.levels for one in _measured(limited, rows[aim.limit_metric])]
    within = [
        one for one in candidates if one.levels in has and _keeps(limited, one.levels, aim.limit_at_most)
    ]
    limit = value(aim.limit_at_most, aim.limit_metric)
    return within, say("effects.choice.none_keeps", limit_metric=limited_by, limit_value=limit)


def without_choice(recommendation: Recommendation) -> Recommendation:
    """Return it as no recommendation where its combinations are not told apart: a choice rests on that."""
    if recommendation.levels is None or not recommendation.as_good:
        return recommendation
    return recommendation.model_copy(
        update={
            "levels": None,
            "value": None,
            "as_good": [recommendation.levels, *recommendation.as_good],
            "why": say("effects.choice.not_told_apart"),
        }
    )


def _none(pattern: str, aim: Aim, why: str) -> Recommendation:
    return Recommendation(
        pattern=pattern, metric=aim.metric, larger_is_better=aim.larger_is_better,
        limit_metric=aim.limit_metric, limit_at_most=aim.limit_at_most, levels=None, value=None,
        against=None, change=None, as_good=[], does_not_matter=[], costs=[], why=why,
    )  # fmt: skip


def _measured(model: MetricModel, rows: Sequence[Observation]) -> list[_Candidate]:
    candidates = []
    for levels in dict.fromkeys(tuple(row.levels.items()) for row in rows):
        contrast = model.design.cell(dict(levels))
        if contrast is not None:
            candidates.append(_Candidate(dict(levels), model.known(contrast).log))
    return candidates


def _keeps(model: MetricModel, levels: Levels, limit: float) -> bool:
    contrast = model.design.cell(levels)
    if contrast is None:
        return False
    ends = model.known(contrast).interval()
    return ends is not None and ends[1] <= math.log(limit)


def _as_good(
    model: MetricModel, best: _Candidate, candidates: Sequence[_Candidate], alpha: float
) -> list[Levels]:
    others = [one for one in candidates if one.levels != best.levels]
    ps = []
    for one in others:
        a, b = model.design.cell(best.levels), model.design.cell(one.levels)
        p = model.known(a - b).p if a is not None and b is not None else None
        ps.append(1.0 if p is None else p)
    return [one.levels for one, p in zip(others, holm(ps), strict=True) if p >= alpha]


def _does_not_matter(
    factors: Sequence[Factor], best: Levels, good: Sequence[Levels], candidates: Sequence[_Candidate]
) -> list[str]:
    """Return the factors of which every measured level is as good while the others stay as they are."""
    names = []
    for factor in factors:
        alone = [one.levels for one in candidates if _differ(one.levels, best) == {factor.name}]
        levels = {one[factor.name] for one in alone} | {best[factor.name]}
        if alone and levels == set(factor.levels) and all(one in good for one in alone):
            names.append(factor.name)
    return names


def _differ(a: Levels, b: Levels) -> set[str]:
    return {name for name in a if a[name] != b[name]}


def _between(model: MetricModel, levels: Levels, start: Levels) -> RatioInterval | None:
    a, b = model.design.cell(levels), model.design.cell(start)
    return None if a is None or b is None else model.known(a - b).ratio()


def _costs(
    aim: Aim,
    models: Mapping[str, MetricModel],
    rows: Mapping[str, Sequence[Observation]],
    levels: Levels,
    start: Levels,
) -> list[MetricCost]:
    costs = []
    for metric, model in models.items():
        have = [dict(row.levels) for row in rows[metric]]
        if metric == aim.metric or levels not in have or start not in have:
            continue
        change = _between(model, levels, start)
        if change is not None:
            costs.append(MetricCost(metric=metric, change=change))
    return costs
