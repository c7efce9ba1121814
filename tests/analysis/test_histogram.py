from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.aggregate import add_histograms
from loadstone.analysis.histogram import BUCKETS, Histogram, lows_of, values_of
from tests.support.runs import bucket_of

ALL = np.arange(BUCKETS, dtype=np.int64)


def of(values: list[int]) -> Histogram:
    return Histogram.of(bucket_of(np.array(values, np.int64)), np.ones(len(values), np.int64))


def test_the_buckets_are_the_engines() -> None:
    # Values computed with the Rust functions of crates/worker/src/histogram.rs.
    assert values_of(np.array([0, 127, 128, 191, 192, 2495], np.int64)).tolist() == [
        0,
        127,
        129,
        255,
        258,
        (1 << 44) - (1 << 37) + (1 << 36),
    ]
    assert (bucket_of(values_of(ALL)) == ALL).all()
    assert (bucket_of(lows_of(ALL)) == ALL).all()
    assert (bucket_of(lows_of(ALL)[1:] - 1) == ALL[:-1]).all()


@given(st.integers(100, (1 << 44) - 1))
@pytest.mark.in_turn
def test_a_value_is_known_to_within_one_percent(value_ns: int) -> None:
    found = int(values_of(bucket_of(np.array([value_ns], np.int64)))[0])
    assert abs(found - value_ns) <= 0.0079 * value_ns


@given(st.lists(st.integers(0, 1 << 40), min_size=20, max_size=300))
@pytest.mark.in_turn
def test_the_median_is_the_sample_of_that_rank(values: list[int]) -> None:
    exact = sorted(values)[(len(values) + 1) // 2 - 1]
    found = of(values).percentile(50)
    assert found == values_of(bucket_of(np.array([exact], np.int64)))[0]


def test_a_percentile_needs_ten_samples_beyond_it() -> None:
    assert of([1000] * 19).percentile(50) is None
    assert of([1000] * 20).percentile(50) == 1004
    assert of([1000] * 999).percentile(99) is None
    assert of([1000] * 1000).percentile(99) is not None
    assert of([1000] * 9999).percentile(99.9) is None
    assert of([1000] * 10000).percentile(99.9) is not None
    assert of([1000] * 199).percentile(5) is None
    assert Histogram.empty().percentile(50) is None


def test_the_rank_of_a_percentile_is_not_one_too_high() -> None:
    # 0.999 * 10000 is 9990.000000000002 in binary: the 9990th sample is meant.
    assert of([100] * 9990 + [100_000] * 10).percentile(99.9) == 100
    assert of([100] * 9989 + [100_000] * 11).percentile(99.9) == pytest.approx(100_000, rel=0.008)


def test_merging_is_counting_together() -> None:
    left, right = of([5, 700]), of([700, 9_000_000])
    assert (left + right).bins() == of([5, 700, 700, 9_000_000]).bins()
    assert (left + right).count == 4


def test_rows_merge_into_the_histogram_of_their_group() -> None:
    rows = pl.DataFrame(
        {"op": [0, 0, 1], "lat_bucket": [[1, 200], [], [200]], "lat_count": [[3, 4], [], [5]]},
        schema={"op": pl.UInt8, "lat_bucket": pl.List(pl.UInt16), "lat_count": pl.List(pl.UInt32)},
    )
    found: dict[tuple[int, ...], Histogram] = {}
    add_histograms(found, rows, "lat", ("op",))
    add_histograms(found, rows.head(1), "lat", ("op",))
    high = int(values_of(np.array([200], np.int64))[0])
    assert {key: one.bins() for key, one in found.items()} == {(0,): [(1, 6), (high, 8)], (1,): [(high, 5)]}


def test_the_tail_ends_at_nothing_beyond() -> None:
    assert Histogram.empty().tail() == []
    shares, values = zip(*of([10] * 90 + [20] * 10).tail(), strict=True)
    assert shares == pytest.approx((0.1, 0.0))
    assert values == (10, 20)
