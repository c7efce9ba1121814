"""Samples added up, by whatever groups them: here and nowhere else.

The analysis, the probes and what fio, vdbench and Iometer print are views of these sums: a view chooses
windows, divides and rounds. Knows the columns of samples; knows no run, line or format.
"""

from __future__ import annotations

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


def added_up(
    rows: pl.DataFrame,
    keys: Sequence[str],
    kinds: Sequence[str] = (),
    samples: str = OWN_SAMPLES,
    more: Sequence[pl.Expr] = (),
) -> pl.DataFrame:
    """Return a row for each group of sample rows, sorted by `keys`: its bounds and its sums.

    `start_ns` and `end_ns` are its first begin and last end; `kinds` are the latencies to add up,
    `more` what else is wanted of each group.
    """
    bounds = (pl.col("start_ns").min(), pl.col("end_ns").max())
    return rows.group_by(keys).agg(*bounds, *sums(kinds, samples), *more).sort(keys)


def over_time(
    rows: pl.DataFrame,
    keys: Sequence[str],
    kinds: Sequence[str] = (),
    samples: str = OWN_SAMPLES,
    more: Sequence[pl.Expr] = (),
) -> pl.DataFrame:
    """Return the same where the last of `keys` is an interval or a window, with its `length_ns`.

    It begins where no interval before it has counted: a row of a worker that a slow system call kept from
    its cut reaches back over cuts that other workers have made, and no second may count twice.
    """
    added = added_up(rows, keys, kinds, samples, more)
    before = pl.col("end_ns").cum_max().shift(1)
    if len(keys) > 1:
        before = before.over(keys[:-1])
    start = pl.min_horizontal(pl.max_horizontal("start_ns", before), "end_ns").alias("start_ns")
    return added.with_columns(start).with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("length_ns"))


def sums(kinds: Sequence[str], samples: str = OWN_SAMPLES) -> list[pl.Expr]:
    """Return what adds up sample rows: their counts, and the sums and extremes of each kind of latency.

    `samples` is the column that says how many I/Os of a row have a latency: only those of paced
    streams have waited. Sums of sums are sums: what this made can be added up again.
    """
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
    return wanted


def add_histograms(
    found: dict[tuple[int, ...], Histogram], rows: pl.DataFrame, kind: str, keys: Sequence[str]
) -> None:
    """Add the histograms of sample rows to those of their groups; groups without samples get none."""
    for key, buckets, counts in grouped(rows, kind, keys):
        found.setdefault(key, Histogram(np.zeros(BUCKETS, np.int64))).counts[buckets] += counts
