"""Rows of fio's histogram log.

Knows that the log has 1,856 columns, folded by `log_hist_coarseness`, and ends at 17.1 s;
what took longer is in the last column. Knows nothing of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from loadstone.report.fio.stats import LAST_FIO_BUCKET

if TYPE_CHECKING:
    from collections.abc import Iterator


def histogram_rows(rows: pl.DataFrame, coarseness: int) -> Iterator[tuple[int, int, str]]:
    """Yield `(window, op, columns)` for each window and operation with completions.

    `rows` are samples with a `window` column; each column sums 2^coarseness buckets of the
    completion latency.
    """
    bins = (
        rows.select("window", "op", "clat_bucket", "clat_count")
        .filter(pl.col("clat_bucket").list.len() > 0)
        .explode("clat_bucket", "clat_count")
        .with_columns(
            (pl.col("clat_bucket").clip(upper_bound=LAST_FIO_BUCKET) // 2**coarseness).alias("column")
        )
        .group_by("window", "op", "column")
        .agg(pl.col("clat_count").cast(pl.Int64).sum())
        .sort("window", "op", "column")
    )
    columns = (LAST_FIO_BUCKET + 1) // 2**coarseness
    for (window, op), part in bins.group_by("window", "op", maintain_order=True):
        counts = [0] * columns
        for column, count in part.select("column", "clat_count").iter_rows():
            counts[column] = count
        yield int(str(window)), int(str(op)), ", ".join(map(str, counts))
