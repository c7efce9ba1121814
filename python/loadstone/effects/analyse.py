"""An experiment's runs in, what its factors do out.

Knows the order: which runs count, the model of each metric of each pattern, its contrasts, all
tests corrected together, and then what is said of each. Draws nothing and writes no sentence of a page.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.statistics.distributions import t_upper
from loadstone.analysis.statistics.significance import BUCKET_ERROR
from loadstone.effects import design as designs
from loadstone.effects import drift as drifts
from loadstone.effects import metric_model, power, runs_of, shares, tests_together
from loadstone.effects.metric_model import NOT_NORMAL, UNEQUAL
from loadstone.effects.model import (
    CellValue,
    DriftFound,
    EffectJudgement,
    Effects,
    FittedModel,
    Interaction,
    InteractionContrast,
    LevelEffect,
    LevelMean,
    LevelNotSet,
    OutlierRun,
    SimpleEffect,
    TestedFactor,
    VarianceShare,
)
from loadstone.effects.names import name_of
from loadstone.effects.observations import LARGER_IS_BETTER
from loadstone.effects.recommend import recommend
from loadstone.effects.tests_together import MadeTest
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from loadstone.effects.drift import DriftLine
    from loadstone.effects.metric_model import KnownContrast, MetricModel
    from loadstone.effects.model import Recommendation
    from loadstone.effects.observations import Observations
    from loadstone.effects.runs_of import MetricRuns

    Numbers = NDArray[np.float64]

MARGIN: Final = 0.05
TIME: Final = "order in time"
UNEXPLAINED: Final = "not explained"


@dataclass(frozen=True, slots=True)
class _Main:
    """A contrast of two levels before anything is said of it; None where a level has no data."""

    factor: int
    level: str
    against: str
    known: KnownContrast | None


@dataclass(frozen=True, slots=True)
class _Pair:
    """An interaction before anything is said of it; `terms` None where the model does not have it."""

    factors: tuple[int, int]
    p: float | None
    contrasts: tuple[tuple[tuple[str, str], tuple[str, str], KnownContrast], ...]
    simple: tuple[tuple[tuple[str, str], str, KnownContrast], ...]


@dataclass(frozen=True, slots=True)
class _Studied:
    """One metric of one pattern."""

    runs: MetricRuns
    model: MetricModel
    mains: tuple[_Main, ...]
    pairs: tuple[_Pair, ...]
    drift: DriftLine


def analyse(
    observations: Observations, alpha: float = 0.05, seed: int = 1, *, margin: float = MARGIN
) -> Effects:
    """Return what the factors do; the same runs and seed give the same result."""
    studied = [_study(observations, one, seed) for one in runs_of.of_each(observations)]
    tests = [_test(one, known.p if known else None) for one in studied for known in _knowns(one)]
    tests += [_test(one, pair.p) for one in studied for pair in one.pairs]
    ps = iter(tests_together.corrected(tests))
    main_ps = [[next(ps) for _ in one.mains] for one in studied]
    pair_ps = [[next(ps) for _ in one.pairs] for one in studied]
    strictest = tests_together.strictest(tests, alpha)
    interactions = [
        _interaction(one, pair, p, alpha, observations)
        for one, found in zip(studied, pair_ps, strict=True)
        for pair, p in zip(one.pairs, found, strict=True)
    ]
    effects = [
        _effect(
            one,
            main,
            p,
            limits=(alpha, margin, strictest[one.runs.first]),
            interactions=interactions,
            table=observations,
        )
        for one, found in zip(studied, main_ps, strict=True)
        for main, p in zip(one.mains, found, strict=True)
    ]
    open_ones = [one.more_repeats for one in effects if one.first and one.more_repeats is not None]
    unset = [key.partition("=") for key in observations.unset_levels]
    return Effects(
        alpha=alpha,
        margin=margin,
        factors=[TestedFactor(name=one.name, levels=list(one.levels)) for one in observations.factors],
        patterns=runs_of.patterns(observations),
        first_metric=runs_of.first_metric(observations),
        tests=sum(one.first and not one.again and one.p is not None for one in tests),
        effects=effects,
        interactions=interactions,
        means=[mean for one in studied for mean in _means(observations, one)],
        shares=[share for one in studied for share in _shares(one)],
        drift=_drifts(studied, alpha),
        outliers=_outliers(studied),
        models=[_fitted(one, observations) for one in studied],
        cells=[cell for one in studied for cell in _cells(observations, one)],
        recommendations=list(_recommendations(observations, studied, alpha, effects)),
        left_out=runs_of.left_out(observations),
        unset=[
            LevelNotSet(factor=factor, level=level, why=observations.unset_levels[f"{factor}={level}"])
            for factor, _, level in unset
        ],
        aliased=_aliased(observations, studied),
        more_repeats=max(open_ones, default=None),
    )


def _study(table: Observations, runs: MetricRuns, seed: int) -> _Studied:
    factors = table.factors
    made = designs.build(factors, runs.rows, table.rarely)
    names = (zlib.crc32(one.encode()) for one in (runs.pattern, runs.metric))
    chance = np.random.default_rng([seed, *names])
    # A percentile is known to within a bucket of its histogram, however alike the runs are.
    floor = BUCKET_ERROR if runs.metric.startswith("lat_p") else 0.0
    model = metric_model.make(made, runs.values, floor=floor, chance=chance)
    mains = tuple(
        _Main(at, level, against, _known(model, made.main(at, level, against) if known else None))
        for at, factor in enumerate(factors)
        for against, level in combinations(factor.levels, 2)
        for known in [level in made.levels[at] and against in made.levels[at]]
    )
    pairs = tuple(_pair(model, one) for one in combinations(range(len(factors)), 2))
    return _Studied(runs, model, mains, pairs, drifts.drift(model, runs.rows))


def _known(model: MetricModel, contrast: Numbers | None) -> KnownContrast | None:
    return None if contrast is None else model.known(contrast)


def _pair(model: MetricModel, factors: tuple[int, int]) -> _Pair:
    made = model.design
    first, second = factors
    term = made.term(first, second)
    if term is None:
        return _Pair(factors, None, (), ())
    ups, acrosses = ([(b, a) for a, b in combinations(made.levels[at], 2)] for at in factors)
    rows = [(up, across, made.interaction(first, up, second, across)) for up in ups for across in acrosses]
    simple = [
        (up, at, model.known(row))
        for up in ups
        for at in made.levels[second]
        if (row := made.simple(first, up, second, at)) is not None
    ]
    contrasts = [(up, across, model.known(row)) for up, across, row in rows if row is not None]
    p = model.together(term.columns, [row for *_, row in rows if row is not None])
    return _Pair(factors, p, tuple(contrasts), tuple(simple))


def _knowns(one: _Studied) -> Iterator[KnownContrast | None]:
    return (main.known for main in one.mains)


def _test(one: _Studied, p: float | None) -> MadeTest:
    return MadeTest(p, one.runs.first, one.runs.again)


def _effect(
    one: _Studied,
    main: _Main,
    p: float | None,
    *,
    limits: tuple[float, float, float],
    interactions: Sequence[Interaction],
    table: Observations,
) -> LevelEffect:
    alpha, margin, each = limits
    runs, model, known = one.runs, one.model, main.known
    name = table.factors[main.factor].name
    judgement = _judged(one, name, known, _raw(known) if runs.again else p, alpha=alpha, margin=margin)
    is_open = judgement == "open"
    could = (
        (None, None, None) if known is None else _could(one, known, math.log1p(margin), each, more=is_open)
    )
    why = None
    aliases = _alias_of(one, (main.factor,), table)
    missing = [level for level in (main.level, main.against) if level not in model.design.levels[main.factor]]
    if known is None and missing:
        unset = table.unset_levels.get(f"{name}={missing[0]}")
        why = unset or say("effects.no_data.text", factor=name, level=missing[0])
    elif known is None:
        why = say("effects.model.aliased", term=name, others=", ".join(aliases) or TIME)
    elif name in model.design.cannot_part:
        key = "one_order" if model.design.taken_out == "blocks" else "not_parted"
        why = say(f"effects.model.{key}", factors=name)
    return LevelEffect(
        pattern=runs.pattern,
        metric=runs.metric,
        factor=name,
        level=main.level,
        against=main.against,
        change=None if known is None else known.ratio(p),
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
            for found in interactions
            if found.found and (found.pattern, found.metric) == (runs.pattern, runs.metric)
            if name in found.factors
            for other in found.factors
            if other != name
        ],
        why=why,
    )


def _raw(known: KnownContrast | None) -> float | None:
    return None if known is None else known.p


def _judged(
    one: _Studied, factor: str, known: KnownContrast | None, p: float | None, *, alpha: float, margin: float
) -> EffectJudgement:
    ends = None if known is None else known.interval()
    if known is None or ends is None or p is None:
        return "unknown"
    if p < alpha:
        if factor in one.model.design.cannot_part and one.model.design.taken_out == "nothing":
            return "confounded"
        return "better" if (known.log > 0) == (one.runs.metric in LARGER_IS_BETTER) else "worse"
    inside = -math.log1p(margin) <= ends[0] and ends[1] <= math.log1p(margin)
    return "alike" if inside else "open"


def _could(
    one: _Studied, known: KnownContrast, change: float, each: float, *, more: bool
) -> tuple[float | None, float | None, int | None]:
    """Return the least change found, the chance to find the margin, and the repeats to add for that."""
    if known.error is None or known.freedom is None:
        return None, None, None
    least = power.smallest(known.error, known.freedom, each)
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


def _interaction(
    one: _Studied, pair: _Pair, p: float | None, alpha: float, table: Observations
) -> Interaction:
    design = one.model.design
    names = tuple(table.factors[at].name for at in pair.factors)
    first, second = names
    largest = max(pair.contrasts, key=lambda found: _clearness(found[2]), default=None)
    said = p if not one.runs.again else pair.p
    aliases = _alias_of(one, pair.factors, table)
    why = None
    if not pair.contrasts:
        pooled = pair.factors in design.pooled
        if aliases and not pooled:
            why = say("effects.interaction.aliased", others=", ".join(aliases))
        else:
            why = say(f"effects.interaction.{'pooled' if pooled else 'missing_cells'}")
    return Interaction(
        pattern=one.runs.pattern,
        metric=one.runs.metric,
        factors=(first, second),
        found=None if said is None else said < alpha,
        p=p,
        raw_p=pair.p,
        largest=None
        if largest is None
        else InteractionContrast(levels=largest[0], at=largest[1], change=largest[2].ratio()),
        simple=[
            SimpleEffect(factor=first, level=up[0], against=up[1], other=second, at=at, change=known.ratio())
            for up, at, known in pair.simple
        ],
        first=one.runs.first,
        again=one.runs.again,
        aliased_with=aliases,
        why=why,
    )


def _clearness(known: KnownContrast) -> float:
    return abs(known.log) / known.error if known.error else abs(known.log)


def _alias_of(one: _Studied, factors: tuple[int, ...], table: Observations) -> list[str]:
    """Return what an effect cannot be told from, by the plan of the experiment and by its runs."""
    name = one.model.design.name(factors)
    found = [b if a == name else a for a, b in table.aliased if name in (a, b)]
    for term, others in one.model.design.unknown:
        own = one.model.design.name(term)
        found += others if own == name else ((own,) if name in others else ())
    return list(dict.fromkeys(found))


def _aliased(table: Observations, studied: Sequence[_Studied]) -> list[tuple[str, str]]:
    found = list(table.aliased)
    for one in studied:
        for term, others in one.model.design.unknown:
            found += [(other, one.model.design.name(term)) for other in others]
    kept: dict[tuple[str, ...], tuple[str, str]] = {}
    for pair in found:
        kept.setdefault(tuple(sorted(pair)), pair)
    return list(kept.values())


def _shares(one: _Studied) -> Iterator[VarianceShare]:
    found = shares.explained(one.model)
    if found is None or one.model.fitted.freedom < 1:
        return
    parts, rest = found
    for part in parts:
        yield VarianceShare(
            pattern=one.runs.pattern,
            metric=one.runs.metric,
            term=one.model.design.name(part.factors) if part.factors else TIME,
            eta_squared=min(1.0, part.eta),
            omega_squared=part.omega,
        )
    yield VarianceShare(
        pattern=one.runs.pattern,
        metric=one.runs.metric,
        term=UNEXPLAINED,
        eta_squared=min(1.0, max(0.0, rest)),
        omega_squared=None,
    )


def _drifts(studied: Sequence[_Studied], alpha: float) -> list[DriftFound]:
    ps = tests_together.corrected(
        [_test(one, one.drift.change.p if one.drift.change else None) for one in studied]
    )
    found = []
    for one, p in zip(studied, ps, strict=True):
        change = one.drift.change
        said = p if not one.runs.again or change is None else change.p
        found.append(
            DriftFound(
                pattern=one.runs.pattern,
                metric=one.runs.metric,
                change=None if change is None else change.ratio(p),
                found=None if said is None else said < alpha,
                taken_out=one.model.design.taken_out,
                confounded=list(one.model.design.cannot_part),
                why=one.drift.why,
            )
        )
    return found


def _outliers(studied: Sequence[_Studied]) -> list[OutlierRun]:
    """Return runs whose residual, without them in the error, is too far (Bonferroni over all runs)."""
    found = []
    own = [one for one in studied if not one.runs.again]
    for one in studied:
        shape, fitted = one.model.shape, one.model.fitted
        if shape.furthest is None or shape.expected is None or fitted.freedom < 4:
            continue
        least = far_p(one.model, shape.furthest)
        p = min(1.0, least * len(fitted.values) * len(own))
        if p < UNEQUAL:
            found.append(
                OutlierRun(
                    pattern=one.runs.pattern,
                    metric=one.runs.metric,
                    run=one.runs.rows[shape.furthest].run,
                    ratio=math.exp(float(one.model.measured[shape.furthest]) - shape.expected),
                    p=p,
                )
            )
    return found


def far_p(model: MetricModel, at: int) -> float:
    """Return the p-value of one run's residual with an error that it has no part in (Student's t)."""
    residuals = model.fitted.maker @ model.measured
    room = float(model.fitted.maker[at, at])
    freedom = model.fitted.freedom - 1
    whole, own = float(residuals @ residuals), float(residuals[at] ** 2) / room
    rest = max(whole - own, 1e-30) / freedom
    return 2 * t_upper(math.sqrt(own / rest), freedom)


def _fitted(one: _Studied, table: Observations) -> FittedModel:
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
        yield say("effects.model.pooled", terms=", ".join(design.name(term) for term in design.pooled))
    for term, others in design.unknown:
        name = design.name(term)
        if others:
            yield say("effects.model.aliased", term=name, others=", ".join(others))
        else:
            yield say("effects.model.missing_cells", term=name)
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


def _cells(table: Observations, one: _Studied) -> Iterator[CellValue]:
    asked = [row for row in table.rows if row.pattern == one.runs.pattern]
    for levels in designs.cells(table.factors, asked):
        mine = [row for row in asked if dict(row.levels) == levels]
        used = [row for row in one.runs.rows if dict(row.levels) == levels]
        contrast = one.model.design.cell(levels) if used else None
        known = _known(one.model, contrast)
        ends = known.interval() if known is not None else None
        why = None
        if not used:
            reasons = list(dict.fromkeys(row.invalid for row in mine if row.invalid))
            why = (
                say("effects.no_data.cell", reasons="; ".join(reasons))
                if reasons
                else say("effects.no_data.unmeasured", metric=name_of(one.runs.metric))
            )
        yield CellValue(
            pattern=one.runs.pattern,
            metric=one.runs.metric,
            levels=levels,
            runs=len(used),
            left_out=len(mine) - len(used),
            value=None if known is None else math.exp(known.log),
            low=None if ends is None else math.exp(ends[0]),
            high=None if ends is None else math.exp(ends[1]),
            why=why,
        )


def _means(table: Observations, one: _Studied) -> Iterator[LevelMean]:
    names = [factor.name for factor in table.factors]
    groups = [*((name,) for name in names), *combinations(names, 2)]
    for group in groups:
        levels = [next(factor.levels for factor in table.factors if factor.name == name) for name in group]
        for chosen in (dict(zip(group, found, strict=True)) for found in product(*levels)):
            used = [
                row for row in one.runs.rows if all(row.levels[n] == level for n, level in chosen.items())
            ]
            contrast = one.model.design.mean(chosen) if used else None
            if contrast is None:
                continue
            known = one.model.known(contrast)
            ends = known.interval()
            yield LevelMean(
                pattern=one.runs.pattern,
                metric=one.runs.metric,
                levels=chosen,
                runs=len(used),
                value=math.exp(known.log),
                low=None if ends is None else math.exp(ends[0]),
                high=None if ends is None else math.exp(ends[1]),
            )


def _recommendations(
    table: Observations, studied: Sequence[_Studied], alpha: float, effects: Sequence[LevelEffect]
) -> Iterator[Recommendation]:
    for pattern in runs_of.patterns(table):
        mine = [one for one in studied if one.runs.pattern == pattern]
        models = {one.runs.metric: one.model for one in mine}
        rows = {one.runs.metric: one.runs.rows for one in mine}
        for aim in table.aims:
            made = recommend(pattern, aim, table.factors, models=models, rows=rows, alpha=alpha)
            # Not told apart is not the same: only what is shown to be alike does not matter.
            differ = {
                one.factor
                for one in effects
                if (one.pattern, one.metric) == (pattern, aim.metric) and one.judgement != "alike"
            }
            alike = [name for name in made.does_not_matter if name not in differ]
            yield made.model_copy(update={"does_not_matter": alike})
