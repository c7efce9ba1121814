"""Samples added up, by whatever groups them: here and nowhere else.

The analysis, the probes and what fio, vdbench and Iometer print are views of these sums: a view chooses
windows, divides and rounds. Knows the columns of samples; knows no run, line or format.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.histogram import BUCKETS, Histogram
from loadstone.bundle.sums import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTS: Final = ("ops", "bytes", "errors", "shorts")
"""What is counted of I/Os besides their latencies."""
OWN_SAMPLES: Final = "{}_samples"
ENGINE: Final = "in-memory"
"""Polars' streaming engine takes twice as long to begin; these rows are in memory, and mostly few."""


def added_up(
    rows: pl.DataFrame,
    keys: Sequence[str],
    kinds: Sequence[str] = (),
    samples: str = OWN_SAMPLES,
    *,
    more: Sequence[pl.Expr] = (),
    over: str | None = None,
) -> pl.DataFrame:
    """Return a row for each group of sample rows, sorted by `keys`: its bounds and its sums.

    `start_ns` and `end_ns` are its first begin and last end; `kinds` are the latencies to add up,
    `more` what else is wanted of each group. `over` is one more key, an interval or a window, whose rows
    have a `length_ns` and begin where no interval before them has counted: a row of a worker that a slow
    system call kept from its cut reaches back over cuts that other workers have made, and no second may
    count twice.
    """
    every = [*keys, *([over] if over else [])]
    start, end = pl.col("start_ns"), pl.col("end_ns")
    grouped_rows = rows.lazy().group_by(every)
    added = grouped_rows.agg(start.min(), end.max(), *sums(kinds, samples), *more).sort(every)
    if over is None:
        return added.collect(engine=ENGINE)
    before = end.cum_max().shift(1)
    own = pl.min_horizontal(pl.max_horizontal(start, before.over(keys) if keys else before), end)
    bounds = added.with_columns(own.alias("start_ns")).with_columns((end - start).alias("length_ns"))
    return bounds.collect(engine=ENGINE)


def sums(kinds: Sequence[str], samples: str = OWN_SAMPLES) -> Sequence[pl.Expr]:
    """Return what adds up sample rows: their counts, and the sums and extremes of each kind of latency.

    `samples` is the column that says how many I/Os of a row have a latency: only those of paced
    streams have waited. Sums of sums are sums: what this made can be added up again.
    """
    return _sums(tuple(kinds), samples)


@cache
def _sums(kinds: tuple[str, ...], samples: str) -> tuple[pl.Expr, ...]:
    wanted = [pl.col(name).sum() for name in COUNTS]
    for kind in kinds:
        known = pl.col(samples.format(kind))
        wanted += [
            known.sum().alias(f"{kind}_samples"),
            pl.col(f"{kind}_sum_ns").sum(),
            pl.col(f"{kind}_sumsq_ns2").sum(),
            pl.col(f"{kind}_min_ns").filter(known > 0).min(),
            pl.col(f"{kind}_max_ns").max(),
        ]
    return tuple(wanted)


def add_histograms(
    found: dict[tuple[int, ...], Histogram], rows: pl.DataFrame, kind: str, keys: Sequence[str]
) -> None:
    """Add the histograms of sample rows to those of their groups; groups without samples get none."""
    for key, buckets, counts in grouped(rows, kind, keys):
        found.setdefault(key, Histogram(np.zeros(BUCKETS, np.int64))).counts[buckets] += counts
