"""The rate of a run over time, few enough points to be seen in a small chart.

Knows which rows of the series a rate is of: those that moved data, of all jobs or of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from loadstone.analysis.series import series
from loadstone.analysis.study.run_figures import WHOLE

if TYPE_CHECKING:
    from loadstone.analysis.study.run_figures import RunFigures

MAX_POINTS: Final = 90


def rate_over_time(run: RunFigures, job: str, *, large: bool) -> list[tuple[float, float]]:
    """Return seconds since the first sample and the rate there, in IOPS or bytes per second."""
    if run.summary is None:
        return []
    measurement = run.summary.measurement
    interval_ns = measurement.plan.interval_ns
    every_ns = max(1, -(-measurement.ended_ns // (MAX_POINTS * interval_ns))) * interval_ns
    table = series(measurement, "all" if job == WHOLE else "job", window_ns=every_ns, percentiles=())
    if job != WHOLE:
        table = table.filter(pl.col("name") == job)
    column = "bytes_per_s" if large else "iops"
    table = table.filter((pl.col("op") != "sync") & (pl.col("end_ns") - pl.col("start_ns") >= every_ns // 2))
    added = table.group_by("start_ns").agg(pl.col(column).sum()).sort("start_ns")
    if not added.height:
        return []
    first = added["start_ns"][0]
    return [((at - first) / 1e9, float(rate)) for at, rate in added.iter_rows()]
