"""Sums of samples: whatever groups them, no I/O and no second is lost or counted twice."""

from __future__ import annotations

import polars as pl
import pytest

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
