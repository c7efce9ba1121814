"""From samples and events to fio's figures, worked out by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from loadstone.analysis.histogram import Histogram
from loadstone.analysis.latency import Latency
from loadstone.report.fio import collect, document, normal, terse
from loadstone.report.fio.stats import SYNC, percentiles

from . import fio_small_run

GROUPED = fio_small_run.JOB.replace("iodepth=4", "iodepth=4\ngroup_reporting")


def test_each_clone_is_a_line_with_its_own_figures() -> None:
    report = collect.report(fio_small_run.source())
    assert [(line.name, line.group, line.number, line.members) for line in report.lines] == [
        ("mix", 0, 1, 1),
        ("mix", 0, 2, 1),
        ("after", 1, 3, 1),
    ]
    read, write, trim = report.lines[0].directions
    assert (read.ios, read.bytes, read.runtime_ms, read.iops) == (200, 819_200, 2000, 100.0)
    assert (write.ios, write.iops, write.bytes_per_s) == (100, 50.0, 204_800)
    assert (trim.ios, trim.runtime_ms) == (0, 0)


def test_latencies_are_exact_but_for_the_buckets() -> None:
    read = collect.report(fio_small_run.source()).lines[0].directions[0]
    assert (read.clat.count, read.clat.min_ns, read.clat.max_ns) == (200, 10_000, 1_000_000)
    assert read.clat.mean_ns == pytest.approx(505_000)
    assert read.clat.stddev_ns == pytest.approx(289_385.07, abs=0.01)  # of 10, 20 ... 1000 us, twice
    parts = [read.slat.mean_ns or 0.0, read.clat.mean_ns or 0.0]
    assert sum(parts) == pytest.approx(read.lat.mean_ns)
    median = dict(percentiles(read.clat, [50.0, 99.0]))
    assert median[50.0] == pytest.approx(500_000, rel=1 / 128)
    assert median[99.0] == pytest.approx(990_000, rel=1 / 128)


def test_what_waited_for_its_turn_is_in_lat_alone() -> None:
    """The mean of slat was 2,052,533 ns of I/Os whose longest took 114,440 ns, and its deviation 0."""
    run = fio_small_run.source()
    waited = (pl.col("ops") * 2_000_000).cast(run.samples.schema["wait_sum_ns"]).alias("wait_sum_ns")
    late = dataclasses.replace(run, samples=run.samples.with_columns(waited))
    for source in (run, late):
        slat = collect.report(source).lines[0].directions[0].slat
        assert (slat.min_ns, slat.max_ns, slat.mean_ns) == (1000, 1000, 1000)
        assert slat.stddev_ns == pytest.approx(0, abs=5)


def test_bandwidth_and_iops_are_sampled_over_the_intervals() -> None:
    read = collect.report(fio_small_run.source()).lines[0].directions[0]
    assert (read.iops_windows.samples, read.iops_windows.min, read.iops_windows.mean) == (2, 100, 100.0)
    assert (read.bandwidth.samples, read.bandwidth.max, read.bandwidth.stddev) == (2, 400, 0.0)


def test_a_group_is_one_line_under_its_first_name() -> None:
    report = collect.report(fio_small_run.source(GROUPED))
    assert [(line.name, line.members) for line in report.lines] == [("mix", 2), ("after", 1)]
    line = report.lines[0]
    assert line.directions[0].ios == 400
    assert line.directions[0].iops == 200.0
    assert line.directions[0].clat.mean_ns == pytest.approx(505_000)
    assert line.depth == [2, 2, 596, 0, 0, 0, 0]
    assert line.runtime_ms == 4000


@pytest.mark.parametrize("job", [fio_small_run.JOB, GROUPED])
def test_a_job_without_stats_is_in_no_line_and_no_sum(job: str) -> None:
    """fio leaves `stats=0` out; here its I/Os were in the sums of its group."""
    whole = collect.report(fio_small_run.source(job))
    report = collect.report(fio_small_run.source(job.replace("[mix]", "[mix]\nstats=0")))
    assert [(line.name, line.directions[1].ios) for line in report.lines] == [("after", 4)]
    assert report.lines[0].user_ns == pytest.approx(whole.lines[-1].user_ns)
    assert (report.group_lines(0), report.groups()) == ([None, None, None], [0, 1])
    assert [line["jobname"] for line in document.document(report, plus=False)["jobs"]] == ["after"]
    assert len(terse.lines(report, 3)) == 1
    text = normal.text(report)
    assert "mix: (groupid" not in text
    assert "\nRun status group 0 (all jobs):\n\nRun status group 1" in text
    source = fio_small_run.source(job.replace("[after]", "[after]\nstats=0"))
    line = collect.report(source).lines[-1]
    assert (line.name, line.members) == ("mix", 2 if job is GROUPED else 1)


def test_the_processs_cpu_is_shared_by_ios_and_lost_nowhere() -> None:
    lines = collect.report(fio_small_run.source()).lines
    assert sum(line.user_ns for line in lines) == pytest.approx(604_000_000)
    assert lines[0].user_percent == pytest.approx(15.0)  # 300 of 604 I/Os, 300 ms of CPU in 2 s
    assert lines[0].context_switches == 300


@pytest.mark.parametrize(("every", "counted"), [(0, 0), (8, 5)])
def test_flushes_count_where_a_job_asks_for_some_before_its_end(every: int, counted: int) -> None:
    """882200-037: `end_fsync` alone has none in fio's `sync`."""
    source = fio_small_run.source()
    flushes = fio_small_run.row(2, 2, SYNC, 1, [0] * 5, [3_000_000] * 5)
    source.samples = pl.concat([source.samples, fio_small_run.frame([flushes])])
    flush = source.plan.streams[2].flush.model_copy(update={"at_end": True, "fsync_every": every})
    streams = [*source.plan.streams[:2], source.plan.streams[2].model_copy(update={"flush": flush})]
    source.plan = source.plan.model_copy(update={"streams": tuple(streams)})
    line = collect.report(source).lines[2]
    assert (line.sync_ios, line.sync.count) == (counted, counted)
    assert line.directions[1].ios == 4


