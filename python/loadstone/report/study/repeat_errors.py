"""The error of a mean of repeats as pages and terminal write it: each number has one.

Runs may lie nearer to each other than each of them knows itself: by chance, or as all held one rate. Then
what they know themselves is the error, here as in the matrix of patterns (`analysis.study.pooled`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Final

from loadstone.analysis.statistics.distributions import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.repeats import RepeatedLine, RepeatedValue

MANY: Final = 1e6
REACH: Final = t_quantile(0.975, MANY)
"""Of a 95 % interval, in errors that many sample intervals tell."""


def with_own_errors(lines: Sequence[RepeatedLine]) -> list[RepeatedLine]:
    """Return lines whose errors and intervals are at least those that the runs have themselves."""
    return [
        dataclasses.replace(
            line,
            iops=_widened(line.iops),
            bandwidth=_widened(line.bandwidth),
            mean_ns=_widened(line.mean_ns),
        )
        for line in lines
    ]


def widened(value: RepeatedValue) -> RepeatedValue:
    """Return one value so."""
    own = (value.within_error or 0.0) / math.sqrt(value.mean.count)
    if own <= (value.mean.error or 0.0):
        return value
    half_width = None if value.half_width is None else max(value.half_width, REACH * own)
    return dataclasses.replace(value, mean=dataclasses.replace(value.mean, error=own), half_width=half_width)


def _widened(value: RepeatedValue | None) -> RepeatedValue | None:
    return None if value is None else widened(value)
