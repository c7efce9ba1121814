"""Which tests an experiment makes, and how their number is corrected for.

Knows p-values. Most of the allowed error goes to the metric that the experiment is about, the rest
to all others; each part is corrected by Holm's procedure, over all patterns, factors and
interactions, so that chance tells anything apart in at most `alpha` of experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.analysis.statistics.significance import holm
from loadstone.comparison.matrix import FIRST_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class MadeTest:
    """One test: its p-value (None: not known), and which part of the allowed error it takes from."""

    p: float | None
    first: bool
    again: bool


def corrected(tests: Sequence[MadeTest]) -> list[float | None]:
    """Return the p-value of each after correction; of what is no test of its own the p-value as it is."""
    p_values: list[float | None] = [None] * len(tests)
    shares = _shares(tests)
    for first, share in shares.items():
        places = [
            at for at, one in enumerate(tests) if one.first is first and not one.again and one.p is not None
        ]
        for at, p in zip(places, holm([tests[at].p or 0.0 for at in places]), strict=True):
            p_values[at] = min(1.0, p / share)
    return p_values


def strictest(tests: Sequence[MadeTest], alpha: float) -> dict[bool, float]:
    """Return the error that one test alone has to keep to, in the first part and in the other."""
    return {
        first: alpha
        * share
        / max(1, sum(one.first is first and not one.again and one.p is not None for one in tests))
        for first, share in _shares(tests).items()
    }


def last_step(tests: Sequence[MadeTest], alpha: float) -> dict[bool, float]:
    """Return the error that each test had to keep to in the step at which Holm's procedure ended.

    Intervals of that level belong to the procedure: those of all tests that are not significant hold zero,
    and cover their truths together (K. Strassburger and F. Bretz, Statistics in Medicine 27, 2008).
    """
    ps, levels = corrected(tests), {}
    for first, share in _shares(tests).items():
        left = sum(
            one.first is first and not one.again and p is not None and p >= alpha
            for one, p in zip(tests, ps, strict=True)
        )
        levels[first] = alpha * share / max(1, left)
    return levels


def _shares(tests: Sequence[MadeTest]) -> dict[bool, float]:
    known = {one.first for one in tests if not one.again and one.p is not None}
    both = len(known) == 2
    return {True: FIRST_SHARE if both else 1.0, False: 1 - FIRST_SHARE if both else 1.0}
