"""How the latencies of one line were spread, window by window.

Knows time columns and latency rows. Knows no colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.aggregate import added_up
from loadstone.analysis.histogram import BUCKETS, SUB_BITS, lows_of
from loadstone.analysis.requested_ops import requested

if TYPE_CHECKING:
    from loadstone.analysis.measurement import By, Measurement

BUCKETS_PER_ROW: Final = 1 << (SUB_BITS - 2)
"""Four rows per power of two: each is 19 % higher than the one below, at most 25 %."""


def heatmap(measurement: Measurement, by: By, key: int, *, window_ns: int) -> pl.DataFrame:
    """Return one row per window and latency row that holds an I/O the line was asked for.

    Columns: `start_ns`, `end_ns`, `low_ns`, `high_ns` (bounds of the latency row), `count`, and
    `share` of the window's I/Os.
    """
    every = max(1, round(window_ns / measurement.plan.interval_ns))
    line_cells = measurement.lines(by)[key].cells
    wanted = frozenset[int]().union(*requested(measurement.plan, line_cells).values())
    rows = measurement.rows(by).filter(pl.col("key") == key)
    placed = rows.with_columns((pl.col("interval") // every).alias("window"))
    bounds = added_up(placed, (), over="window").select("window", "start_ns", "end_ns")
    parts = [
        pl.DataFrame({"window": np.full(len(buckets), window, np.uint32), "bucket": buckets, "count": counts})
        for (line, op, _, window), (buckets, counts) in measurement.windows(by, "lat", every).items()
        if line == key and op in wanted
    ]
    empty = pl.DataFrame(schema={"window": pl.UInt32, "bucket": pl.Int64, "count": pl.Int64})
    cells = (
        pl.concat([empty, *parts])
        .join(bounds, on="window")
        .group_by("start_ns", "end_ns", (pl.col("bucket") // BUCKETS_PER_ROW).alias("row"))
        .agg(pl.col("count").sum())
        .sort("start_ns", "row")
    )
    heights = cells["row"].to_numpy()
    edges = np.minimum(np.stack([heights, heights + 1]) * BUCKETS_PER_ROW, BUCKETS)
    return cells.with_columns(
        pl.Series("low_ns", lows_of(edges[0])),
        pl.Series("high_ns", lows_of(edges[1])),
        (pl.col("count") / pl.col("count").sum().over("start_ns")).alias("share"),
    ).drop("row")
