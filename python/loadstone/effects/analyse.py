"""An experiment's runs in, what its factors do out.

Knows the order: which runs count, the model of each metric of each pattern, its contrasts, all
tests corrected together, and then what is said of each. Draws nothing and writes no sentence of a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.effects import runs_of, tests_together
from loadstone.effects.aliases import aliased
from loadstone.effects.combinations import cell_values, level_means
from loadstone.effects.drifts_found import drifts_found
from loadstone.effects.findings import Effects, LevelEffect, LevelNotSet, TestedFactor
from loadstone.effects.fitted_models import fitted_model
from loadstone.effects.interactions import interaction
from loadstone.effects.level_effects import level_effect
from loadstone.effects.outliers import outlier_runs
from loadstone.effects.recommend import recommend, without_choice
from loadstone.effects.shares import variance_shares
from loadstone.effects.studied_metric import made_test, study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.effects.findings import Recommendation
    from loadstone.effects.observations import Observations
    from loadstone.effects.studied_metric import StudiedMetric

MARGIN: Final = 0.05


def analyse(
    observations: Observations, alpha: float = 0.05, seed: int = 1, *, margin: float = MARGIN
) -> Effects:
    """Return what the factors do; the same runs and seed give the same result."""
    studied = [study(observations, one, seed) for one in runs_of.of_each(observations)]
    mains = [(one, main) for one in studied for main in one.mains]
    pairs = [(one, pair) for one in studied for pair in one.pairs]
    tests = [made_test(one, main.known.p if main.known else None) for one, main in mains]
    tests += [made_test(one, pair.p) for one, pair in pairs]
    ps = tests_together.corrected(tests)
    strictest, last = tests_together.strictest(tests, alpha), tests_together.last_step(tests, alpha)
    interactions = [
        interaction(one, pair, p, limits=(alpha, margin, strictest[one.runs.first]), table=observations)
        for (one, pair), p in zip(pairs, ps[len(mains) :], strict=True)
    ]
    effects = [
        level_effect(
            one,
            main,
            p,
            limits=(alpha, margin, strictest[one.runs.first], last[one.runs.first]),
            interactions=interactions,
            table=observations,
        )
        for (one, main), p in zip(mains, ps[: len(mains)], strict=True)
    ]
    open_ones = [one.more_repeats for one in effects if one.first and one.more_repeats is not None]
    return Effects(
        alpha=alpha,
        margin=margin,
        factors=[TestedFactor(name=one.name, levels=list(one.levels)) for one in observations.factors],
        patterns=runs_of.patterns(observations),
        first_metric=runs_of.first_metric(observations),
        tests=sum(one.first and not one.again and one.p is not None for one in tests),
        effects=effects,
        interactions=interactions,
        means=[mean for one in studied for mean in level_means(observations, one)],
        shares=[share for one in studied for share in variance_shares(one)],
        drift=drifts_found(studied, alpha),
        outliers=outlier_runs(studied),
        models=[fitted_model(one, observations) for one in studied],
        cells=[cell for one in studied for cell in cell_values(observations, one)],
        recommendations=list(_recommendations(observations, studied, alpha, effects)),
        left_out=runs_of.left_out(observations),
        unset=list(_levels_not_set(observations)),
        aliased=aliased(observations, studied),
        more_repeats=max(open_ones, default=None),
    )


def _levels_not_set(table: Observations) -> Iterator[LevelNotSet]:
    for key, why in table.unset_levels.items():
        factor, _, level = key.partition("=")
        yield LevelNotSet(factor=factor, level=level, why=why)


def _recommendations(
    table: Observations, studied: Sequence[StudiedMetric], alpha: float, effects: Sequence[LevelEffect]
) -> Iterator[Recommendation]:
    for pattern in runs_of.patterns(table):
        of_pattern = [one for one in studied if one.runs.pattern == pattern]
        models = {one.runs.metric: one.model for one in of_pattern}
        rows = {one.runs.metric: one.runs.rows for one in of_pattern}
        for aim in table.aims:
            recommendation = recommend(pattern, aim, table.factors, models=models, rows=rows, alpha=alpha)
            of_aim = [one for one in effects if (one.pattern, one.metric) == (pattern, aim.metric)]
            # Not told apart is not the same: only what is shown to be alike does not matter.
            differ = {one.factor for one in of_aim if one.judgement != "alike"}
            alike = [name for name in recommendation.does_not_matter if name not in differ]
            recommendation = recommendation.model_copy(update={"does_not_matter": alike})
            apart = recommendation.change is not None or any(
                one.judgement in ("better", "worse") for one in of_aim
            )
            yield recommendation if apart else without_choice(recommendation)
