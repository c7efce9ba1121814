"""How the latencies of one line were spread, window by window.

Knows time columns and latency rows. Knows no colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.histogram import BUCKETS, SUB_BITS, lows_of

if TYPE_CHECKING:
    from loadstone.analysis.measurement import By, Measurement

BUCKETS_PER_ROW: Final = 1 << (SUB_BITS - 2)
"""Four rows per power of two: each is 19 % higher than the one below, at most 25 %."""


def heatmap(measurement: Measurement, by: By, key: int, *, window_ns: int) -> pl.DataFrame:
    """Return one row per window and latency row that holds an I/O of the line; syncs are left out.

    Columns: `start_ns`, `end_ns`, `low_ns`, `high_ns` (bounds of the latency row), `count`, and
    `share` of the window's I/Os.
    """
    every = max(1, round(window_ns / measurement.plan.interval_ns))
    cells = (
        measurement.rows(by)
        .filter((pl.col("key") == key) & (pl.col("op") < 3))
        .with_columns((pl.col("interval") // every).alias("window"))
        .with_columns(
            pl.col("start_ns").min().over("window"),
            pl.col("end_ns").max().over("window"),
        )
        .filter(pl.col("lat_bucket").list.len() > 0)
        .select("start_ns", "end_ns", "lat_bucket", "lat_count")
        .explode("lat_bucket", "lat_count")
        .with_columns((pl.col("lat_bucket") // BUCKETS_PER_ROW).cast(pl.Int64).alias("row"))
        .group_by("start_ns", "end_ns", "row")
        .agg(pl.col("lat_count").cast(pl.Int64).sum().alias("count"))
        .sort("start_ns", "row")
    )
    rows = cells["row"].to_numpy()
    edges = np.minimum(np.stack([rows, rows + 1]) * BUCKETS_PER_ROW, BUCKETS)
    return cells.with_columns(
        pl.Series("low_ns", lows_of(edges[0])),
        pl.Series("high_ns", lows_of(edges[1])),
        (pl.col("count") / pl.col("count").sum().over("start_ns")).alias("share"),
    ).drop("row")
