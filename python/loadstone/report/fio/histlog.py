"""Rows of fio's histogram log.

Knows that the log has 1,856 columns, folded by `log_hist_coarseness`, and ends at 17.1 s;
what took longer is in the last column. Knows nothing of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from loadstone.analysis.aggregate import add_histograms
from loadstone.report.fio.stats import LAST_FIO_BUCKET

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from loadstone.analysis.histogram import Histogram


def histogram_rows(rows: pl.DataFrame, coarseness: int) -> Iterator[tuple[int, int, str]]:
    """Yield `(window, op, columns)` for each window and operation with completions.

    `rows` are samples with a `window` column; each column sums 2^coarseness buckets of the
    completion latency.
    """
    histograms: dict[tuple[int, ...], Histogram] = {}
    add_histograms(histograms, rows, "clat", ("window", "op"))
    for (window, op), histogram in sorted(histograms.items(), key=lambda one: one[0]):
        within, beyond = np.split(histogram.counts, [LAST_FIO_BUCKET])
        columns = np.append(within, beyond.sum()).reshape(-1, 2**coarseness).sum(axis=1)
        yield window, op, ", ".join(map(str, columns.tolist()))
