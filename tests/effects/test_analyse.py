"""What is said of experiments whose effects are known."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.effects.analyse import analyse
from loadstone.effects.observations import Aim, Observations
from tests.effects.drawn import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.effects.findings import Effects, LevelEffect

TWO = (("governor", ("powersave", "performance")), ("cache", ("on", "off")))


def effect(found: Effects, factor: str, level: str | None = None, metric: str = "iops") -> LevelEffect:
    return next(
        one
        for one in found.effects
        if one.factor == factor and one.metric == metric and level in (None, one.level)
    )


def ratio(one: LevelEffect) -> float:
    assert one.change is not None
    return one.change.ratio


def test_without_noise_effects_are_exact_and_cells_are_what_was_measured() -> None:
    found = analyse(
        table(TWO, noise=0.0, log=lambda levels, _: 0.1 * (levels["governor"] == "performance")), seed=1
    )
    assert ratio(effect(found, "governor")) == pytest.approx(math.exp(0.1))
    assert ratio(effect(found, "cache")) == pytest.approx(1.0)
    assert effect(found, "governor").judgement == "better"
    assert effect(found, "cache").judgement == "alike"
    for cell in found.cells:
        expected = 1e4 * math.exp(0.1 * (cell.levels["governor"] == "performance"))
        assert cell.value == pytest.approx(expected)
        assert cell.runs == 3


@pytest.mark.in_turn
@settings(max_examples=10)
@given(st.floats(0.001, 1000.0), st.integers(0, 10**6), st.sampled_from(["iops", "lat_mean_ns"]))
def test_a_unit_changes_no_ratio(scale: float, seed: int, metric: str) -> None:
    made = table(TWO, seed=seed, metric=metric, log=lambda levels, _: 0.05 * (levels["cache"] == "off"))
    scaled = dataclasses.replace(
        made,
        rows=tuple(
            dataclasses.replace(row, metrics={metric: scale * row.metrics[metric]}) for row in made.rows
        ),
    )
    before, after = analyse(made, seed=1), analyse(scaled, seed=1)
    for a, b in zip(before.effects, after.effects, strict=True):
        assert a.change is not None
        assert b.change is not None
        assert b.change.ratio == pytest.approx(a.change.ratio)
        assert b.change.low == pytest.approx(a.change.low)
        assert b.change.p == pytest.approx(a.change.p, rel=1e-4, abs=1e-9)
        assert a.judgement == b.judgement


@settings(max_examples=6)
@given(st.integers(0, 10**6))
@pytest.mark.in_turn
def test_the_order_of_the_rows_and_the_names_of_levels_change_nothing(seed: int) -> None:
    made = table(TWO, seed=seed, log=lambda levels, _: 0.05 * (levels["cache"] == "off"))
    turned = dataclasses.replace(made, rows=tuple(reversed(made.rows)))
    named = dataclasses.replace(
        made,
        factors=tuple(
            dataclasses.replace(one, levels=tuple(f"x{level}" for level in one.levels))
            for one in made.factors
        ),
        rows=tuple(
            dataclasses.replace(row, levels={name: f"x{level}" for name, level in row.levels.items()})
            for row in made.rows
        ),
    )
    first = analyse(made, seed=3)
    for other in (turned, named):
        for a, b in zip(first.effects, analyse(other, seed=3).effects, strict=True):
            assert a.change is not None
            assert b.change is not None
            assert b.change.ratio == pytest.approx(a.change.ratio)
            assert b.change.p == pytest.approx(a.change.p, rel=1e-6, abs=1e-12)


def test_a_drift_is_found_and_taken_out() -> None:
    def log(levels: Mapping[str, str], place: int) -> float:
        return 0.05 * (levels["governor"] == "performance") - 0.01 * place

    made = table(TWO, repeats=6, noise=0.005, log=log)
    found = analyse(made, seed=1)
    drift = next(one for one in found.drift if one.metric == "iops")
    assert drift.found
    assert drift.taken_out == "blocks_and_line"
    assert drift.change is not None
    assert math.log(drift.change.ratio) == pytest.approx(-0.23, abs=0.02)
    one = effect(found, "governor")
    assert one.change is not None
    assert one.change.low is not None
    assert one.change.high is not None
    assert one.change.low < math.exp(0.05) < one.change.high
    assert one.change.high - one.change.low < 0.02


def test_levels_that_follow_the_time_are_not_told_from_a_drift() -> None:
    made = table((("governor", ("powersave", "performance")),), repeats=8, log=lambda _, place: 0.02 * place)
    ordered = sorted(made.rows, key=lambda row: row.levels["governor"])
    rows = tuple(
        dataclasses.replace(
            row, order=at, started_s=60.0 * at, block=0,
            metrics={"iops": 1e4 * math.exp(0.02 * at + 0.001 * (at % 3))},
        )
        for at, row in enumerate(ordered)
    )  # fmt: skip
    short = tuple(row for row in rows if 5 <= row.order < 11)
    found = analyse(dataclasses.replace(made, rows=short), seed=1)
    one = effect(found, "governor")
    assert one.judgement == "confounded"
    assert one.why is not None
    long = effect(analyse(dataclasses.replace(made, rows=rows), seed=1), "governor")
    # With more runs a straight line of time is told from the levels, and takes all of it.
    assert long.judgement in ("open", "alike")


def test_an_interaction_is_found_and_the_factors_depend_on_each_other() -> None:
    made = table(
        TWO,
        repeats=4,
        log=lambda levels, _: 0.2 * (levels["governor"] == "performance" and levels["cache"] == "off"),
    )
    found = analyse(made, seed=1)
    pair = next(one for one in found.interactions if one.metric == "iops")
    assert pair.found
    assert pair.largest is not None
    assert pair.largest.change.ratio == pytest.approx(math.exp(0.2), rel=0.03)
    at = {one.at: one.change.ratio for one in pair.simple}
    assert pair.smallest_seen is not None
    assert 0 < pair.smallest_seen < math.expm1(0.2)
    assert at["on"] == pytest.approx(1.0, abs=0.03)
    assert at["off"] == pytest.approx(math.exp(0.2), rel=0.03)
    assert effect(found, "governor").depends_on == ["cache"]


def test_invalid_runs_count_for_nothing_and_an_empty_cell_is_no_data() -> None:
    made = table(
        TWO,
        invalid=lambda levels, _: (
            "reads came from memory" if levels == {"governor": "performance", "cache": "on"} else None
        ),
        log=lambda levels, _: 3.0 * (levels == {"governor": "performance", "cache": "on"}),
        aims=(Aim("iops", larger_is_better=True),),
    )
    found = analyse(made, seed=1)
    assert len(found.left_out) == 3
    empty = next(one for one in found.cells if one.levels == {"governor": "performance", "cache": "on"})
    assert (empty.value, empty.runs, empty.left_out) == (None, 0, 3)
    assert empty.why is not None
    assert "reads came from memory" in empty.why
    assert ratio(effect(found, "governor")) < 1.1
    choice = found.recommendations[0]
    assert choice.levels != empty.levels
    pair = next(one for one in found.interactions if one.metric == "iops")
    assert pair.found is None
    assert pair.why is not None


def test_one_factor_at_a_time_knows_no_interaction() -> None:
    made = table(TWO, keep=lambda levels: levels != {"governor": "performance", "cache": "off"}, repeats=4)
    found = analyse(made, seed=1)
    assert all(one.found is None and one.why for one in found.interactions)
    assert all(one.change is not None for one in found.effects)


def test_a_half_fraction_says_what_is_aliased() -> None:
    half = (("a", ("-", "+")), ("b", ("-", "+")), ("c", ("-", "+")))
    made = table(
        half, repeats=3, keep=lambda levels: sum(level == "+" for level in levels.values()) % 2 == 1,
        log=lambda levels, _: 0.1 * (levels["a"] == "+"),
    )  # fmt: skip
    found = analyse(made, seed=1)
    assert effect(found, "a").aliased_with == ["b:c"]
    assert ("a", "b:c") in found.aliased
    assert effect(found, "a").judgement == "better"


def test_without_repeats_nothing_is_told_apart() -> None:
    found = analyse(table((("depth", ("1", "2", "4")),), repeats=1), seed=1)
    assert {one.judgement for one in found.effects} == {"unknown"}
    assert all(one.change is not None and one.change.low is None for one in found.effects)
    assert found.models[0].method == "none"
    assert found.models[0].notes


def test_a_level_without_runs_says_why() -> None:
    made = table((("mount", ("sync", "async")),), keep=lambda levels: levels["mount"] == "sync")
    made = dataclasses.replace(made, unset_levels={"mount=async": "needs root"})
    found = analyse(made, seed=1)
    one = effect(found, "mount")
    assert (one.change, one.judgement, one.why) == (None, "unknown", "needs root")
    assert [(level.factor, level.level, level.why) for level in found.unset] == [
        ("mount", "async", "needs root")
    ]


def test_an_outlier_is_named_and_moves_little() -> None:
    def log(levels: Mapping[str, str], place: int) -> float:
        return 0.1 * (levels["governor"] == "performance") - 1.0 * (place == 7)

    found = analyse(table(TWO, repeats=6, noise=0.01, log=log), seed=1)
    assert [one.run for one in found.outliers] == ["007"]
    assert found.models[0].method == "bootstrap"
    one = effect(found, "governor")
    assert one.judgement == "better"
    assert ratio(one) == pytest.approx(math.exp(0.1), rel=0.02)


def test_the_two_rates_of_one_block_size_are_one_test() -> None:
    alone = analyse(table(TWO), seed=1)
    made = table(TWO, more=lambda value: {"bandwidth_bytes_per_s": 4096 * value})
    both = analyse(made, seed=1)
    assert both.tests == alone.tests == 3
    again = effect(both, "governor", metric="bandwidth_bytes_per_s")
    assert again.again
    assert again.judgement == effect(both, "governor").judgement


@pytest.mark.in_turn
def test_the_choice_keeps_its_limit_and_tells_its_price() -> None:
    def log(levels: Mapping[str, str], _: int) -> float:
        return {"1": 0.0, "8": 1.0, "64": 1.3}[levels["depth"]]

    made = table(
        (("depth", ("1", "8", "64")), ("numa", ("near", "far"))), repeats=5, log=log,
        more=lambda value: {"lat_p99_ns": value**2, "cpu_ns_per_io": 2000 * (value / 1e4) ** 0.5},
        aims=(
            Aim("iops", larger_is_better=True, limit_metric="lat_p99_ns", limit_at_most=1e9),
            Aim("iops", larger_is_better=True, limit_metric="lat_p99_ns", limit_at_most=1.0),
            Aim("cpu_ns_per_io", larger_is_better=False),
        ),
    )  # fmt: skip
    kept, none, cheap = analyse(made, seed=1).recommendations
    assert kept.levels is not None
    assert kept.levels["depth"] == "8"
    assert kept.does_not_matter == ["numa"]
    costs = {one.metric: one.change.ratio for one in kept.costs}
    assert costs["lat_p99_ns"] == pytest.approx(math.e**2, rel=0.1)
    assert none.levels is None
    assert none.why is not None
    assert cheap.levels is not None
    assert cheap.levels["depth"] == "1"


@pytest.mark.in_turn
def test_what_is_open_says_how_many_repeats_settle_it() -> None:
    few = analyse(table(TWO, repeats=3, noise=0.08, seed=5), seed=1)
    one = effect(few, "cache")
    assert one.judgement == "open"
    assert one.more_repeats is not None
    assert one.smallest_seen is not None
    assert one.smallest_seen > few.margin
    assert one.power is not None
    assert one.power < 0.8
    assert few.more_repeats is not None
    enough = effect(analyse(table(TWO, repeats=3 + one.more_repeats, noise=0.08, seed=6), seed=1), "cache")
    assert enough.power is not None
    assert enough.power > 0.6


def test_shares_of_a_balanced_design_add_up() -> None:
    found = analyse(
        table(TWO, repeats=5, noise=0.02, log=lambda levels, _: 0.1 * (levels["cache"] == "off")), seed=1
    )
    shares = [one for one in found.shares if one.metric == "iops"]
    assert sum(one.eta_squared for one in shares) == pytest.approx(1.0, abs=0.05)
    assert max(shares, key=lambda one: one.eta_squared).term == "cache"
    assert [one.term for one in shares] == [
        "governor",
        "cache",
        "governor:cache",
        "order in time",
        "not explained",
    ]


def test_the_same_runs_and_seed_give_the_same_document() -> None:
    made = table(TWO, seed=9)
    assert analyse(made, seed=4).document() == analyse(made, seed=4).document()


def test_runs_without_any_noise_have_the_smallest_change_that_can_be_said() -> None:
    made = table((("a", ("1", "2")),), noise=0.0, repeats=4)
    one = effect(analyse(made, seed=1), "a")
    assert one.judgement == "alike"
    assert one.smallest_seen is not None
    assert one.smallest_seen < 1e-5


def test_a_zero_is_no_measurement_and_nothing_breaks_on_nothing() -> None:
    made = table(TWO)
    zero = tuple(
        dataclasses.replace(row, metrics={"iops": 0.0}) if row.order == 3 else row for row in made.rows
    )
    found = analyse(dataclasses.replace(made, rows=zero), seed=1)
    assert [one.run for one in found.left_out] == ["003"]
    assert analyse(Observations(made.factors, ()), seed=1).effects == []
    none = tuple(dataclasses.replace(row, invalid="too short") for row in made.rows)
    nothing = analyse(
        dataclasses.replace(made, rows=none, aims=(Aim("iops", larger_is_better=True),)), seed=1
    )
    assert nothing.recommendations[0].levels is None
    assert len(nothing.left_out) == len(made.rows)


@pytest.mark.in_turn
@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_any_table_is_analysed(seed: int) -> None:
    chance = np.random.default_rng(seed)
    factors = [
        (name, tuple("123"[: int(chance.integers(1, 4))])) for name in "abc"[: int(chance.integers(1, 4))]
    ]
    gone = float(chance.choice([0.0, 0.3, 0.7]))
    made = table(
        factors, repeats=int(chance.integers(1, 4)), noise=float(chance.choice([0.0, 0.05])), seed=seed,
        shuffled=bool(chance.random() < 0.5), keep=lambda _: bool(chance.random() > gone),
        invalid=lambda *_: "not valid" if chance.random() < gone else None,
        more=lambda value: {"lat_p99_ns": 1e9 / value} if chance.random() < 0.8 else {},
        aims=(Aim("iops", larger_is_better=True, limit_metric="lat_p99_ns", limit_at_most=1e5),),
    )  # fmt: skip
    found = analyse(made, seed=1)
    for one in found.effects:
        if one.change is not None and one.change.low is not None:
            assert one.change.high is not None
            assert one.change.low <= one.change.ratio * (1 + 1e-9)
            assert one.change.ratio <= one.change.high * (1 + 1e-9)
    found.document()


@pytest.mark.in_turn
def test_the_interval_of_all_tests_agrees_with_the_corrected_test_and_holds_nulls_together() -> None:
    """The interval of one effect alone left out zero in rows that were not significant."""
    several = tuple((name, ("1", "2")) for name in "abc")
    together = 0
    for seed in range(24):
        all_effects = analyse(table(several, noise=0.02, seed=seed), seed=seed).effects
        for one in all_effects:
            assert one.change is not None
            assert (one.together is None) == (one.judgement in ("better", "worse"))
            if one.together is not None:
                assert one.together[0] <= 1.0 <= one.together[1]
                assert one.together[0] < (one.change.low or 0.0)
                assert (one.change.high or math.inf) < one.together[1]
        together += all(one.together is not None for one in all_effects)
    # 24 at 95 % or more: 22.8 ± 1.1; three deviations.
    assert together >= 19
