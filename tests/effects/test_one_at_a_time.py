"""One factor at a time: the figure of a level is that of a combination that was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadstone.effects.analyse import analyse
from loadstone.effects.observations import Factor, Observation, Observations

NAMES = ("a", "b", "c")
EFFECTS = {"a": 0.5, "b": 3.0, "c": 7.0}


def measured(*, repeats: int, full: bool) -> Observations:
    """Return runs whose rates are the product of their levels' effects, all but equal in each block."""
    rows: list[Observation] = []
    for block in range(repeats):
        for cell in range(8):
            levels = {name: "12"[cell >> at & 1] for at, name in enumerate(NAMES)}
            changed = [name for name, level in levels.items() if level == "2"]
            if len(changed) > 1 and not full:
                continue
            rate = 1000.0 * (1.0 + 0.001 * ((7 * cell + 3 * block) % 5))
            for name in changed:
                rate *= EFFECTS[name]
            order = len(rows)
            rows.append(Observation(f"{order}", order, 10.0 * order, block, levels, "read", {"iops": rate}))
    return Observations(tuple(Factor(name, ("1", "2")) for name in NAMES), tuple(rows))


@pytest.mark.parametrize("repeats", [1, 4])
def test_a_level_is_told_as_it_was_measured_with_the_others_at_rest(repeats: int) -> None:
    found = analyse(measured(repeats=repeats, full=False), seed=1)
    means = {tuple(one.levels.items()): one.value for one in found.means if len(one.levels) == 1}
    for name in NAMES:
        assert means[((name, "1"),)] == pytest.approx(1000, rel=0.01)
        assert means[((name, "2"),)] == pytest.approx(1000 * EFFECTS[name], rel=0.01)
    changes = {one.factor: one.change.ratio for one in found.effects if one.change is not None}
    assert changes == pytest.approx(EFFECTS, rel=0.01)


def test_with_all_combinations_a_level_is_averaged_over_the_others() -> None:
    found = analyse(measured(repeats=4, full=True), seed=1)
    means = {tuple(one.levels.items()): one.value for one in found.means if len(one.levels) == 1}
    assert means[(("a", "1"),)] == pytest.approx(1000 * (3.0 * 7.0) ** 0.5, rel=0.01)


def test_without_runs_at_rest_no_effect_is_taken_for_another() -> None:
    whole = measured(repeats=4, full=False)
    rows = tuple(row for row in whole.rows if set(row.levels.values()) != {"1"})
    found = analyse(replace(whole, rows=rows), seed=1)
    # a=2 was measured beside b=2 and c=2 only: nobody knows which of them made the difference.
    assert {one.factor: one.judgement for one in found.effects} == dict.fromkeys(NAMES, "unknown")
    assert all(one.why and "cannot be distinguished from" in one.why for one in found.effects)
    assert all(one.value is None or one.runs for one in found.cells)


def test_two_levels_that_were_measured_alike_are_told_without_the_first() -> None:
    levels = [("2", "1"), ("3", "1"), ("1", "2")]
    rates = {("2", "1"): 100.0, ("3", "1"): 300.0, ("1", "2"): 7000.0}
    rows = [
        Observation(f"{block}{at}", 3 * block + at, 10.0 * (3 * block + at), block,
            {"a": a, "b": b}, "read", {"iops": rates[a, b] * (1 + 0.001 * ((at + 2 * block) % 3))})
        for block in range(4)
        for at, (a, b) in enumerate(levels)
    ]  # fmt: skip
    factors = (Factor("a", ("1", "2", "3")), Factor("b", ("1", "2")))
    found = analyse(Observations(factors, tuple(rows)), seed=1)
    told = {(one.factor, one.level, one.against): one for one in found.effects}
    assert told["a", "3", "2"].judgement == "better"
    assert told["a", "3", "2"].change is not None
    assert told["a", "3", "2"].change.ratio == pytest.approx(3.0, rel=0.01)
    assert told["a", "2", "1"].judgement == told["b", "2", "1"].judgement == "unknown"
