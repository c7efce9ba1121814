"""The runs of an experiment in the order in which they are done.

Knows combinations, patterns and blocks. A block is a pass over everything; within it the order is
drawn anew, so that a drift is nobody's effect. Levels that change rarely stay for a while.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.experiment.design import Row

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run: which block, which combination, which pattern (both by number)."""

    block: int
    row: Row
    pattern: int


def ordered(
    rows: Sequence[Row], patterns: int, blocks: int, *, rarely: Sequence[int], seed: int | None
) -> list[PlannedRun]:
    """Return all runs; `rarely`: the numbers of factors whose levels stay, `seed` None: as given."""
    draw = None if seed is None else random.Random(seed)  # noqa: S311 - an order that anybody may draw again
    planned_runs: list[PlannedRun] = []
    for block in range(blocks):
        runs = [PlannedRun(block, row, pattern) for row in rows for pattern in range(patterns)]
        groups: dict[tuple[int, ...], list[PlannedRun]] = {}
        for run in runs:
            groups.setdefault(tuple(run.row[factor] for factor in rarely), []).append(run)
        for key in _drawn(list(groups), draw):
            planned_runs += _drawn(groups[key], draw)
    return planned_runs


def _drawn(items: Iterable[T], draw: random.Random | None) -> list[T]:
    drawn = list(items)
    if draw is not None:
        draw.shuffle(drawn)
    return drawn
