"""Explanations after probes are told as often as such ones were right."""

from __future__ import annotations

import math

import pytest

from loadstone.explanations.as_often_right import as_often_right, doubts_of_unexplained, tempered
from loadstone.explanations.names import BY_NAME, UNEXPLAINED
from loadstone.explanations.weigh import Weighed, measuring
from loadstone.explanations.weights import FITTED, Frequency, Logistic

COUNTS = FITTED.model_copy(
    update={
        "decided": Frequency(told=(0.0, 1.0), right=(0.1, 0.1)),
        "causes": Frequency(told=(0.0, 1.0), right=(0.5, 0.5)),
        "decided_causes": Frequency(told=(0.0, 1.0), right=(0.9, 0.9)),
        "unexplained": Logistic(
            intercept=math.log(0.4 / 0.6), slopes=dict.fromkeys(FITTED.unexplained.slopes, 0.0)
        ),
        "pointed": Frequency(told=(0.0, 1.0), right=(0.3, 0.3)),
    }
)
FEATURES = {"limited": 0.0, "open": 0.0, "strange": 0.0, "suspicion": 0.0}


def weighed(**chances: float) -> list[Weighed]:
    return [
        Weighed(BY_NAME[name], chance, (), (), None)
        for name, chance in sorted(chances.items(), key=lambda one: -one[1])
    ]


def told(*, decided: bool, pointed: str | None = None, **chances: float) -> dict[str, float]:
    again = as_often_right(weighed(**chances), 0.2, FEATURES, decided=decided, pointed=pointed, fitted=COUNTS)
    assert sum(one.probability for one in again) == pytest.approx(1)
    return {one.explanation.name: one.probability for one in again}


def test_a_cause_is_told_as_often_as_such_ones_were_right() -> None:
    after = told(decided=False, iops_limit=0.6, cache=0.15, background=0.05, medium=0.15, job_depth=0.05)
    assert after["iops_limit"] == pytest.approx(0.8 * 0.5)
    assert after["medium"] == pytest.approx(0.15)
    assert after["cache"] > after["background"]


def test_beside_a_rule_that_decided_the_storage_is_told_as_often_as_it_was_right_there() -> None:
    """Regression: a number that a rule had called limited was given to the storage with 65 %, right in 7."""
    after = told(decided=True, medium=0.65, iops_limit=0.2, background=0.15)
    assert after["medium"] == pytest.approx(0.1)
    assert after["iops_limit"] == pytest.approx(0.9 * 0.9)


def test_something_unexplained_has_counts_of_its_own() -> None:
    after = told(decided=False, something_unexplained=0.6, cache=0.2, medium=0.2)
    # No less than what comes behind it: the order stays.
    assert after[UNEXPLAINED] == pytest.approx(after["cache"], abs=1e-3)
    # Of all numbers of which it is the most probable, not of what is left beside the storage.
    three = told(decided=False, something_unexplained=0.6, cache=0.15, background=0.05, medium=0.2)
    assert three[UNEXPLAINED] == pytest.approx(0.4, abs=1e-3)
    assert three["medium"] == pytest.approx(0.2)


def test_behind_the_storage_it_is_told_as_a_part_of_what_that_leaves() -> None:
    every = weighed(medium=0.6, something_unexplained=0.3, cache=0.07, background=0.03)
    after = as_often_right(every, 0.6, FEATURES, decided=False, fitted=COUNTS)
    chances = {one.explanation.name: one.probability for one in after}
    assert chances[UNEXPLAINED] == pytest.approx(0.4 * 0.4, abs=1e-3)
    assert chances["medium"] == pytest.approx(0.6)


def told_unexplained(storage: float, **features: float) -> float:
    """What the regression tells of something unexplained that is first; belief in the storage is 5 %."""
    every = weighed(something_unexplained=0.8 - storage, cache=0.2, medium=storage)
    doubts = doubts_of_unexplained(every, 0.05, FEATURES | features, decided=False, fitted=FITTED)
    assert doubts is not None
    return FITTED.unexplained.probability(doubts)


def test_something_unexplained_is_the_more_probable_the_more_is_left_to_the_storage() -> None:
    """Regression: at 27 % it was right in 6 of 98 where nothing was left, and in 37 of 61 where some was."""
    assert told_unexplained(0.25) > 1.5 * told_unexplained(0.001)


def test_what_is_open_speaks_against_something_unexplained() -> None:
    """Regression: without that it was told 24 % where 34 % were right, and 88 % where all were."""
    assert told_unexplained(0.2, open=0.0) > told_unexplained(0.2, open=1.0)


def test_doubts_are_of_something_unexplained_that_is_the_most_probable() -> None:
    every = weighed(medium=0.6, something_unexplained=0.3, cache=0.1)
    assert doubts_of_unexplained(every, 0.6, FEATURES, decided=False, fitted=FITTED) is None


def test_what_probes_point_at_is_told_as_often_as_such_findings_were_right() -> None:
    """Regression: of what the verdict named at 64 % half was right."""
    plain = told(decided=False, iops_limit=0.6, cache=0.2, medium=0.2)
    after = told(decided=False, pointed="iops_limit", iops_limit=0.6, cache=0.2, medium=0.2)
    assert after["iops_limit"] == pytest.approx(0.3)
    assert after["cache"] / after["medium"] == pytest.approx(plain["cache"] / plain["medium"])
    assert list(after) == sorted(after, key=lambda name: -after[name])


def test_something_unexplained_is_not_counted_twice_where_probes_point_at_it() -> None:
    plain = told(decided=False, something_unexplained=0.6, cache=0.2, medium=0.2)
    after = told(decided=False, pointed=UNEXPLAINED, something_unexplained=0.6, cache=0.2, medium=0.2)
    assert after == plain


def test_where_there_is_no_choice_nothing_changes() -> None:
    alone = weighed(job_rate=0.8, something_unexplained=0.2)
    assert measuring(as_often_right(alone, 0.7, FEATURES, decided=False)) == pytest.approx(0.7)
    assert as_often_right(weighed(job_rate=1.0), 0.7, FEATURES, decided=False) == weighed(job_rate=1.0)


def test_tempered_shares_keep_their_order_and_their_sum() -> None:
    shares = [0.5, 0.3, 0.15, 0.05]
    for first in (0.3, 0.5, 0.9, 0.999):
        again = tempered(shares, first)
        assert again[0] == pytest.approx(first, abs=1e-6)
        assert again == sorted(again, reverse=True)
        assert sum(again) == pytest.approx(1)
    assert tempered(shares, 0.1) == pytest.approx([0.25] * 4, abs=1e-6)
