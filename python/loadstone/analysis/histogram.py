"""Latency histograms over the engine's buckets.

Knows which latencies a bucket holds and how many samples a percentile needs. Means are not
made here: the samples carry exact sums.
The bucket formula is the engine's (`crates/worker/src/histogram.rs`): 64 buckets per power
of two, so a value is known to within 0.79 % of itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

SUB_BITS: Final = 6
MAX_BITS: Final = 44
BUCKETS: Final = (MAX_BITS - SUB_BITS + 1) << SUB_BITS
MIN_BEYOND: Final = 10
"""Samples that must lie beyond a percentile.

A percentile is read off a count of samples above it; that count is binomial, and with fewer
than about ten expected the next run can differ by half of it (the usual n p >= 10 condition of
the normal approximation, e.g. Hahn, Meeker, Escobar: Statistical Intervals, 2nd ed., ch. 6).
"""


def values_of(buckets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Middle of each bucket in nanoseconds: the value reported for everything in it."""
    low = lows_of(buckets)
    return low + (lows_of(buckets + 1) - low) // 2


def lows_of(buckets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Smallest value in nanoseconds of each bucket."""
    shift = np.maximum((buckets >> SUB_BITS) - 1, 0)
    low: NDArray[np.int64] = (buckets - (shift << SUB_BITS)) << shift
    return low


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of all `BUCKETS` buckets."""

    counts: NDArray[np.int64]

    @classmethod
    def empty(cls) -> Histogram:
        """No samples."""
        return cls(np.zeros(BUCKETS, np.int64))

    @classmethod
    def of(cls, buckets: NDArray[np.int64], counts: NDArray[np.int64]) -> Histogram:
        """From bucket numbers, which may repeat, and their counts."""
        whole = np.zeros(BUCKETS, np.int64)
        np.add.at(whole, buckets, counts)
        return cls(whole)

    def __reduce__(self) -> tuple[Callable[..., Histogram], tuple[bytes, bytes]]:
        """Travel without the buckets that are empty: nearly all of them are."""
        used = np.flatnonzero(self.counts)
        return _arrived, (used.tobytes(), self.counts[used].tobytes())

    def __add__(self, other: Histogram) -> Histogram:
        if other is NO_SAMPLES:
            return self
        return other if self is NO_SAMPLES else Histogram(self.counts + other.counts)

    @property
    def count(self) -> int:
        """Number of samples."""
        return int(self.counts.sum())

    def percentile(self, percent: float) -> int | None:
        """Return the latency in ns that `percent` of the samples do not exceed.

        `None` when fewer than `MIN_BEYOND` samples lie beyond it, at the side with fewer.
        """
        return self.percentiles((percent,))[percent]

    def percentiles(self, percents: Iterable[float]) -> dict[float, int | None]:
        """Return several percentiles: the counts are added up once."""
        cumulated = np.cumsum(self.counts)
        return {percent: _of_share(cumulated, percent / 100) for percent in percents}

    def of_rank(self, rank: int) -> int:
        """Return the latency in ns of the sample with a rank; the shortest has rank 1."""
        return _of_rank(np.cumsum(self.counts), rank)

    def bins(self) -> list[tuple[int, int]]:
        """Value in ns and count of every bucket that is not empty, ascending."""
        used = np.flatnonzero(self.counts)
        return list(zip(values_of(used).tolist(), self.counts[used].tolist(), strict=True))

    def tail(self) -> list[tuple[float, int]]:
        """Share of samples beyond, and the latency in ns that share exceeds: the curve to the tail.

        One point per bucket that is not empty, ascending in latency. The last share is 0.
        """
        beyond, values = self.tail_columns()
        return list(zip(beyond.tolist(), values.tolist(), strict=True))

    def tail_columns(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return `tail` as two columns: the shares, and the latencies."""
        used = np.flatnonzero(self.counts)
        if not len(used):
            return np.empty(0), used
        beyond = 1 - np.cumsum(self.counts[used]) / self.count
        return np.maximum(beyond, 0.0), values_of(used)


VALUES: Final = values_of(np.arange(BUCKETS + 1, dtype=np.int64))
"""Of every bucket, and of the one behind the last: a study asks for thousands."""
VALUES.flags.writeable = False


def _of_share(cumulated: NDArray[np.int64], share: float) -> int | None:
    count = int(cumulated[-1])
    if count * min(share, 1 - share) < MIN_BEYOND - 1e-6:
        return None
    # Rounded, because 0.999 * 1000 is a little above 999 in binary.
    return _of_rank(cumulated, math.ceil(round(share * count, 6)))


def _of_rank(cumulated: NDArray[np.int64], rank: int) -> int:
    return int(VALUES[np.searchsorted(cumulated, max(1, rank))])


def _arrived(used: bytes, counts: bytes) -> Histogram:
    whole = np.zeros(BUCKETS, np.int64)
    whole[np.frombuffer(used, np.int64)] = np.frombuffer(counts, np.int64)
    return Histogram(whole)


NO_SAMPLES: Final = Histogram.empty()
"""Shared, and so never to be written to."""
NO_SAMPLES.counts.flags.writeable = False
