"""What a run's lines did over time.

Knows windows of whole sample intervals and what can be said about one. A window in which a
line ran and nothing completed is a zero; a window in which it did not run has no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.aggregate import added_up
from loadstone.analysis.histogram import Histogram
from loadstone.analysis.totals import PERCENTILES
from loadstone.bundle.layout import OPS
from loadstone.bundle.table_rows import columns_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.analysis.measurement import By, Measurement

MIN_COVER: Final = 0.1
"""A rate over less than this share of a window says nothing and is null."""


def percentile_column(percent: float) -> str:
    """Name the column of a percentile: `p99.9_ns`."""
    return f"p{percent:g}_ns"


def series(
    measurement: Measurement,
    by: By,
    *,
    window_ns: int | None = None,
    latency: str = "lat",
    percentiles: tuple[float, ...] = PERCENTILES,
) -> pl.DataFrame:
    """Return one row per (line, op, window), sorted so.

    Columns: `key`, `name` (the line), `op` (its name), `stage`, `start_ns`, `end_ns` (since the
    run's origin), `ramp` (all of it is ramp), `seconds` (how long the line ran in it), `ops`,
    `bytes`, `errors`, `iops`, `bytes_per_s`, `mean_ns`, `max_ns` and one column per percentile,
    null with too few samples for it. `window_ns` is rounded to whole intervals, at least one.
    """
    every = max(1, round((window_ns or 0) / measurement.plan.interval_ns))
    rows = measurement.rows(by)
    rows = rows.hstack([(rows["interval"] // every).alias("window")])
    windows = _sums(rows, latency)
    if windows.height == 0:
        return _empty(percentiles)
    shaped = _rates(measurement, by, windows, latency)
    if not percentiles:
        return columns_of(shaped, _empty(percentiles).columns)
    histograms = measurement.windows(by, latency, every)
    names_of = windows.select("key", "op", "stage", "window").iter_rows()
    percentile_rows = [_percentiles(histograms.get(name), percentiles) for name in names_of]
    columns = [
        pl.Series(percentile_column(percent), [one[index] for one in percentile_rows], pl.Int64)
        for index, percent in enumerate(percentiles)
    ]
    return shaped.with_columns(columns).select(_empty(percentiles).columns)


def _sums(rows: pl.DataFrame, latency: str) -> pl.DataFrame:
    return added_up(rows, ("key", "op", "stage"), (latency,), more={"ramp": "all"}, over="window")


def _rates(measurement: Measurement, by: By, windows: pl.DataFrame, latency: str) -> pl.DataFrame:
    """Add names, the time covered and what follows from it to the sums of windows, which are in order."""
    lines = measurement.lines(by)
    keys = windows["key"].to_numpy()
    starts, ends = (windows[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns"))
    covered_ns = np.empty(len(keys))
    edges = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    for first, last in zip([0, *edges], [*edges, len(keys)], strict=True):
        own = slice(first, last)
        covered_ns[own] = measurement.covered_ns(lines[keys[first]], starts[own], ends[own], ramp=True)
    per_second = pl.when(pl.col("enough")).then(1 / pl.col("seconds"))
    samples, longest = pl.col(f"{latency}_samples"), pl.col(f"{latency}_max_ns").cast(pl.Int64)
    named = windows.lazy().with_columns(
        pl.Series("seconds", covered_ns / 1e9),
        pl.Series("enough", covered_ns >= MIN_COVER * (ends - starts)),
        pl.Series("name", [line.name for line in lines], pl.String)[keys],
        pl.Series("op", OPS, pl.String)[windows["op"].to_numpy()],
    )
    return named.with_columns(
        (pl.col("ops") * per_second).alias("iops"),
        (pl.col("bytes") * per_second).alias("bytes_per_s"),
        pl.when(samples > 0).then(pl.col(f"{latency}_sum_ns") / samples).alias("mean_ns"),
        pl.when(samples > 0).then(longest).alias("max_ns"),
    ).collect(engine="in-memory")


def _percentiles(
    bins: tuple[NDArray[np.int64], NDArray[np.int64]] | None, percentiles: tuple[float, ...]
) -> list[int | None]:
    if bins is None:
        return [None] * len(percentiles)
    histogram = Histogram.of(*bins)
    return list(histogram.percentiles(percentiles).values())


def _empty(percentiles: tuple[float, ...]) -> pl.DataFrame:
    return pl.DataFrame(
        schema={
            "key": pl.UInt32,
            "name": pl.String,
            "op": pl.String,
            "stage": pl.UInt32,
            "start_ns": pl.UInt64,
            "end_ns": pl.UInt64,
            "ramp": pl.Boolean,
            "seconds": pl.Float64,
            "ops": pl.UInt64,
            "bytes": pl.UInt64,
            "errors": pl.UInt64,
            "iops": pl.Float64,
            "bytes_per_s": pl.Float64,
            "mean_ns": pl.Float64,
            "max_ns": pl.Int64,
            **{percentile_column(percent): pl.Int64 for percent in percentiles},
        }
    )
