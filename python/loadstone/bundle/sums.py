"""What a run's histograms come to, written beside the samples when a run is sealed.

Every interval keeps its histograms, and that is too much to add up each time somebody wants a page:
an hour of 128 jobs has half a million of each latency. Here `lat` is added up over windows of whole
intervals, of which charts and the errors of percentiles are made, and the other latencies over the
whole run. Knows how rows of the samples become these; computes no percentile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from loadstone.bundle import arrows, layout
from loadstone.bundle.sealed_tables import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Counts = dict[tuple[int, ...], NDArray[np.int64]]
    """A count of every bucket, by the columns `KEYS`."""

WINDOWS: Final = 120
"""A run has at most so many: what a chart can show, and enough to tell the error of a percentile."""
OVER_TIME: Final = "lat"
"""The latency that is kept by window."""
KEYS: Final = ("interval", "cell", "op", "stage", "ramp")
LISTS: Final = tuple(f"{latency}_{name}" for latency in layout.LATENCIES for name in ("bucket", "count"))
SCHEMA: Final = pl.Schema(
    {
        **{name: layout.SAMPLES[name] for name in KEYS},
        "intervals": pl.UInt32(),
        **{name: pl.List(pl.UInt16() if name.endswith("bucket") else pl.UInt64()) for name in LISTS},
    }
)
"""A row is what `intervals` intervals from `interval` on add to a sum; several rows may add to the same."""


def last_of(intervals: pl.Series) -> int:
    """Return the last of some intervals; 0 of none."""
    largest = intervals.max()
    return largest if isinstance(largest, int) else 0


def window_of(last_interval: int) -> int:
    """Return how many intervals a window has, of a run whose last interval has this number."""
    return -(-(last_interval + 1) // WINDOWS)


def to_parquet(
    pieces: Callable[[Sequence[str]], Iterator[pl.DataFrame]], last_interval: int, out: Path
) -> None:
    """Write the sums of the samples, which `pieces` yields, in memory that does not grow with the run."""
    arrows.sink(lambda: _rows(pieces((*KEYS, *LISTS)), last_interval), out, SCHEMA, arrows.GROUP_ROWS)


def grouped(
    rows: pl.DataFrame, latency: str, keys: Sequence[str]
) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64], NDArray[np.int64]]]:
    """Yield key, buckets and counts of each group of rows that has samples of this latency.

    Meant for a piece of a table: it takes `BUCKETS` numbers per group while it works.
    """
    # A Polars whose indices have 64 bits counts without a sign.
    lengths = rows.select(pl.col(f"{latency}_bucket").list.len().fill_null(0)).to_series()
    sizes = lengths.to_numpy().astype(np.int64)
    used = sizes > 0
    if not used.any():
        return
    # Without an expression of Polars: a study has thousands of small pieces.
    names, groups = _groups([rows[key].to_numpy()[used] for key in keys])
    parts = rows.select(
        pl.col(f"{latency}_{name}").explode(empty_as_null=False, keep_nulls=False)
        for name in ("bucket", "count")
    )
    buckets, counts = (one.to_numpy() for one in parts.iter_columns())
    # One number for group and bucket, so that all of them are counted in one go. Sums are
    # exact: floats hold integers up to 2^53.
    places = np.repeat(groups * BUCKETS, sizes[used]) + buckets
    sums = np.bincount(places, counts, len(names) * BUCKETS).reshape(-1, BUCKETS)
    for key, line in zip(names, sums, strict=True):
        filled = np.flatnonzero(line)
        yield key, filled, line[filled].astype(np.int64)


def _groups(columns: Sequence[NDArray[Any]]) -> tuple[list[tuple[int, ...]], NDArray[np.int64]]:
    """Return the combinations of values in some columns, ascending, and which of them each row has."""
    order = np.lexsort(columns[::-1])
    in_order = [column[order] for column in columns]
    begins = np.ones(len(order), bool)
    begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in in_order])
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(begins) - 1
    return list(zip(*(column[begins].tolist() for column in in_order), strict=True)), groups


def _rows(samples: Iterator[pl.DataFrame], last_interval: int) -> Iterator[pl.DataFrame]:
    """Yield sums over windows as soon as these are over, and those over the whole run at the end."""
    every = window_of(last_interval)
    windows: Counts = {}
    whole: dict[str, Counts] = {name: {} for name in layout.LATENCIES if name != OVER_TIME}
    for piece in samples:
        placed = piece.with_columns(pl.col("interval") // every * every)
        now = last_of(placed["interval"])
        _add(windows, placed, OVER_TIME)
        # What a late worker adds to one of these afterwards is a row of its own.
        over = {key: windows.pop(key) for key in list(windows) if key[0] < now}
        yield from _tables(over, OVER_TIME, every)
        for latency, counts in whole.items():
            _add(counts, piece.with_columns(pl.lit(0, pl.UInt32).alias("interval")), latency)
    yield from _tables(windows, OVER_TIME, every)
    for latency, counts in whole.items():
        yield from _tables(counts, latency, last_interval + 1)


def _add(sums: Counts, rows: pl.DataFrame, latency: str) -> None:
    for key, buckets, counts in grouped(rows, latency, KEYS):
        sums.setdefault(key, np.zeros(BUCKETS, np.int64))[buckets] += counts


def _tables(sums: Counts, latency: str, intervals: int) -> Iterator[pl.DataFrame]:
    if not sums:
        return
    used = [np.flatnonzero(counts) for counts in sums.values()]
    columns: dict[str, list[Any]] = {
        **{name: [key[at] for key in sums] for at, name in enumerate(KEYS)},
        "intervals": [intervals] * len(sums),
        **{name: [[]] * len(sums) for name in LISTS},
        f"{latency}_bucket": used,
        f"{latency}_count": [counts[at] for counts, at in zip(sums.values(), used, strict=True)],
    }
    yield pl.DataFrame({name: pl.Series(columns[name]).cast(kind) for name, kind in SCHEMA.items()})
