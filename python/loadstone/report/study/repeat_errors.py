"""What repeats say together as pages and terminal write it: each number has one value and one error.

Runs may lie nearer to each other than each of them knows itself: by chance, or as all held one rate. Then
what they know themselves is the error, here as in the matrix of patterns (`analysis.study.pooled`). As
there a percentile is that of all I/Os of the runs, and no mean of theirs.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Final

from loadstone.analysis.statistics.distributions import t_quantile
from loadstone.analysis.study import repeats
from loadstone.analysis.study.patterns import base_name
from loadstone.analysis.study.pooled import pooled
from loadstone.analysis.study.run_figures import WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.analysis.study.pooled import Pooled
    from loadstone.analysis.study.repeats import RepeatedLine, RepeatedValue
    from loadstone.analysis.study.run_figures import RunFigures

MANY: Final = 1e6
REACH: Final = t_quantile(0.975, MANY)
"""Of a 95 % interval, in errors that many sample intervals tell."""


def told_lines(runs: Sequence[RunFigures]) -> list[RepeatedLine]:
    """Return what runs of the same thing say together, by job and operation."""
    return [_of_all_runs(line, runs) for line in repeats.lines(runs)]


def by_run(runs: Sequence[RunFigures]) -> Mapping[str, list[RepeatedLine]]:
    """Return the same of each run of a list that was done several times, by its name."""
    return {
        name: [_of_all_runs(line, [one for one in runs if base_name(one) == name]) for line in lines]
        for name, lines in repeats.by_run(runs).items()
    }


def _of_all_runs(line: RepeatedLine, runs: Sequence[RunFigures]) -> RepeatedLine:
    """Return a line whose errors are at least those of its runs, with percentiles of all their I/Os."""
    figures = [
        one
        for run in runs
        for one in ([run.whole] if line.job == WHOLE else run.lines)
        if one is not None and (one.job, one.op) == (line.job, line.op)
    ]
    all_ios = pooled(figures)
    return dataclasses.replace(
        line,
        iops=_widened(line.iops),
        bandwidth=_widened(line.bandwidth),
        mean_ns=_widened(line.mean_ns),
        percentiles_ns={
            percent: _of_all_ios(value, percent, all_ios) for percent, value in line.percentiles_ns.items()
        },
    )


def _of_all_ios(value: RepeatedValue | None, percent: float, all_ios: Pooled | None) -> RepeatedValue | None:
    """Return a percentile of all I/Os, with the error that the spread of the runs shows, as a share of it."""
    of_all = None if all_ios is None else all_ios.percentiles_ns.get(percent)
    if value is None or not of_all or not value.mean.value:
        return value
    scale = of_all / value.mean.value
    error = None if value.mean.error is None else value.mean.error * scale
    return dataclasses.replace(
        value,
        mean=dataclasses.replace(value.mean, value=float(of_all), error=error),
        half_width=None if value.half_width is None else value.half_width * scale,
    )


def widened(value: RepeatedValue) -> RepeatedValue:
    """Return one value so."""
    own = (value.within_error or 0.0) / math.sqrt(value.mean.count)
    if own <= (value.mean.error or 0.0):
        return value
    half_width = None if value.half_width is None else max(value.half_width, REACH * own)
    return dataclasses.replace(value, mean=dataclasses.replace(value.mean, error=own), half_width=half_width)


def _widened(value: RepeatedValue | None) -> RepeatedValue | None:
    return None if value is None else widened(value)
