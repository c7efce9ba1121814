"""Designs and orders: counts, balance, what a fraction cannot tell apart, and what a seed decides."""

from __future__ import annotations

import itertools

import pytest

from loadstone.experiment import design
from loadstone.experiment.run_order import ordered


def test_all_combinations_once() -> None:
    made = design.full([2, 3, 2])
    assert made.full == len(made.rows) == len(set(made.rows)) == 12


def test_one_factor_at_a_time_shares_the_first_level() -> None:
    made = design.one_at_a_time([2, 3])
    assert made.rows == ((0, 0), (1, 0), (0, 1), (0, 2))
    assert made.full == 6


def test_a_half_of_three_factors_is_the_known_one() -> None:
    """The half fraction with the largest determinant is C = AB or C = -AB (Box, Hunter, Hunter)."""
    made = design.fraction([2, 2, 2], 4, "abc", seed=1)
    signs = {tuple(1 if level else -1 for level in row) for row in made.rows}
    assert len({a * b * c for a, b, c in signs}) == 1
    assert set(made.aliased) == {("a", "b:c"), ("b", "a:c"), ("c", "a:b")}


def test_a_half_of_four_factors_tells_main_effects_from_pairs() -> None:
    made = design.fraction([2, 2, 2, 2], 8, "abcd", seed=3)
    assert set(made.aliased) == {("a:b", "c:d"), ("a:c", "b:d"), ("a:d", "b:c")}


@pytest.mark.in_turn
def test_a_quarter_of_five_factors_keeps_main_effects_apart() -> None:
    made = design.fraction([2] * 5, 8, "abcde", seed=2)
    mains = {one for pair in made.aliased for one in [pair] if ":" not in pair[0] and ":" not in pair[1]}
    assert not mains
    for factor in range(5):
        assert sum(row[factor] for row in made.rows) == 4


@pytest.mark.in_turn
def test_the_twelve_runs_of_plackett_and_burman_mix_a_third_of_each_interaction_into_main_effects() -> None:
    """Every interaction of two others counts by a third as a main effect (Plackett and Burman, 1946).

    Nothing was said of it: only of effects that cannot be told apart at all.
    """
    made = design.fraction([2] * 5, 12, "abcde", seed=1)
    assert made.aliased == ()
    expected = {
        (main, f"{one}:{two}")
        for main in "abcde"
        for one, two in itertools.combinations("abcde", 2)
        if main not in (one, two)
    }
    assert {(main, other) for main, other, _ in made.mixed} == expected
    assert {round(part, 9) for *_, part in made.mixed} == {round(1 / 3, 9)}


@pytest.mark.in_turn
def test_what_is_mixed_in_part_is_by_how_much_an_interaction_shifts_a_main_effect() -> None:
    """The difference of two means, computed by hand from a planted interaction."""
    made = design.fraction([2] * 5, 12, "abcde", seed=1)
    signs = [[1 if level else -1 for level in row] for row in made.rows]
    values = [row[1] * row[2] for row in signs]
    ups = [value for row, value in zip(signs, values, strict=True) if row[0] == 1]
    downs = [value for row, value in zip(signs, values, strict=True) if row[0] == -1]
    shift = (sum(ups) / len(ups) - sum(downs) / len(downs)) / 2
    assert abs(shift) == pytest.approx(next(part for a, b, part in made.mixed if (a, b) == ("a", "b:c")))
    assert not design.mixed(design.full([2, 3, 2]).rows, [2, 3, 2], "abc")


@pytest.mark.parametrize("seed", range(5))
def test_mixed_levels_are_balanced_as_far_as_they_can_be(seed: int) -> None:
    made = design.fraction([2, 3, 4], 12, "abc", seed=seed)
    for factor, count in enumerate((2, 3, 4)):
        used = [sum(row[factor] == level for row in made.rows) for level in range(count)]
        assert max(used) - min(used) <= 1
    assert not design.aliases(design.full([2, 3, 4]).rows, [2, 3, 4], "abc")


def test_the_same_seed_gives_the_same_fraction() -> None:
    assert design.fraction([2, 2, 3], 6, "abc", seed=7) == design.fraction([2, 2, 3], 6, "abc", seed=7)


def test_what_fits_is_done_whole() -> None:
    assert design.fraction([2, 2], 9, "ab", seed=1) == design.full([2, 2])


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="4 are needed"):
        design.fraction([2, 2, 2], 3, "abc", seed=1)


def test_every_block_is_a_pass_over_everything() -> None:
    rows = design.full([2, 2]).rows
    runs = ordered(rows, 3, 4, rarely=(), seed=1)
    for block in range(4):
        mine = [(run.row, run.pattern) for run in runs if run.block == block]
        assert sorted(mine) == sorted(itertools.product(rows, range(3)))
    assert [run.block for run in runs] == sorted(run.block for run in runs)
    orders = {tuple((run.row, run.pattern) for run in runs if run.block == block) for block in range(4)}
    assert len(orders) == 4
    assert runs == ordered(rows, 3, 4, rarely=(), seed=1)
    assert runs != ordered(rows, 3, 4, rarely=(), seed=2)


def test_levels_that_change_rarely_stay() -> None:
    runs = ordered(design.full([3, 4]).rows, 2, 5, rarely=(0,), seed=5)
    for block in range(5):
        held = [run.row[0] for run in runs if run.block == block]
        assert len(list(itertools.groupby(held))) == 3


def test_the_order_of_the_file_is_kept_where_it_is_asked_for() -> None:
    runs = ordered(design.full([2, 2]).rows, 1, 2, rarely=(), seed=None)
    assert [run.row for run in runs] == list(design.full([2, 2]).rows) * 2
