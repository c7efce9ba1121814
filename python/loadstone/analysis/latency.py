"""One kind of latency of a set of I/Os: exact count, moments and extremes, and the histogram.

What fio, vdbench and Iometer print are views of this. Knows no run, line or format.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.analysis.estimate import Caution, Estimate
from loadstone.analysis.histogram import NO_SAMPLES, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Latency:
    """One kind of latency of `count` I/Os, in nanoseconds. All but the histogram is exact.

    `mean_error_ns`: one standard error of the mean, where it was estimated from `intervals` of time.
    """

    count: int = 0
    sum_ns: float = 0.0
    sumsq_ns2: float = 0.0
    min_ns: int = 0
    """0 without any I/O, and so is the maximum."""
    max_ns: int = 0
    histogram: Histogram = field(default=NO_SAMPLES, repr=False)
    mean_error_ns: float | None = None
    intervals: int = 0
    caution: Caution | None = None
    """For tests of the mean."""

    def __add__(self, other: Latency) -> Latency:
        """Return both together; no error of a mean is known of them."""
        if not other.count:
            return self
        if not self.count:
            return other
        return Latency(
            self.count + other.count,
            self.sum_ns + other.sum_ns,
            self.sumsq_ns2 + other.sumsq_ns2,
            min(self.min_ns, other.min_ns),
            max(self.max_ns, other.max_ns),
            self.histogram + other.histogram,
        )

    @property
    def mean_ns(self) -> float:
        """Mean from the exact sum, not from buckets; 0 without any I/O."""
        return self.sum_ns / self.count if self.count else 0.0

    @property
    def mean(self) -> Estimate:
        """The mean with its error."""
        return Estimate(self.mean_ns, self.mean_error_ns, self.intervals, "ns", self.caution)

    @property
    def stddev_ns(self) -> float:
        """Sample standard deviation (n - 1); 0 with fewer than two I/Os."""
        if self.count < 2:
            return 0.0
        squares = self.sumsq_ns2 - self.sum_ns * self.sum_ns / self.count
        return math.sqrt(max(0.0, squares) / (self.count - 1))

    def percentile(self, percent: float) -> int | None:
        """Return the percentile, `None` with too few samples; never beyond the exact extremes."""
        return self.percentiles((percent,))[percent]

    def percentiles(self, percents: Iterable[float]) -> dict[float, int | None]:
        """Return several percentiles, as `percentile` does each."""
        return {
            percent: None if value is None else min(max(value, self.min_ns), self.max_ns)
            for percent, value in self.histogram.percentiles(percents).items()
        }


def summed(
    row: Mapping[str, Any], kind: str, histogram: Histogram = NO_SAMPLES, mean: Estimate | None = None
) -> Latency:
    """Return a latency of rows that `aggregate` added up; `mean` has the error of its mean."""
    return Latency(
        int(row[f"{kind}_samples"] or 0),
        float(row[f"{kind}_sum_ns"] or 0.0),
        float(row[f"{kind}_sumsq_ns2"] or 0.0),
        int(row[f"{kind}_min_ns"] or 0),
        int(row[f"{kind}_max_ns"] or 0),
        histogram,
        None if mean is None else mean.error,
        0 if mean is None else mean.count,
        None if mean is None else mean.caution,
    )