def test_the_ramp_does_not_count() -> None:
    source = fio_small_run.source()
    rows = source.samples
    source.samples = rows.with_columns((rows["interval"] == 0).alias("ramp"))
    for event in source.events:
        if event["type"] == "stream_end" and event["stream"] < 2:
            event["ramp_end_ns"] = fio_small_run.SECOND  # type: ignore[index]  # events are plain JSON
    read = collect.report(source).lines[0].directions[0]
    assert (read.ios, read.runtime_ms, read.iops) == (100, 1000, 100.0)


def test_an_error_makes_the_line_fail_with_its_number() -> None:
    source = fio_small_run.source()
    error = {"type": "io_error", "stream": 2, "target": 1, "op": 1, "offset": 0, "bytes": 4096, "errno": 28}
    ended = [{**e, "reason": "error"} if e.get("stream") == 2 else e for e in source.events]
    source.events = [*ended[:2], error, *ended[2:]]
    lines = collect.report(source).lines
    assert [line.error for line in lines] == [0, 0, 28]
    assert "error=No space left on device" in normal.text(collect.report(source))


def test_damage_that_was_only_counted_makes_the_line_fail_too() -> None:
    source = fio_small_run.source()
    end = {"type": "verify_end", "checked": 10, "unverified": 0}
    source.events = [*source.events, {**end, "stream": 1, "damaged": 0}, {**end, "stream": 2, "damaged": 3}]
    lines = collect.report(source).lines
    assert [line.error for line in lines] == [0, 0, 84]
    assert "func=verify" in lines[2].error_text


def test_sync_engines_have_no_submission_latency() -> None:
    report = collect.report(fio_small_run.source(fio_small_run.JOB.replace("libaio", "psync")))
    assert all(direction.slat.count == 0 for line in report.lines for direction in line.directions)


def test_a_run_cut_short_still_has_figures() -> None:
    source = fio_small_run.source()
    source.events = [e for e in source.events if e["type"] in {"hello", "start"}]
    read = collect.report(source).lines[0].directions[0]
    assert read.ios == 200
    assert read.runtime_ms == 3000


def test_headers_name_each_section_once() -> None:
    report = collect.report(fio_small_run.source())
    assert report.headers == [
        "mix: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B,"
        " ioengine=libaio, iodepth=4",
        "...",
        "after: (g=1): rw=write, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B,"
        " ioengine=libaio, iodepth=4",
    ]


def test_the_options_are_as_the_user_wrote_them() -> None:
    doc = document.document(collect.report(fio_small_run.source()), plus=True)
    assert doc["global options"] == {"bs": "4k", "iodepth": "4", "ioengine": "libaio"}
    assert doc["jobs"][0]["job options"]["rw"] == "randrw"
    assert doc["jobs"][2]["desc"] == "the second"
    assert doc["loadstone notes"] == ["libaio runs on io_uring"]
    bins = doc["jobs"][0]["read"]["clat_ns"]["bins"]
    assert sum(bins.values()) == 200


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_terse_lines_have_fios_number_of_fields(version: int) -> None:
    expected = {2: 161, 3: 121, 4: 162, 5: 180}[version]
    lines = terse.lines(collect.report(fio_small_run.source()), version)
    assert len(lines[0].split(";")) == expected


def test_a_percentile_is_not_one_sample_early() -> None:
    # fio: the double nearest to 99.95 is a little more, so of 4,000 it asks for the 3,999th
    latency = Latency(4000, histogram=Histogram.of(np.array([4, 8]), np.array([3998, 2])))
    assert percentiles(latency, [99.9, 99.95, 100.0]) == [(99.9, 4), (99.95, 8), (100.0, 8)]
