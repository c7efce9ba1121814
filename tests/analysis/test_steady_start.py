from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone.analysis.summary import summarise
from loadstone.analysis.tail import beyond
from loadstone.bundle.read import Bundle
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path

INTERVAL_NS = 100_000_000


def falling(path: Path, *, asked: bool = True, seconds: float = 12, fast: int = 40) -> Bundle:
    """A run of 1000 I/Os per second that did five times as many in its first `fast` intervals."""
    made = runs.make(path, runs.MadeJob(), seconds=seconds, interval_ns=INTERVAL_NS)
    samples = path / "samples.parquet"
    more = pl.when(pl.col("interval") < fast).then(pl.col("ops") * 5).otherwise(pl.col("ops"))
    pl.read_parquet(samples).with_columns(more.cast(pl.UInt64).alias("ops")).write_parquet(samples)
    request = json.loads((path / "request.json").read_text())
    request["options"]["ramp_until_steady"] = asked
    (path / "request.json").write_text(json.dumps(request))
    runs.reseal(path)
    return Bundle.open(made.path)


@pytest.mark.in_turn
def test_the_start_is_left_out_until_the_load_has_settled(tmp_path: Path) -> None:
    summary = summarise(falling(tmp_path / "b"))
    data = summary.total.data
    assert data is not None
    assert data.iops is not None
    assert data.iops.value == pytest.approx(1000, rel=0.02)
    assert summary.total.measured_ns == pytest.approx(8e9, rel=0.1)
    assert any("are left out: the load had not settled" in note.text for note in summary.notes)
    # Every way to the numbers sees the same window.
    lat = data.latencies["lat"]
    assert lat.count == pytest.approx(8000, rel=0.1)
    share = beyond(summary.measurement, [0])[0]
    assert share is not None
    assert share.count == pytest.approx(80, abs=8)


@pytest.mark.in_turn
def test_nothing_is_left_out_where_nobody_asked(tmp_path: Path) -> None:
    summary = summarise(falling(tmp_path / "b", asked=False))
    assert summary.total.measured_ns == pytest.approx(12e9, rel=0.01)
    assert summary.measurement.settled.text is None


@pytest.mark.in_turn
def test_a_run_that_is_steady_short_or_never_settles_is_told_so(tmp_path: Path) -> None:
    steady = summarise(falling(tmp_path / "steady", fast=0))
    assert steady.total.measured_ns == pytest.approx(12e9, rel=0.01)
    assert "steady from the start" in str(steady.measurement.settled.text)
    short = summarise(falling(tmp_path / "short", seconds=2, fast=5))
    assert "too short to tell" in str(short.measurement.settled.text)
    late = summarise(falling(tmp_path / "late", fast=110))
    assert "never settled" in str(late.measurement.settled.text)
