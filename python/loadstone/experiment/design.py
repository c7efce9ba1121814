"""Which combinations of levels are measured: all, one factor at a time, or a fraction of them.

Knows numbers of levels and nothing of what they mean. A fraction is chosen so that the main effects
are known as well as so many runs allow (D-optimal, by exchange of rows, seeded), and what cannot be
told apart in it is computed from the fraction itself, however it was made.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

Row = tuple[int, ...]
"""The number of each factor's level."""
MOST_ROWS: Final = 4096
STARTS: Final = 12
SWEEPS: Final = 30
SAME: Final = 1e-8
"""A column that differs less than this share of itself from what others make is made by them."""
LEAST_MIXED: Final = 0.05
"""Smaller parts of an interaction in a main effect are not told."""


@dataclass(frozen=True, slots=True)
class Combinations:
    """The rows of a design, in the order of the levels, and how many there would be in all."""

    rows: tuple[Row, ...]
    full: int
    aliased: tuple[tuple[str, str], ...] = ()
    mixed: tuple[tuple[str, str, float], ...] = ()
    """Main effects, interactions of which each takes in a part, and that part (0 to 1)."""


def full(levels: Sequence[int]) -> Combinations:
    """Return every combination, the last factor running fastest. Raises ValueError for too many."""
    count = math.prod(levels)
    if count > MOST_ROWS:
        raise make_error(ValueError, "experiment.design.too_many", combinations=count, most=MOST_ROWS)
    return Combinations(tuple(itertools.product(*(range(n) for n in levels))), count)


def one_at_a_time(levels: Sequence[int]) -> Combinations:
    """Return the first level of everything, and each other level of one factor beside it."""
    base = (0,) * len(levels)
    rows = [base]
    for factor, count in enumerate(levels):
        rows += [(*base[:factor], level, *base[factor + 1 :]) for level in range(1, count)]
    return Combinations(tuple(rows), math.prod(levels))


def least_rows(levels: Sequence[int]) -> int:
    """Return how many rows the main effects need at the least."""
    return 1 + sum(count - 1 for count in levels)


def fraction(levels: Sequence[int], most: int, names: Sequence[str], seed: int) -> Combinations:
    """Return at most so many combinations, and what they cannot tell apart.

    Raises ValueError where so few do not tell the main effects.
    """
    every = full(levels)
    if most >= every.full:
        return every
    if most < least_rows(levels):
        raise make_error(ValueError, "experiment.design.too_few", combinations=most, least=least_rows(levels))
    candidates = np.array(every.rows, dtype=int)
    chosen = _exchanged(candidates, levels, most, seed)
    rows = tuple(sorted(tuple(int(level) for level in candidates[at]) for at in chosen))
    return Combinations(rows, every.full, aliases(rows, levels, names), mixed(rows, levels, names))


