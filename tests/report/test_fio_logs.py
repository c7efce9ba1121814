"""fio's log files from samples and I/Os chosen by hand."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone.report.fio import iolog, logs, zlib_log

from . import fio_small_run

if TYPE_CHECKING:
    from pathlib import Path


def written(job: str, where: Path) -> dict[str, list[str]]:
    paths = logs.write(fio_small_run.source(job), fio_small_run.ios(), where)
    assert all(path.parent == where for path in paths)
    return {path.name: path.read_text().splitlines() for path in paths}


def test_every_clone_has_its_logs_by_fios_names(tmp_path: Path) -> None:
    names = set(written(fio_small_run.JOB, tmp_path))
    mixed = {f"mix_{kind}.{n}.log" for kind in ("bw", "lat", "slat", "clat") for n in (1, 2)}
    assert names == mixed | {"after_iops.3.log"}


@pytest.mark.parametrize(
    ("option", "left"),
    [
        ("disable_lat=1", {"slat", "clat"}),
        ("disable_slat=1", {"lat", "clat"}),
        ("disable_clat=1", {"lat", "slat"}),
        ("gtod_reduce=1", set()),
    ],
)
def test_what_is_not_shown_has_no_log_as_in_fio(tmp_path: Path, option: str, left: set[str]) -> None:
    """992300-037: there were three logs of latencies that fio had not measured."""
    job = fio_small_run.JOB.replace("write_iops_log=after", f"write_lat_log=after\n{option}")
    names = {name for name in written(job, tmp_path) if name.startswith("after")}
    assert names == {f"after_{kind}.3.log" for kind in left}


def test_windows_are_averaged_by_direction(tmp_path: Path) -> None:
    found = written(fio_small_run.JOB, tmp_path)
    assert found["mix_bw.1.log"] == [
        "1000, 400, 0, 0, 0",
        "1000, 200, 1, 0, 0",
        "2000, 400, 0, 0, 0",
        "2000, 200, 1, 0, 0",
    ]
    assert found["mix_clat.2.log"] == [
        "1000, 505000, 0, 0, 0",
        "1000, 2000000, 1, 0, 0",
        "2000, 505000, 0, 0, 0",
        "2000, 2000000, 1, 0, 0",
    ]
    assert found["mix_slat.1.log"][:2] == ["1000, 1000, 0, 0, 0", "1000, 3000, 1, 0, 0"]


def test_without_averaging_every_io_has_a_line(tmp_path: Path) -> None:
    found = written(fio_small_run.JOB, tmp_path)
    assert found["after_iops.3.log"] == [
        "100, 1, 1, 4096, 0, 0",
        "200, 1, 1, 4096, 4096, 0",
        "300, 1, 1, 4096, 8192, 0",
        "400, 1, 1, 4096, 12288, 0",
    ]


def test_without_a_prefix_a_log_is_named_after_its_job(tmp_path: Path) -> None:
    job = fio_small_run.JOB.replace("write_iops_log=after", "write_iops_log\nwrite_bw_log\nper_job_logs=0")
    assert {"after_iops.log", "after_bw.log"} <= set(written(job, tmp_path))


def test_latencies_and_bandwidth_of_single_ios(tmp_path: Path) -> None:
    job = fio_small_run.JOB.replace("write_iops_log=after", "write_lat_log=after\nwrite_bw_log=after")
    found = written(job, tmp_path)
    assert found["after_lat.3.log"][0] == "100, 52000, 1, 4096, 0, 0"
    assert found["after_clat.3.log"][0] == "100, 50000, 1, 4096, 0, 0"
    assert found["after_slat.3.log"][0] == "100, 2000, 1, 4096, 0, 0"
    assert found["after_bw.3.log"][0] == "100, 81920, 1, 4096, 0, 0"  # 4096 B in 50 us


def test_the_moment_a_single_io_was_issued(tmp_path: Path) -> None:
    asked = "write_lat_log=after\nwrite_bw_log=after\nlog_issue_time=1"
    found = written(fio_small_run.JOB.replace("write_iops_log=after", asked), tmp_path)
    assert found["after_clat.3.log"][1] == "200, 50000, 1, 4096, 4096, 0, 199950000"
    assert found["after_slat.3.log"][1] == "200, 2000, 1, 4096, 4096, 0, 199950000"
    assert found["after_lat.3.log"][1] == "200, 52000, 1, 4096, 4096, 0, 0"
    assert found["after_bw.3.log"][1] == "200, 81920, 1, 4096, 4096, 0, 0"


def test_one_file_for_all_clones(tmp_path: Path) -> None:
    found = written(fio_small_run.JOB.replace("log_avg_msec", "per_job_logs=0\nlog_avg_msec"), tmp_path)
    assert len(found["mix_bw.log"]) == 8


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("log_window_value=max", "1000, 1000000, 0, 0, 0"),
        ("log_max_value=1", "1000, 1000000, 0, 0, 0"),
        ("log_window_value=both", "1000, 505000, 1000000, 0, 0, 0"),
        ("log_offset=1", "1000, 505000, 0, 0, 0, 0"),
        ("log_prio=1", "1000, 505000, 0, 0, 0x0000"),
        ("log_offset=1\nlog_issue_time=1", "1000, 505000, 0, 0, 0, 0, 0"),
    ],
)
def test_columns_as_asked_for(option: str, line: str, tmp_path: Path) -> None:
    found = written(fio_small_run.JOB.replace("write_lat_log=mix", f"write_lat_log=mix\n{option}"), tmp_path)
    assert found["mix_clat.1.log"][0] == line


def test_times_since_the_unix_epoch(tmp_path: Path) -> None:
    job = fio_small_run.JOB.replace("write_lat_log=mix", "write_lat_log=mix\nlog_unix_epoch=1")
    time_ms = int(written(job, tmp_path)["mix_lat.1.log"][0].split(",")[0])
    assert time_ms == fio_small_run.START_UNIX_NS // 1_000_000 + 1000


@pytest.mark.parametrize(("coarseness", "columns"), [(0, 1856), (3, 232), (6, 29)])
def test_histograms_have_fios_columns_and_every_io(coarseness: int, columns: int, tmp_path: Path) -> None:
    job = fio_small_run.JOB.replace(
        "write_lat_log=mix", f"write_hist_log=mix\nlog_hist_msec=1000\nlog_hist_coarseness={coarseness}"
    )
    lines = written(job, tmp_path)["mix_clat_hist.1.log"]
    fields = [[int(field) for field in line.split(",")] for line in lines]
    assert [row[:3] for row in fields] == [[1000, 0, 4096], [1000, 1, 4096], [2000, 0, 4096], [2000, 1, 4096]]
    assert all(len(row) == columns + 3 for row in fields)
    assert [sum(row[3:]) for row in fields] == [100, 50, 100, 50]
    assert fields[1][3 + fio_small_run.bucket_of(2_000_000) // 2**coarseness] == 50


@pytest.mark.parametrize("name", ["x" * 4000, "../out", "a\0b"], ids=["long", "above", "NUL"])
def test_a_log_that_is_named_after_its_job_stays_in_the_directory(tmp_path: Path, name: str) -> None:
    """A longer name was an error, and `../` another directory."""
    job = fio_small_run.JOB.replace("write_iops_log=after", "write_iops_log")
    source = fio_small_run.source(job)
    after = next(member for member in source.everyone if member.job.name == "after")
    renamed = replace(after, job=after.job.model_copy(update={"name": name}))
    [log] = logs.requested(source.plan, [renamed], tmp_path)
    assert log.path.parent == tmp_path
    assert len(log.path.name) <= 255
    log.path.touch()


def test_compressed_logs_come_back(tmp_path: Path) -> None:
    plain = written(fio_small_run.JOB, tmp_path / "plain")["after_iops.3.log"]
    job = fio_small_run.JOB.replace(
        "log_offset=1", "log_offset=1\nlog_store_compressed=1\nlog_compression=64k"
    )
    logs.write(fio_small_run.source(job), fio_small_run.ios(), tmp_path)
    text = b"".join(zlib_log.inflate(tmp_path / "after_iops.3.log.fz"))
    assert text.decode().splitlines() == plain


def test_a_damaged_compressed_log_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "x.log.fz"
    path.write_bytes(zlib.compress(b"1, 2, 3, 4, 5\n")[:-6])
    with pytest.raises(zlib.error):
        list(zlib_log.inflate(path))


def test_a_window_without_completions_has_rate_zero(tmp_path: Path) -> None:
    source = fio_small_run.source(fio_small_run.JOB)
    empty = fio_small_run.row(1, 0, 0, 0, [], [])
    others = source.samples.filter(~((source.samples["interval"] == 1) & (source.samples["cell"] == 0)))
    source.samples = others.vstack(fio_small_run.frame([empty]))
    logs.write(source, None, tmp_path)
    assert (tmp_path / "mix_bw.1.log").read_text().splitlines()[-1] == "2000, 0, 0, 0, 0"
    assert len((tmp_path / "mix_clat.1.log").read_text().splitlines()) == 2


def test_the_bandwidth_log_of_all_jobs(tmp_path: Path) -> None:
    paths = logs.write_aggregate(fio_small_run.source(), tmp_path)
    assert [path.name for path in paths] == ["agg-read_bw.log", "agg-write_bw.log", "agg-trim_bw.log"]
    assert paths[0].read_text().splitlines()[0].split(", ")[1:] == ["800", "0", "0", "0"]
    assert paths[2].read_text() == ""


def test_a_trace_is_sorted_by_submission_and_says_which_files(tmp_path: Path) -> None:
    source = fio_small_run.source(
        fio_small_run.JOB.replace("write_iops_log=after", "write_iolog=after.iolog")
    )
    rows = fio_small_run.ios().collect()
    # The second I/O took so long that it was submitted first.
    clat = pl.Series("clat_ns", [50_000, 150_000_000, 50_000, 50_000], dtype=pl.UInt64)
    failed = pl.Series("error", [0, 0, 0, 5], dtype=pl.Int32)
    assert iolog.write(source, rows.with_columns(clat, failed).lazy(), tmp_path) == [tmp_path / "after.iolog"]
    path = source.plan.targets[1].path
    assert (tmp_path / "after.iolog").read_text().splitlines() == [
        "fio version 3 iolog",
        f"0 {path} add",
        f"0 {path} open",
        f"0 {path} write 4096 4096",
        f"49950 {path} write 0 4096",
        f"249950 {path} write 8192 4096",
        f"249950 {path} close",
    ]
