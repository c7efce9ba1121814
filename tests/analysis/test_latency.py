"""One type for the latency of a set of I/Os: what is known of it, and of several together."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.histogram import Histogram
from loadstone.analysis.latency import NO_IO, Latency, counted, weighed

LATENCIES = st.lists(st.integers(1, 10**12), max_size=40)


def of(values_ns: list[int]) -> Latency:
    """Return the latency of I/Os that were all counted; below 128 ns a bucket is one value."""
    if not values_ns:
        return NO_IO
    small = np.array([value % 128 for value in values_ns], np.int64)
    return counted(
        len(values_ns),
        float(sum(values_ns)),
        float(sum(value * value for value in values_ns)),
        min(values_ns),
        max(values_ns),
        histogram=Histogram.of(small, np.ones(len(small), np.int64)),
    )


@given(LATENCIES, LATENCIES)
def test_two_sets_are_together_what_all_of_their_ios_are(one: list[int], other: list[int]) -> None:
    added, whole = of(one) + of(other), of(one + other)
    assert (added.count, added.min_ns, added.max_ns) == (whole.count, whole.min_ns, whole.max_ns)
    assert (added.mean_ns or 0.0) == pytest.approx(whole.mean_ns or 0.0, rel=1e-12)
    assert (added.stddev_ns or 0.0) == pytest.approx(whole.stddev_ns or 0.0, rel=1e-6, abs=1e6)
    assert added.histogram.counts.tolist() == whole.histogram.counts.tolist()


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=40))
def test_mean_and_deviation_are_those_of_the_values(values_ns: list[int]) -> None:
    latency = of(values_ns)
    assert latency.mean_ns == pytest.approx(statistics.fmean(values_ns))
    assert latency.stddev_ns == pytest.approx(statistics.stdev(values_ns), rel=1e-6, abs=1e-2)


def test_no_io_has_no_mean_and_adds_nothing() -> None:
    assert (NO_IO.count, NO_IO.mean_ns, NO_IO.min_ns, NO_IO.max_ns, NO_IO.mean) == (0, *[None] * 4)
    printed = Latency(mean_ns=5.0, printed={99.0: 7.0})
    assert NO_IO + printed is printed
    assert printed + NO_IO is printed


def test_the_mean_keeps_its_error_until_it_is_added() -> None:
    error = Estimate(10.0, 2.0, 7, "ns")
    latency = counted(2, 20.0, 208.0, 8, 12, mean=error)
    assert latency.mean == error
    assert (latency + latency).mean == Estimate(10.0, None, 0, "ns")


@given(st.integers(1, 1000), st.integers(1, 1000), st.floats(1, 1e9), st.floats(1, 1e9))
def test_printed_means_are_added_by_their_counts(one: int, other: int, mean: float, another: float) -> None:
    together = Latency(one, mean, min_ns=1.0, max_ns=3.0) + Latency(other, another, min_ns=2.0, max_ns=9.0)
    assert together.mean_ns == pytest.approx((one * mean + other * another) / (one + other))
    assert (together.count, together.min_ns, together.max_ns) == (one + other, 1.0, 9.0)
    assert (together.stddev_ns, together.printed) == (None, {})


def test_what_one_part_does_not_tell_is_not_known_of_all() -> None:
    known, bare = Latency(10, 5.0, 1.0, 2.0, 9.0), Latency(mean_ns=7.0, max_ns=8.0)
    assert known + bare == Latency(max_ns=9.0)
    assert weighed([(3.0, known), (1.0, bare)]) == Latency(mean_ns=5.5, max_ns=9.0)


def test_a_percentile_is_read_from_the_histogram_or_as_it_was_printed() -> None:
    latency = counted(100, 100 * 40.0, 100 * 1600.0, 41, 60, histogram=Histogram.of(
        np.array([40, 60]), np.array([60, 40])
    ))  # fmt: skip
    assert latency.percentiles((50.0, 90.0, 99.0)) == {50.0: 41, 90.0: 60, 99.0: None}
    assert latency.percentile(90.0) == 60
    printed = Latency(100, 50.0, printed={99.0: 71.5})
    assert (printed.percentile(99.0), printed.percentile(50.0)) == (71.5, None)
