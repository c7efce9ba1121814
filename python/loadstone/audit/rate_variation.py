"""How evenly a load goes, beside what the scatter of its own latencies lets one expect.

Knows the series of a Case and numbers. Judges nothing.

In a closed loop the latencies of a stretch of time add up to that time, so their mean says how
fast it went. Where each I/O takes its own time, whatever the others took, the means of stretches
of n I/Os scatter by the deviation of one over the root of n. A timetable makes up for each I/O
that was late: its means scatter by less, and the longer the stretches the less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.audit.case import Case

STRETCHES: Final = 12
"""Few, so that they are long, and enough to tell their scatter from chance. With independent I/Os one run in
a million has a dispersion below 0.05 (chi-square with 11 degrees of freedom)."""
CUTS: Final = 4
LEAST_IOS: Final = 20
"""Of a stretch: fewer have a mean that one of them makes."""


@dataclass(frozen=True, slots=True)
class RateVariation:
    """`dispersion`: variance of the stretches' means for each of what independent I/Os would give.

    1 for independent ones (the F ratio, between the stretches over within), above it where the
    storage is faster at some times than at others, below it where something makes up for delays.
    """

    dispersion: float
    scatter: float
    """Deviation of a single latency, for each mean."""
    ios: float
    """Of one stretch, on average."""

    @property
    def independent(self) -> float:
        """Deviation of a stretch's mean, for each mean, if I/Os were independent."""
        return self.scatter / math.sqrt(self.ios)

    @property
    def deviation(self) -> float:
        """Deviation of a stretch's mean, for each mean, as it was."""
        return self.independent * math.sqrt(self.dispersion)


def evenness(case: Case) -> RateVariation | None:
    """Return how evenly the load went, None when too little is known of its latencies over time."""
    latency, series = case.total.latency, case.series
    if latency is None or not latency.mean_ns or not latency.stddev_ns or series is None:
        return None
    if "mean_ns" not in series.columns:
        return None
    if case.issued_until_ns is not None:
        series = series.filter(pl.col("start_ns") < case.issued_until_ns)
    sums = (
        series.filter((pl.col("op") != "sync") & (pl.col("ops") > 0))
        .group_by("start_ns")
        .agg(pl.col("ops").sum(), (pl.col("mean_ns") * pl.col("ops")).sum().alias("sum_ns"))
        .sort("start_ns")
    )
    each = sums.height // STRETCHES
    if not each or sums["sum_ns"].sum() == 0:
        return None
    ops, sum_ns = (sums[name].to_numpy().astype(np.float64) for name in ("ops", "sum_ns"))
    ios = float(ops.sum()) / sums.height * each
    if ios < LEAST_IOS:
        return None
    # What was late just before a cut is made up for in the next stretch; another cut keeps both in one.
    cuts = range(0, each, max(1, each // CUTS))
    return RateVariation(
        dispersion=min(_between(ops[cut:], sum_ns[cut:], each) for cut in cuts) / latency.stddev_ns**2,
        scatter=latency.cv,
        ios=ios,
    )


def _between(ops: NDArray[np.float64], sum_ns: NDArray[np.float64], each: int) -> float:
    """Return the variance between stretches of so many windows, as the variance of one I/O."""
    count = min(STRETCHES, len(ops) // each)
    whole, spent_ns = (one[: count * each].reshape(count, each).sum(axis=1) for one in (ops, sum_ns))
    mean_ns = spent_ns.sum() / whole.sum()
    return float((whole * (spent_ns / whole - mean_ns) ** 2).sum()) / (count - 1)
