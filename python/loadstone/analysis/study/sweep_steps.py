"""What each step of a sweep's last factor changes, with its interval.

Knows that only steps between repeated, valid combinations can be judged, and that their number
has to be corrected for. Recommends nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadstone.analysis.statistics.significance import Contrast, Sample, contrast, holm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.analysis.study.pooled import Pooled
    from loadstone.analysis.study.sweep import Sweep
    from loadstone.bundle.study import Factor


@dataclass(frozen=True, slots=True)
class SweepStep:
    """One step: the other factors' values, from and to, and how the rate changes."""

    fixed: tuple[Factor, ...]
    low: Factor
    high: Factor
    change: Contrast
    """`p` is corrected for the number of steps."""


def steps(sweep: Sweep) -> list[SweepStep]:
    """Return every step whose two ends were repeated."""
    repeated_steps = []
    for fixed, low, high, before, after in _pairs(sweep):
        change = contrast(_sample(before), _sample(after))
        if change is not None and change.p is not None:
            repeated_steps.append(SweepStep(fixed, low, high, change))
    corrected = holm([one.change.p or 0.0 for one in repeated_steps])
    return [
        replace(one, change=replace(one.change, p=p))
        for one, p in zip(repeated_steps, corrected, strict=True)
    ]


def _pairs(sweep: Sweep) -> Iterator[tuple[tuple[Factor, ...], Factor, Factor, Pooled, Pooled]]:
    *others, last = sweep.axes
    sound = {cell.values: cell.sound for cell in sweep.cells}
    for fixed in itertools.product(*(axis.values for axis in others)):
        for low, high in itertools.pairwise(last.values):
            before, after = sound.get((*fixed, low)), sound.get((*fixed, high))
            if before is not None and after is not None and min(before.runs, after.runs) > 1:
                yield fixed, low, high, before, after


def _sample(pooled: Pooled) -> Sample:
    return Sample(pooled.rate.value, pooled.rate.error, float(pooled.runs - 1), pooled.runs)
