"""One kind of latency of a set of I/Os: its count, mean, spread, extremes and percentiles.

What was measured here, what another tool printed, and what fio, vdbench and Iometer are to be shown are
all this. Knows no run, line or format.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loadstone.analysis.estimate import Caution, Estimate
from loadstone.analysis.histogram import NO_SAMPLES, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Latency:
    """One kind of latency of `count` I/Os, in nanoseconds. `None` is not known; no I/O has no mean.

    `mean_error_ns`: one standard error of the mean, where it was estimated from `intervals` of time.
    """

    count: int | None = None
    mean_ns: float | None = None
    stddev_ns: float | None = None
    """Of a sample (n - 1); 0 of one I/O."""
    min_ns: float | None = None
    max_ns: float | None = None
    histogram: Histogram = field(default=NO_SAMPLES, repr=False)
    printed: Mapping[float, float] = field(default_factory=dict)
    """Percent to ns, as another tool printed them; one that it withheld is not here."""
    mean_error_ns: float | None = None
    intervals: int = 0
    caution: Caution | None = None
    """For tests of the mean."""
    sums: tuple[float, float] | None = field(default=None, repr=False)
    """Of the latencies and of their squares, where every I/O was counted."""

    def __add__(self, other: Latency) -> Latency:
        """Return both together; no error of a mean is known of them."""
        if other.count == 0:
            return self
        if self.count == 0:
            return other
        if self.sums is None or other.sums is None or self.count is None or other.count is None:
            return weighed([(self.count, self), (other.count, other)])
        # Who counts every I/O knows the shortest and the longest.
        return counted(
            self.count + other.count,
            self.sums[0] + other.sums[0],
            self.sums[1] + other.sums[1],
            min(self.min_ns or 0, other.min_ns or 0),
            max(self.max_ns or 0, other.max_ns or 0),
            histogram=self.histogram + other.histogram,
        )

    @property
    def sum_ns(self) -> float | None:
        """All of them together."""
        return None if self.sums is None else self.sums[0]

    @property
    def cv(self) -> float:
        """The deviation over the mean; 0 where either is not known."""
        return (self.stddev_ns or 0.0) / self.mean_ns if self.mean_ns else 0.0

    @property
    def mean(self) -> Estimate | None:
        """The mean with its error; None where it is not known."""
        if self.mean_ns is None:
            return None
        return Estimate(self.mean_ns, self.mean_error_ns, self.intervals, "ns", self.caution)

    def percentile(self, percent: float) -> float | None:
        """Return the percentile, also one that was printed; `None` with too few samples."""
        return self.printed.get(percent) if self.printed else self.percentiles((percent,))[percent]

    def percentiles(self, percents: Iterable[float]) -> dict[float, int | None]:
        """Return percentiles of the histogram; `None` with too few samples, never beyond the extremes."""
        low = 0 if self.min_ns is None else self.min_ns
        high = math.inf if self.max_ns is None else self.max_ns
        return {
            percent: None if value is None else int(min(max(value, low), high))
            for percent, value in self.histogram.percentiles(percents).items()
        }


NO_IO: Final = Latency(count=0, sums=(0.0, 0.0))


def counted(
    count: int,
    sum_ns: float,
    sumsq_ns2: float,
    min_ns: float,
    max_ns: float,
    *,
    histogram: Histogram = NO_SAMPLES,
    mean: Estimate | None = None,
) -> Latency:
    """Return the latency of I/Os that were all counted: exact but for the histogram."""
    if not count:
        return NO_IO
    squares = sumsq_ns2 - sum_ns * sum_ns / count
    return Latency(
        count,
        sum_ns / count,
        math.sqrt(max(0.0, squares) / (count - 1)) if count > 1 else 0.0,
        min_ns,
        max_ns,
        histogram=histogram,
        mean_error_ns=None if mean is None else mean.error,
        intervals=0 if mean is None else mean.count,
        caution=None if mean is None else mean.caution,
        sums=(sum_ns, sumsq_ns2),
    )


def weighed(parts: Sequence[tuple[float | None, Latency]]) -> Latency:
    """Return several as one, each by its weight; neither spreads nor percentiles can be added up."""
    of_parts = [latency for _, latency in parts]
    means = [(weight, one.mean_ns) for weight, one in parts if weight is not None and one.mean_ns is not None]
    whole = sum(weight for weight, _ in means)
    counts = _all([one.count for one in of_parts])
    shortest, longest = _all([one.min_ns for one in of_parts]), _all([one.max_ns for one in of_parts])
    return Latency(
        count=sum(counts) if counts else None,
        mean_ns=sum(weight * mean for weight, mean in means) / whole
        if whole and len(means) == len(parts)
        else None,
        min_ns=min(shortest, default=None),
        max_ns=max(longest, default=None),
    )


def _all(values: Sequence[T | None]) -> list[T]:
    """Return values; none of them where one is not known."""
    known = [one for one in values if one is not None]
    return known if len(known) == len(values) else []


def summed(
    row: Mapping[str, Any], kind: str, histogram: Histogram = NO_SAMPLES, mean: Estimate | None = None
) -> Latency:
    """Return a latency of rows that `aggregate` added up; `mean` has the error of its mean."""
    return counted(
        int(row[f"{kind}_samples"] or 0),
        float(row[f"{kind}_sum_ns"] or 0.0),
        float(row[f"{kind}_sumsq_ns2"] or 0.0),
        int(row[f"{kind}_min_ns"] or 0),
        int(row[f"{kind}_max_ns"] or 0),
        histogram=histogram,
        mean=mean,
    )
