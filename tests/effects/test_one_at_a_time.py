"""One factor at a time: the figure of a level is that of a combination that was measured."""

from __future__ import annotations

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