def aliases(rows: Sequence[Row], levels: Sequence[int], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of effects (main, and of two factors) that these rows cannot tell apart.

    An effect is aliased with another when one of its contrasts is made of the other's and the mean.
    """
    pairs = _correlated(rows, levels)
    return tuple((_named(one, names), _named(two, names)) for one, two, part in pairs if part > 1 - SAME)


def mixed(
    rows: Sequence[Row], levels: Sequence[int], names: Sequence[str]
) -> tuple[tuple[str, str, float], ...]:
    """Return main effects that these rows mix with a part of an interaction, and the part (0 to 1).

    With two levels each it is the coefficient of the alias: how much of that interaction the difference of
    two means takes in (D. C. Montgomery, Design and Analysis of Experiments, chapter 8). With more levels it
    is that of the contrast that takes in most.
    """
    return tuple(
        (_named(one, names), _named(two, names), part)
        for one, two, part in _correlated(rows, levels)
        if len(one) < len(two) and LEAST_MIXED <= part <= 1 - SAME
    )


def _correlated(
    rows: Sequence[Row], levels: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], float]]:
    """Return each two effects by their factors, and the largest correlation of their contrasts."""
    table = np.array(rows, dtype=int)
    mains = [((factor,), _contrasts(table[:, factor], count)) for factor, count in enumerate(levels)]
    effects: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [*mains]
    for ((one,), first), ((two,), second) in itertools.combinations(mains, 2):
        effects.append(((one, two), np.array([a * b for a in first.T for b in second.T]).T))
    bases = [(which, _basis(_centred(columns))) for which, columns in effects]
    for (one_factors, first), (two_factors, second) in itertools.combinations(bases, 2):
        if first.size and second.size:
            yield one_factors, two_factors, float(np.linalg.svd(first.T @ second, compute_uv=False)[0])


def _named(which: tuple[int, ...], names: Sequence[str]) -> str:
    return ":".join(names[factor] for factor in which)


def _contrasts(column: NDArray[np.int_], count: int) -> NDArray[np.float64]:
    """Return the columns of a factor: each level but the last against the last, summing to nothing."""
    contrasts = np.zeros((len(column), count - 1))
    for level in range(count - 1):
        contrasts[:, level] = (column == level).astype(float) - (column == count - 1).astype(float)
    return contrasts


def _centred(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    centred: NDArray[np.float64] = columns - columns.mean(axis=0)
    return centred


def _basis(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    basis: NDArray[np.float64] = left[:, sizes > 1e-9 * max(1.0, float(sizes.max(initial=0.0)))]
    return basis


def _model(table: NDArray[np.int_], levels: Sequence[int]) -> NDArray[np.float64]:
    """Return the columns of the main effects, normed, and slight ones of two factors to break ties."""
    mains = [_contrasts(table[:, factor], count) for factor, count in enumerate(levels)]
    return np.hstack([np.ones((len(table), 1)), *mains])


def _exchanged(candidates: NDArray[np.int_], levels: Sequence[int], most: int, seed: int) -> list[int]:
    """Return the rows with the largest determinant found, and of those the one with the fewest aliases."""
    model = _model(candidates, levels)
    pairs = _pairs(candidates, levels)
    best: tuple[tuple[float, float], list[int]] | None = None
    draw = random.Random(seed)  # noqa: S311 - a design that anybody may draw again
    for _ in range(STARTS):
        chosen = draw.sample(range(len(candidates)), most)
        score = _score(model, pairs, chosen)
        for _ in range(SWEEPS):
            better = _sweep(model, pairs, chosen, score)
            if better is None:
                break
            score = better
        if best is None or score > best[0]:
            best = (score, list(chosen))
    assert best is not None  # noqa: S101 - there is at least one start
    return best[1]


def _sweep(
    model: NDArray[np.float64], pairs: NDArray[np.float64], chosen: list[int], score: tuple[float, float]
) -> tuple[float, float] | None:
    """Exchange each chosen row for the best other one; None where nothing gets better."""
    improved = None
    for at in range(len(chosen)):
        old = chosen[at]
        best, row = score, old
        for other in range(len(model)):
            if other in chosen:
                continue
            chosen[at] = other
            now = _score(model, pairs, chosen)
            if now > (best[0] + 1e-9, best[1]) or (now[0] > best[0] - 1e-9 and now[1] > best[1] + 1e-9):
                best, row = now, other
        chosen[at] = row
        if row != old:
            score = improved = best
    return improved


def _score(
    model: NDArray[np.float64], pairs: NDArray[np.float64], chosen: Sequence[int]
) -> tuple[float, float]:
    """Return how well main effects are known, and how little they are mixed with those of two factors."""
    rows = model[chosen]
    sign, size = np.linalg.slogdet(rows.T @ rows)
    if sign <= 0:
        return (-math.inf, 0.0)
    mixed = rows.T @ pairs[chosen]
    return (round(float(size), 9), -round(float((mixed**2).sum()), 6))


def _pairs(candidates: NDArray[np.int_], levels: Sequence[int]) -> NDArray[np.float64]:
    mains = [_contrasts(candidates[:, factor], count) for factor, count in enumerate(levels)]
    columns = [a * b for one, two in itertools.combinations(mains, 2) for a in one.T for b in two.T]
    return np.array(columns).T if columns else np.zeros((len(candidates), 0))
