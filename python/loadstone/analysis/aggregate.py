"""Samples added up, by whatever groups them: here and nowhere else.

The analysis, the probes and what fio, vdbench and Iometer print are views of these sums: a view chooses
windows, divides and rounds. Knows the columns of samples; knows no run, line or format.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from loadstone.analysis.histogram import BUCKETS, Histogram
from loadstone.bundle.sums import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]
    Rows = pl.DataFrame | Columns

COUNTS: Final = ("ops", "bytes", "errors", "shorts")
"""What is counted of I/Os besides their latencies."""
OWN_SAMPLES: Final = "{}_samples"
Reduction = Literal["sum", "min", "max", "all"]
REDUCTIONS: Final[Mapping[Reduction, np.ufunc]] = {
    "sum": np.add, "min": np.minimum, "max": np.maximum, "all": np.logical_and,
}  # fmt: skip
NOTHING_MORE: Final[Mapping[str, Reduction]] = {}
MOST_CODE: Final = 2**62


def added_up(
    rows: Rows,
    keys: Sequence[str],
    kinds: Sequence[str] = (),
    samples: str = OWN_SAMPLES,
    *,
    more: Mapping[str, Reduction] = NOTHING_MORE,
    over: str | None = None,
) -> pl.DataFrame:
    """Return a row for each group of sample rows, sorted by `keys`, which are whole numbers.

    A group has its bounds, its counts, the sums and extremes of the latencies `kinds`, and what becomes of
    the columns `more`. Its bounds, `start_ns` and `end_ns`, are its first begin and last end. `samples` is
    the column that says how many I/Os of a row have a latency: only those of paced streams have waited.
    Sums of sums are sums: what this made can be added up again.

    `over` is one more key, an interval or a window, whose rows have a `length_ns` and begin where no
    interval before them has counted: a row of a worker that a slow system call kept from its cut reaches
    back over cuts that other workers have made, and no second may count twice.
    """
    columns = columns_added_up(rows, keys, kinds, samples, more=more, over=over)
    table = pl.DataFrame(columns)
    # An extreme of no I/O is not known.
    unknown = [
        pl.when(pl.col(f"{kind}_samples") > 0).then(pl.col(f"{kind}_min_ns")).alias(f"{kind}_min_ns")
        for kind in kinds
        if table.height and not columns[f"{kind}_samples"].all()
    ]
    return table.with_columns(unknown) if unknown else table


def columns_added_up(
    rows: Rows,
    keys: Sequence[str],
    kinds: Sequence[str] = (),
    samples: str = OWN_SAMPLES,
    *,
    more: Mapping[str, Reduction] = NOTHING_MORE,
    over: str | None = None,
) -> Columns:
    """Return the columns of `added_up`; the shortest latency of a group without any is some number.

    Polars groups an hour of many jobs by several keys in five times as long as this takes.
    """
    every = [*keys, *([over] if over else [])]
    of_keys = [_column(rows, name) for name in every]
    order, first = _groups(of_keys, len(_column(rows, "start_ns")))

    def reduced(name: str, how: Reduction) -> NDArray[Any]:
        return _reduced(_column(rows, name), order, first, REDUCTIONS[how])

    chosen = first if order is None else order[first]
    columns = {name: column[chosen] for name, column in zip(every, of_keys, strict=True)}
    columns["start_ns"], columns["end_ns"] = reduced("start_ns", "min"), reduced("end_ns", "max")
    columns |= {name: reduced(name, "sum") for name in COUNTS}
    for kind in kinds:
        known = _column(rows, samples.format(kind))
        columns[f"{kind}_samples"] = _reduced(known, order, first, np.add)
        columns[f"{kind}_sum_ns"] = reduced(f"{kind}_sum_ns", "sum")
        columns[f"{kind}_sumsq_ns2"] = reduced(f"{kind}_sumsq_ns2", "sum")
        shortest = _column(rows, f"{kind}_min_ns")
        shortest = np.where(known > 0, shortest, np.iinfo(shortest.dtype).max)
        columns[f"{kind}_min_ns"] = _reduced(shortest, order, first, np.minimum)
        columns[f"{kind}_max_ns"] = reduced(f"{kind}_max_ns", "max")
    columns |= {name: reduced(name, how) for name, how in more.items()}
    if over is not None:
        columns["start_ns"] = _own_starts(columns, keys)
        columns["length_ns"] = columns["end_ns"] - columns["start_ns"]
    return columns


def _column(rows: Rows, name: str) -> NDArray[Any]:
    column = rows[name]
    return column.to_numpy() if isinstance(column, pl.Series) else column


def _groups(
    of_keys: Sequence[NDArray[Any]], height: int
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """Return what sorts rows by their keys (None: they are sorted), and where groups begin in that order."""
    if not height or not of_keys:
        return None, np.zeros(min(height, 1), np.int64)
    lows = [int(column.min()) for column in of_keys]
    spans = [int(column.max()) - low + 1 for column, low in zip(of_keys, lows, strict=True)]
    if math.prod(spans) > MOST_CODE:
        order = np.lexsort(tuple(reversed(of_keys)))
        differs = np.any([column[order][1:] != column[order][:-1] for column in of_keys], axis=0)
        return order, np.flatnonzero(np.r_[True, differs])
    codes = np.zeros(height, np.int64)
    for column, low, span in zip(of_keys, lows, spans, strict=True):
        codes = codes * span + (column.astype(np.int64) - low)
    steps = np.diff(codes)
    if (steps >= 0).all():
        return None, np.flatnonzero(np.r_[True, steps > 0])
    order = np.argsort(codes, kind="stable")
    return order, np.flatnonzero(np.r_[True, np.diff(codes[order]) > 0])


def _reduced(
    column: NDArray[Any], order: NDArray[np.int64] | None, first: NDArray[np.int64], how: np.ufunc
) -> NDArray[Any]:
    if not len(first):
        return column[:0]
    ordered = column if order is None else column[order]
    # As many groups as rows: each is its own sum.
    return ordered if len(first) == len(ordered) else np.asarray(how.reduceat(ordered, first))


def _own_starts(columns: Columns, keys: Sequence[str]) -> NDArray[Any]:
    """Return where each interval begins: not before the end of those before it, within its keys."""
    starts, ends = columns["start_ns"].copy(), columns["end_ns"]
    if not len(starts):
        return starts
    another = np.any([columns[key][1:] != columns[key][:-1] for key in keys], axis=0) if keys else False
    edges = np.flatnonzero(np.r_[True, np.broadcast_to(another, len(starts) - 1), True])
    for begin, end in pairwise(edges):
        before = np.maximum.accumulate(ends[begin : end - 1])
        own = slice(begin + 1, end)
        starts[own] = np.minimum(np.maximum(starts[own], before), ends[own])
    return starts


def add_histograms(
    found: dict[tuple[int, ...], Histogram], rows: pl.DataFrame, kind: str, keys: Sequence[str]
) -> None:
    """Add the histograms of sample rows to those of their groups; groups without samples get none."""
    for key, buckets, counts in grouped(rows, kind, keys):
        found.setdefault(key, Histogram(np.zeros(BUCKETS, np.int64))).counts[buckets] += counts
