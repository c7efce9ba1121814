"""Which runs an effect may rest on: the valid ones of a pattern that measured the metric.

Knows the table of runs. Knows no statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, get_args

from loadstone.effects.findings import LeftOutRun
from loadstone.effects.metric_names import name_of
from loadstone.effects.observations import MetricName
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.effects.observations import Observation, Observations

METRICS: Final[tuple[str, ...]] = get_args(MetricName)
RATES: Final = ("iops", "bandwidth_bytes_per_s")
SAME: Final = 1e-3
"""Two rates whose ratio changes by less than this say the same."""


@dataclass(frozen=True, slots=True)
class MetricRuns:
    """The runs of one metric of one pattern."""

    pattern: str
    metric: str
    rows: tuple[Observation, ...]
    first: bool
    again: bool

    @property
    def values(self) -> list[float]:
        """What was measured."""
        return [row.metrics[self.metric] for row in self.rows]


def patterns(table: Observations) -> list[str]:
    """Return the names of the patterns that have runs, in the order of the file."""
    came = dict.fromkeys(row.pattern for row in table.rows)
    return [
        *(name for name in table.patterns if name in came),
        *(name for name in came if name not in table.patterns),
    ]


def first_metric(table: Observations) -> str | None:
    """Return what the experiment is about: what was asked for first, else a rate, else any."""
    known = {metric for row in table.rows for metric in row.metrics}
    requested = [*table.metrics[:1], *(one.metric for one in table.aims)]
    return next((metric for metric in (*requested, *RATES, *METRICS) if metric in known), None)


def of_each(table: Observations) -> list[MetricRuns]:
    """Return the runs behind every metric of every pattern, as far as there are any."""
    main = first_metric(table)
    # In the order of time, so that the same runs give the same result however they are listed.
    table = replace(table, rows=tuple(sorted(table.rows, key=lambda row: (row.order, row.run))))
    metric_runs = []
    for pattern in patterns(table):
        valid = [row for row in table.rows if row.pattern == pattern and row.invalid is None]
        for metric in METRICS:
            rows = tuple(row for row in valid if row.metrics.get(metric, 0.0) > 0)
            if rows:
                again = metric in RATES and metric != main and _same_rates(valid)
                again = again and (main in RATES or metric != RATES[0])
                metric_runs.append(MetricRuns(pattern, metric, rows, metric == main, again))
    return metric_runs


def _same_rates(rows: list[Observation]) -> bool:
    ratios = [
        row.metrics[RATES[1]] / row.metrics[RATES[0]]
        for row in rows
        if all(row.metrics.get(rate, 0.0) > 0 for rate in RATES)
    ]
    return bool(ratios) and max(ratios) <= min(ratios) * (1 + SAME)


def left_out(table: Observations) -> list[LeftOutRun]:
    """Return the runs that nothing rests on, each with its reason."""
    return [
        LeftOutRun(pattern=row.pattern, run=row.run, levels=dict(row.levels), why=row.invalid)
        for row in table.rows
        if row.invalid is not None
    ] + [
        LeftOutRun(
            pattern=row.pattern,
            run=row.run,
            levels=dict(row.levels),
            why=say("effects.no_data.zero", metric=name_of(metric)),
        )
        for row in table.rows
        if row.invalid is None
        for metric, value in row.metrics.items()
        if value <= 0
    ]
