"""Tables of runs for tests: a planted effect and noise from a seed."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from loadstone.effects.observations import Aim, Factor, Observation, Observations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def table(
    factors: Sequence[tuple[str, Sequence[str]]],
    *,
    repeats: int = 3,
    noise: float = 0.01,
    seed: int = 1,
    log: Callable[[Mapping[str, str], int], float] = lambda levels, place: 0.0,
    metric: str = "iops",
    pattern: str = "4k random read",
    shuffled: bool = True,
    aims: tuple[Aim, ...] = (),
    keep: Callable[[Mapping[str, str]], bool] = lambda levels: True,
    invalid: Callable[[Mapping[str, str], int], str | None] = lambda levels, place: None,
    more: Callable[[float], dict[str, float]] = lambda value: {},
    aliased: tuple[tuple[str, str], ...] = (),
) -> Observations:
    """Draw an experiment; `log` is the logarithm of the planted value, by levels and place in time."""
    chance = np.random.default_rng(seed)
    made = tuple(Factor(name, tuple(levels)) for name, levels in factors)
    cells = [
        dict(zip((one.name for one in made), combination, strict=True))
        for combination in product(*(one.levels for one in made))
    ]
    cells = [cell for cell in cells if keep(cell)]
    rows: list[Observation] = []
    for block in range(repeats):
        order = chance.permutation(len(cells)) if shuffled else np.arange(len(cells))
        for at in order:
            levels, place = cells[int(at)], len(rows)
            value = 1e4 * math.exp(log(levels, place) + float(chance.normal(0, noise)))
            rows.append(
                Observation(
                    run=f"{place:03d}", order=place, started_s=60.0 * place, block=block, levels=levels,
                    pattern=pattern, metrics={metric: value, **more(value)}, invalid=invalid(levels, place),
                )
            )  # fmt: skip
    return Observations(made, tuple(rows), aims, aliased)
