"""Section "Slowest windows": when a job was slowest, to be looked up in the logs of the storage."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone import units
from loadstone.analysis.series import series
from loadstone.messages import say
from loadstone.report.article.elements import ArticleTable, Heading, Paragraph
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Total
    from loadstone.report.article.elements import Block

WINDOW_NS: Final = 1_000_000_000
WHOLE: Final = 0.9
SLOW: Final = 0.9
"""Of the median: a second above that is as slow as others."""
LEAST: Final = 10
"""In fewer windows every one is seen on the chart."""
SHOWN: Final = 3
MAX_JOBS: Final = 16
HEADINGS: Final = table_heads(
    "job", "at", "into_the_run", "IOPS", "of_its_median", "mean_latency", "p99", "max"
)
MEANING: Final = say("report.page.slowest")


def section(summary: Summary) -> Sequence[Block]:
    """Return the slowest seconds of each job; nothing for a short, an even or a very large run."""
    jobs = [total for total in summary.totals("job") if total.ops]
    if len(jobs) > MAX_JOBS:
        return []
    table = series(summary.measurement, "job", window_ns=WINDOW_NS, percentiles=(99.0,))
    rows = [row for job in jobs for row in _rows(summary, job, table.filter(pl.col("key") == job.line.key))]
    if not rows:
        return []
    return [
        Heading(say("report.heading.slowest")),
        ArticleTable(HEADINGS, rows, names=2),
        Paragraph(MEANING, "soft"),
    ]


def _rows(summary: Summary, job: Total, table: pl.DataFrame) -> list[list[str]]:
    data = table.filter(
        ~pl.col("ramp") & pl.col("iops").is_not_null() & (pl.col("seconds") >= WHOLE * WINDOW_NS / 1e9)
    )
    op = _main_op(data)
    windows = data.filter(pl.col("op") == op) if op is not None else data
    if windows.height < LEAST:
        return []
    median = windows["iops"].median()
    slow = windows.filter(pl.col("iops") < SLOW * pl.col("iops").median())
    slowest = slow.sort("iops", "start_ns").head(SHOWN).to_dicts()
    return [
        _row(summary, "" if at else f"{job.line.name} {op}", window, median)
        for at, window in enumerate(slowest)
    ]


def _main_op(data: pl.DataFrame) -> str | None:
    """Return the operation that the job did most of."""
    counted = data.group_by("op").agg(pl.col("iops").sum()).sort("iops", "op", descending=True)
    return None if counted.height == 0 else str(counted["op"][0])


def _row(summary: Summary, name: str, window: dict[str, Any], median: Any) -> list[str]:
    seconds = window["start_ns"] / 1e9
    at = (
        f"{summary.started + timedelta(seconds=seconds):%H:%M:%S}"
        if summary.started is not None
        else units.NONE
    )
    share = f"{100 * window['iops'] / median:.0f} %" if median else units.NONE
    times = [units.duration(window.get(one)) for one in ("mean_ns", "p99_ns", "max_ns")]
    return [name, at, units.seconds(seconds), units.count(window["iops"]), share, *times]
