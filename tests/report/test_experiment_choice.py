"""What an experiment recommends rests on what was told apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from loadstone.effects.findings import RatioInterval, Recommendation
from loadstone.effects.recommend import without_choice
from loadstone.report.experiment import words

if TYPE_CHECKING:
    from loadstone.effects.findings import Effects


def effects(*judged: tuple[str, int | None]) -> Effects:
    change = RatioInterval(ratio=2.5, low=1.6, high=4.2, p=0.01, raw_p=0.01)
    found = [
        SimpleNamespace(
            pattern="p",
            metric="iops",
            factor="log",
            level="ssd",
            against="none",
            change=change,
            judgement=judgement,
            more_repeats=more,
        )
        for judgement, more in judged
    ]
    return cast("Effects", SimpleNamespace(effects=found, margin=0.05))


def chosen(*, change: RatioInterval | None = None) -> Recommendation:
    return Recommendation(
        pattern="p", metric="iops", larger_is_better=True, limit_metric=None, limit_at_most=None,
        levels={"log": "none"}, value=100.0,
        against=None if change is None else {"log": "ssd"}, change=change,
        as_good=[{"log": "ssd"}], does_not_matter=[], costs=[], why=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "needed"),
    [(1, "1 more repeat would"), (7, "7 more repeats would"), (None, "more than a thousand repeats would")],
)
def test_nothing_is_recommended_where_nothing_was_told_apart(more: int | None, needed: str) -> None:
    told = words.choice(effects(("open", more)), without_choice(chosen())).replace("\N{NO-BREAK SPACE}", " ")
    assert (
        told == f"no choice: 2 combinations do not differ significantly; {needed} show a difference of 5 %."
    )


def test_what_makes_no_difference_is_told_as_such() -> None:
    told = words.choice(effects(("alike", None)), without_choice(chosen())).replace("\N{NO-BREAK SPACE}", " ")
    assert told == "any of the 2 combinations: no level makes a difference above 5 %."


def test_a_choice_that_rests_on_a_difference_stays_one() -> None:
    better = RatioInterval(ratio=1.5, low=1.2, high=1.8, p=0.01, raw_p=0.01)
    assert words.choice(effects(("open", 3)), chosen(change=better)).startswith("log=none: 100, ")
    assert words.choice(effects(("worse", None)), chosen()).startswith("log=none: 100. Keep it")


def test_a_level_that_is_better_is_named_where_no_combination_is() -> None:
    told = words.choice(effects(("better", None)), chosen()).replace("\N{NO-BREAK SPACE}", " ")
    assert told.startswith("log=ssd: +150 % (+60 to +320), averaged over the other factors; ")
