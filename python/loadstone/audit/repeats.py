"""Runs of a study that are repeats of each other.

Knows that points which differ in nothing but their number are the same measurement, and tells each
of their cases what the others came to. Judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.audit.case import Case

REPEAT = "repeat"


def with_repeats(
    points: Sequence[tuple[Mapping[str, object], Sequence[Case]]],
) -> list[tuple[Case, ...]]:
    """Return the cases of each point with the rates of its repeats, in their order.

    `points` are factors and cases of runs; those without a factor `repeat` are repeats of nothing.
    """
    rates = defaultdict(list)
    for factors, cases in points:
        for index, case in enumerate(cases):
            if REPEAT in factors and case.total.iops is not None:
                rates[_same(factors, index, case)].append(case.total.iops)
    return [
        tuple(
            replace(case, repeats=tuple(repeat_rates))
            if len(repeat_rates := rates.get(_same(factors, index, case), [])) > 1 and REPEAT in factors
            else case
            for index, case in enumerate(cases)
        )
        for factors, cases in points
    ]


def _same(factors: Mapping[str, object], index: int, case: Case) -> tuple[object, ...]:
    others = sorted((name, str(value)) for name, value in factors.items() if name != REPEAT)
    return (*others, index, case.name)
