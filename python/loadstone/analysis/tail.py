"""How large a part of the I/Os lies beyond a latency, and what that says about percentiles.

Knows the error of such a part: I/Os of one second are alike, so it comes from the intervals and
not from the number of I/Os. Turned round, it is the error of a percentile. Knows no objective.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.estimate import Estimate, ratio
from loadstone.analysis.histogram import Histogram, values_of
from loadstone.analysis.requested_ops import is_requested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.measurement import Measurement

Z_95: Final = 1.959964


def beyond(measurement: Measurement, limits_ns: Sequence[int]) -> list[Estimate | None]:
    """Return for each limit the share of the measured I/Os whose `lat` exceeds it; syncs left out.

    None without I/Os. The error is the ratio estimator's, over intervals (`analysis.estimate`).
    A search for a limit asks the same of every run again: each limit is looked up once.
    """
    known = measurement.shares_beyond
    new = [limit for limit in dict.fromkeys(limits_ns) if limit not in known]
    if new:
        known.update(zip(new, _beyond(measurement, new), strict=True))
    return [known[limit] for limit in limits_ns]


def _beyond(measurement: Measurement, limits_ns: Sequence[int]) -> list[Estimate | None]:
    columns = ["interval", "stage", "cell", "op", "ramp", "lat_bucket", "lat_count"]
    counted = is_requested(measurement.plan)
    parts = []
    for piece in measurement.pieces(columns):
        rows = piece.filter(~pl.col("ramp") & counted & (pl.col("lat_bucket").list.len() > 0))
        lengths = rows["lat_bucket"].list.len().cast(pl.Int64).to_numpy()
        counts = rows["lat_count"].explode().to_numpy().astype(np.float64)
        values = values_of(rows["lat_bucket"].explode().to_numpy().astype(np.int64))
        row_of = np.repeat(np.arange(rows.height), lengths)
        sums = [
            np.bincount(row_of, counts * (values > limit), rows.height) if rows.height else np.empty(0)
            for limit in (-1, *limits_ns)
        ]
        named = {f"beyond_{index}": part for index, part in enumerate(sums)}
        parts.append(rows.select("interval", "stage").with_columns(**named))
    if not parts:
        return [None] * len(limits_ns)
    table = pl.concat(parts).group_by("stage", "interval").sum().sort("stage", "interval")
    strata = table["stage"].to_numpy().astype(np.int64)
    every = table["beyond_0"].to_numpy()
    return [
        ratio(table[f"beyond_{index}"].to_numpy(), every, strata, "1")
        for index in range(1, len(limits_ns) + 1)
    ]


def percentile_intervals(
    measurement: Measurement, histogram: Histogram, percents: Sequence[float]
) -> dict[float, tuple[int, int] | None]:
    """Return the 95 % interval of each percentile, None where the percentile or its error is not known.

    Where the share beyond the percentile has the error e, the percentile lies between those of
    the shares 1.96 e lower and higher (Heidelberger and Lewis, Quantile Estimation in Dependent
    Sequences, Operations Research 32, 1984).
    """
    percentiles = histogram.percentiles(percents)
    known = [(percent, value) for percent, value in percentiles.items() if value is not None]
    shares = beyond(measurement, [value for _, value in known])
    intervals: dict[float, tuple[int, int] | None] = dict.fromkeys(percents)
    for (percent, value), share in zip(known, shares, strict=True):
        if share is not None and share.error is not None:
            wide = 100 * Z_95 * share.error
            intervals[percent] = (
                _quantile(histogram, percent - wide, value),
                _quantile(histogram, percent + wide, value),
            )
    return intervals


def _quantile(histogram: Histogram, percent: float, instead: int) -> int:
    """Read a quantile however few samples lie beyond it: it bounds one that has enough."""
    cumulated = np.cumsum(histogram.counts)
    if not cumulated[-1]:
        return instead
    rank = min(max(percent / 100 * float(cumulated[-1]), 1.0), float(cumulated[-1]))
    return int(values_of(np.array([np.searchsorted(cumulated, rank)], np.int64))[0])
