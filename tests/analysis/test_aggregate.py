"""Sums of samples: whatever groups them, no I/O and no second is lost or counted twice."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.analysis.aggregate import added_up
from loadstone.bundle.layout import SAMPLES
from loadstone.probe.figures import of_stage

MS = 1_000_000


def samples(*rows: dict[str, int]) -> pl.DataFrame:
    """Two workers' rows; what is not said is 0."""
    numbers = [name for name, kind in SAMPLES.items() if not isinstance(kind, pl.List)]
    told = [dict.fromkeys(numbers, 0) | {"ramp": False} | row for row in rows]
    return pl.DataFrame(told, schema={name: SAMPLES[name] for name in numbers})


def row(interval: int, start_ms: int, end_ms: int, ops: int = 100) -> dict[str, int]:
    bounds = {"start_ns": start_ms * MS, "end_ns": end_ms * MS}
    sums = {"lat_sum_ns": ops * 5, "lat_sumsq_ns2": ops * 25, "lat_min_ns": 5, "lat_max_ns": 5}
    return {"interval": interval, "ops": ops, "bytes": ops * 4096, **bounds, **sums}


LATE = samples(row(0, 0, 100), row(1, 100, 200), row(2, 200, 300), row(2, 0, 300))
"""A worker that was kept from two cuts tells of three intervals at once."""


def test_a_late_row_counts_no_second_twice() -> None:
    added = added_up(LATE, (), over="interval")
    assert added["length_ns"].to_list() == [100 * MS] * 3
    assert added["ops"].to_list() == [100, 100, 200]


def test_a_probe_with_a_late_row_has_the_rate_that_was_reached() -> None:
    found = of_stage(LATE, 0)
    assert found is not None
    assert found.seconds == pytest.approx(0.3)
    assert found.rate == pytest.approx(400 / 0.3)


def test_sums_of_sums_are_sums() -> None:
    parts = added_up(LATE.with_columns(op=pl.Series([0, 0, 0, 1], dtype=pl.UInt8)), ("op",), ("lat",), "ops")
    whole = added_up(parts.with_columns(all=0), ("all",), ("lat",))
    assert whole["ops"].item() == whole["lat_samples"].item() == 400
    assert whole["lat_sum_ns"].item() == LATE["lat_sum_ns"].sum()


KEYS = st.sampled_from([0, 1, 2, 7, 2**31, 2**40])
"""Far apart, too: three such keys are no one number."""


@given(
    st.lists(
        st.tuples(KEYS, KEYS, KEYS, st.integers(0, 50), st.integers(0, 50), st.integers(0, 3)), max_size=40
    )
)
def test_groups_are_those_of_a_plain_query(drawn: list[tuple[int, int, int, int, int, int]]) -> None:
    rows = [
        row(0, start, start + length, ops) | {"a": a, "b": b, "c": c} for a, b, c, start, length, ops in drawn
    ]
    whole = dict.fromkeys("abc", pl.Int64)
    numbers = samples(*({k: v for k, v in one.items() if k not in whole} for one in rows))
    table = numbers.with_columns(
        pl.Series(name, [one[name] for one in rows], kind) for name, kind in whole.items()
    )
    measured = pl.col("ops") > 0
    expected = (
        table.group_by("a", "b", "c")
        .agg(
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pl.col("ops").sum(),
            pl.col("ops").sum().alias("lat_samples"),
            pl.col("lat_sum_ns").sum(),
            pl.col("lat_min_ns").filter(measured).min(),
            pl.col("lat_max_ns").max(),
            pl.col("ramp").all(),
        )
        .sort("a", "b", "c")
    )
    added = added_up(table, ("a", "b", "c"), ("lat",), "ops", more={"ramp": "all"})
    assert added.select(expected.columns).rows() == expected.rows()


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)), min_size=1
    )
)
def test_no_second_of_a_key_counts_twice(drawn: list[tuple[int, int, int, int]]) -> None:
    table = samples(*(row(interval, start, start + length) for _, interval, start, length in drawn))
    table = table.with_columns(pl.Series("key", [key for key, *_ in drawn], pl.UInt32))
    added = added_up(table, ("key",), over="interval")
    for (key,), intervals in added.group_by("key"):
        own = table.filter(pl.col("key") == key)
        counted = sorted(intervals.filter(pl.col("length_ns") > 0).select("start_ns", "end_ns").rows())
        assert all(one[1] <= other[0] for one, other in pairwise(counted))
        assert counted[-1][1] <= int(own["end_ns"].max()) if counted else True  # type: ignore[arg-type] # a number
        assert intervals["ops"].sum() == own["ops"].sum()
