from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from loadstone.analysis.heatmap import heatmap
from loadstone.analysis.measurement import Measurement
from loadstone.analysis.series import series
from loadstone.analysis.totals import totals
from loadstone.bundle.read import Bundle
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


def measure(run: runs.MadeRun) -> Measurement:
    return Measurement(Bundle.open(run.path))


def test_totals_are_those_of_the_ios_that_were_made(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", MadeJob(ops_hz={"read": 2000, "write": 500}), seconds=10)
    (job,) = totals(measure(run), "job")
    assert list(job.ops) == ["read", "write"]
    for op, stats in job.ops.items():
        exact = np.concatenate(run.latencies[0, op])
        lat = stats.latencies["lat"]
        assert stats.operations == lat.count == len(exact)
        assert stats.bytes == len(exact) * 4096
        assert stats.iops is not None
        assert stats.iops.value == pytest.approx(len(exact) / 10)
        # The made-up arrivals are Poisson, so this is what the error must come out as.
        assert stats.iops.error == pytest.approx(np.sqrt(len(exact)) / 10, rel=0.5)
        assert lat.mean_ns == pytest.approx(exact.mean())
        assert lat.mean_error_ns == pytest.approx(exact.std() / np.sqrt(len(exact)), rel=0.6)
        assert lat.stddev_ns == pytest.approx(exact.std(ddof=1), rel=1e-6)
        assert (lat.min_ns, lat.max_ns) == (exact.min(), exact.max())
        assert lat.percentile(50) == pytest.approx(np.percentile(exact, 50), rel=0.01)
        assert lat.percentile(99) == pytest.approx(np.percentile(exact, 99), rel=0.02)
        assert lat.percentile(99.99) is None
        assert "wait" not in stats.latencies
    assert job.data is not None
    assert job.data.operations == sum(stats.operations for stats in job.ops.values())
    assert job.data.latencies["lat"].count == job.data.operations


def test_the_ramp_does_not_count(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", MadeJob(ramp_s=2.0), seconds=5)
    (job,) = totals(measure(run), "job")
    assert job.measured_ns == 3_000_000_000
    exact = np.concatenate(run.latencies[0, "read"])
    assert job.data is not None
    assert job.data.operations == len(exact)
    assert job.data.iops is not None
    assert job.data.iops.value == pytest.approx(len(exact) / 3)
    assert job.data.iops.count == 6


def test_stages_one_after_the_other_add_their_times(tmp_path: Path) -> None:
    jobs = (MadeJob("a", group=0), MadeJob("b", {"write": 3000}, stage=1, group=1))
    m = measure(runs.make(tmp_path / "b", *jobs, seconds=4))
    (whole,) = totals(m, "all")
    assert whole.measured_ns == 8_000_000_000
    assert whole.data is not None
    assert whole.data.iops is not None
    assert whole.data.iops.value == pytest.approx(whole.data.operations / 8)
    assert [t.measured_ns for t in totals(m, "job")] == [4_000_000_000] * 2
    assert [t.line.name for t in totals(m, "group")] == ["group 0", "group 1"]
    assert m.stages_of(whole.line) == [0, 1]


@pytest.mark.in_turn
def test_groupings_split_the_same_ios_in_different_ways(tmp_path: Path) -> None:
    jobs = (MadeJob("a", clones=3, keep_clones_apart=True, targets=(0, 1)), MadeJob("b", targets=(1,)))
    m = measure(runs.make(tmp_path / "b", *jobs, targets=2, seconds=2))
    (whole,) = totals(m, "all")
    assert whole.data is not None
    assert [t.line.name for t in totals(m, "unit")] == ["a.0", "a.1", "a.2", "b"]
    assert [t.line.name for t in totals(m, "job")] == ["a", "b"]
    assert [t.line.name for t in totals(m, "target")] == ["/mnt/test/data0", "/mnt/test/data1"]
    for by in ("unit", "job", "target", "group", "stage"):
        counts = [t.data.operations for t in totals(m, by) if t.data is not None]
        assert sum(counts) == whole.data.operations, by


def test_paced_jobs_have_waited_and_others_have_not(tmp_path: Path) -> None:
    jobs = (MadeJob("paced", paced=True), MadeJob("free"))
    m = measure(runs.make(tmp_path / "b", *jobs, seconds=2))
    paced, free = totals(m, "job")
    (whole,) = totals(m, "all")
    assert paced.data is not None
    assert free.data is not None
    assert whole.data is not None
    assert "wait" not in free.data.latencies
    # The mean wait of the whole is over those that could wait, not over all I/Os.
    assert whole.data.latencies["wait"].mean_ns == paced.data.latencies["wait"].mean_ns


def test_syncs_are_apart_from_the_data(tmp_path: Path) -> None:
    m = measure(runs.make(tmp_path / "b", MadeJob(ops_hz={"write": 800, "sync": 100}), seconds=2))
    (job,) = totals(m, "job")
    assert job.data is not None
    assert job.data.operations == job.ops["write"].operations
    assert job.ops["sync"].bytes == 0
    assert job.ops["sync"].operations > 100


def test_a_killed_run_counts_up_to_its_last_sample(tmp_path: Path) -> None:
    m = measure(runs.make(tmp_path / "b", MadeJob(ramp_s=1.0), seconds=3, seal=None))
    (job,) = totals(m, "job")
    assert job.measured_ns == 2_000_000_000
    assert job.data is not None
    assert job.data.iops is not None
    assert job.data.iops.value == pytest.approx(1000, rel=0.2)


def test_no_data_is_not_zero(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", seconds=1)
    (run.path / "samples.parquet").unlink()
    runs.reseal(run.path)
    (job,) = totals(measure(run), "job")
    assert job.data is None
    assert job.ops == {}
    assert series(measure(run), "job").height == 0


def test_failed_ios_alone_are_still_told(tmp_path: Path) -> None:
    (job,) = totals(
        measure(runs.make(tmp_path / "b", MadeJob(ops_hz={"read": 0}, errors=1), seconds=1)), "job"
    )
    assert job.ops["read"].errors == 2
    assert job.ops["read"].operations == 0
    assert job.ops["read"].latencies == {}


def test_series_windows_hold_what_happened_in_them(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", MadeJob(ops_hz={"read": 4000}), seconds=4)
    m = measure(run)
    table = series(m, "job", window_ns=2_000_000_000)
    assert table["start_ns"].to_list() == [0, 2_000_000_000]
    exact = run.latencies[0, "read"]
    for index, row in enumerate(table.iter_rows(named=True)):
        values = np.concatenate(exact[4 * index : 4 * index + 4])
        assert row["ops"] == len(values)
        assert row["iops"] == pytest.approx(len(values) / 2)
        assert row["mean_ns"] == pytest.approx(values.mean())
        assert row["p99_ns"] == pytest.approx(np.percentile(values, 99), rel=0.02)
        assert row["max_ns"] == values.max()
        assert row["p99.99_ns"] is None
    assert series(m, "job").height == 8


def test_a_window_without_completions_is_zero_and_has_no_latency(tmp_path: Path) -> None:
    m = measure(runs.make(tmp_path / "b", MadeJob(ops_hz={"read": 0}), seconds=1))
    table = series(m, "job")
    assert table["iops"].to_list() == [0.0, 0.0]
    assert table["p50_ns"].to_list() == [None, None]
    assert table["max_ns"].to_list() == [None, None]


@pytest.mark.in_turn
def test_series_mark_the_ramp_and_keep_stages_apart(tmp_path: Path) -> None:
    jobs = (MadeJob("a", ramp_s=0.5), MadeJob("b", stage=1))
    table = series(measure(runs.make(tmp_path / "b", *jobs, seconds=1.5)), "job", window_ns=1_000_000_000)
    assert table.select("name", "stage", "ramp").rows() == [
        ("a", 0, False),
        ("a", 0, False),
        ("b", 1, False),
        ("b", 1, False),
    ]
    fine = series(measure(runs.make(tmp_path / "c", *jobs, seconds=1.5)), "job")
    assert fine["ramp"].to_list() == [True, False, False, False, False, False]


@pytest.mark.in_turn
def test_no_second_counts_twice_where_a_late_worker_reaches_back(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", MadeJob(ops_hz={"read": 2000}, clones=2), seconds=5)
    samples = run.path / "samples.parquet"
    rows = pl.read_parquet(samples)
    reach = 2 * run.plan.interval_ns
    late = pl.when(pl.col("start_ns") >= reach).then(pl.col("start_ns") - reach).otherwise(0)
    rows.with_columns(late.cast(pl.UInt64).alias("start_ns")).write_parquet(samples)
    runs.reseal(run.path)
    (job,) = totals(measure(run), "job")
    assert job.data is not None
    assert job.data.iops is not None
    assert job.data.iops.value == pytest.approx(job.data.operations / 5)
    windows = series(measure(run), "job")
    assert windows["seconds"].sum() == pytest.approx(5.0)
    assert windows["iops"].mean() == pytest.approx(job.data.operations / 5)
    drawn = heatmap(measure(run), "job", job.line.key, window_ns=run.plan.interval_ns)
    bounds = drawn.select("start_ns", "end_ns").unique().sort("start_ns")
    assert bounds["end_ns"].to_list()[:-1] == bounds["start_ns"].to_list()[1:]


def test_coarser_windows_are_the_finer_ones_together(tmp_path: Path) -> None:
    bundle = Bundle.open(runs.make(tmp_path / "b", MadeJob("a", {"read": 400, "write": 90}), seconds=5).path)
    fresh, used = Measurement(bundle), Measurement(bundle)
    used.windows("all", "lat", 2)
    expected, found = fresh.windows("all", "lat", 4), used.windows("all", "lat", 4)
    assert list(found) == list(expected)
    for name, (buckets, counts) in expected.items():
        assert np.array_equal(found[name][0], buckets)
        assert np.array_equal(found[name][1], counts)
    # What is no multiple of the last is read anew.
    assert list(used.windows("all", "lat", 3)) == list(fresh.windows("all", "lat", 3))
