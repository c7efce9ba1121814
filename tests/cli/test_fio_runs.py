"""`loadstone fio` from end to end: tiny real runs, read as scripts read them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.cli.fio.file_names import as_given
from loadstone.engine.binary import find
from loadstone.errors import LoadstoneError
from tests.support import started

if TYPE_CHECKING:
    from pathlib import Path


def _has_engine() -> bool:
    try:
        find()
    except LoadstoneError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _has_engine(), reason="the engine is not built: make build")
NULL = ("--name=a", "--ioengine=null", "--size=4m")


def fio(*words: str, cwd: Path, code: int = 0, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    done = started.run(["fio", *words], cwd=cwd, input=stdin, timeout=60)
    assert done.returncode == code, done.stderr + done.stdout
    return done


def document(*words: str, cwd: Path, code: int = 0) -> dict[str, Any]:
    found = json.loads(fio("--output-format=json", *words, cwd=cwd, code=code).stdout)
    assert isinstance(found, dict)
    return found


def test_json_is_all_there_is_on_standard_output(tmp_path: Path) -> None:
    done = fio("--output-format=json", *NULL, "--rw=randread", cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "{"
    job = json.loads(done.stdout)["jobs"][0]
    assert (job["jobname"], job["error"], job["read"]["total_ios"]) == ("a", 0, 1024)
    assert job["read"]["io_bytes"] == 4 << 20
    assert job["job options"]["name"] == "a"
    assert list(tmp_path.iterdir()) == []


def test_a_job_without_stats_has_empty_logs_and_counts_in_the_exit_code(tmp_path: Path) -> None:
    logs = ("--write_bw_log=w", "--log_avg_msec=100", "--bandwidth-log")
    unseen = ("--name=b", "--ioengine=psync", "--filename=/dev/full", "--size=4m", "--rw=write", "--stats=0")
    jobs = document(*logs, *NULL, "--rw=read", *unseen, cwd=tmp_path, code=1)["jobs"]
    assert [job["jobname"] for job in jobs] == ["a"]
    assert (tmp_path / "w_bw.1.log").stat().st_size > 0
    assert (tmp_path / "w_bw.2.log").stat().st_size == 0
    assert (tmp_path / "agg-write_bw.log").stat().st_size == 0


def test_human_output_has_the_lines_scripts_look_for(tmp_path: Path) -> None:
    out = fio(*NULL, "--rw=write", cwd=tmp_path).stdout
    assert out.startswith("a: (g=0): rw=write, bs=(R) 4096B-4096B")
    for line in ("fio-3.42\n", "Starting 1 process\n", "a: (groupid=0, jobs=1): err= 0: pid="):
        assert line in out
    assert "issued rwts: total=0,1024,0,0 short=0,0,0,0 dropped=0,0,0,0" in out
    assert "Run status group 0 (all jobs):\n  WRITE: bw=" in out


def test_terse_output_is_one_line(tmp_path: Path) -> None:
    out = fio("--minimal", *NULL, "--rw=read", cwd=tmp_path).stdout
    fields = out.strip().split(";")
    assert fields[:6] == ["3", "fio-3.42", "a", "0", "0", "4096"]
    assert len(fields) == 121


def test_output_goes_to_the_file(tmp_path: Path) -> None:
    done = fio("--output=o", "--output-format=normal,json", *NULL, cwd=tmp_path)
    assert done.stdout == ""
    text = (tmp_path / "o").read_text()
    assert (
        json.loads(text[text.index("{\n") : text.rindex("\n}\n") + 3])["jobs"][0]["read"]["total_ios"] == 1024
    )
    assert "Run status group 0" in text


def test_a_real_file_is_written_and_read_back(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[global]\nsize=1m\nbs=16k\nfilename=data\n[w]\nrw=write\n[r]\nstonewall\nrw=randread\n")
    doc = document(str(job), cwd=tmp_path)
    write, read = doc["jobs"]
    assert (tmp_path / "data").stat().st_size == 1 << 20
    assert (write["groupid"], read["groupid"]) == (0, 1)
    assert write["write"]["total_ios"] == read["read"]["total_ios"] == 64
    assert doc["global options"] == {"size": "1m", "bs": "16k", "filename": "data"}
    assert read["read"]["clat_ns"]["percentile"]["99.000000"] > 0


def test_jobs_from_standard_input(tmp_path: Path) -> None:
    out = fio("--output-format=json", "-", cwd=tmp_path, stdin="[x]\nioengine=null\nsize=1m\n").stdout
    assert json.loads(out)["jobs"][0]["jobname"] == "x"


def test_the_defaults_of_the_command_line_hold_for_the_file(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\nioengine=null\nsize=1m\n")
    assert document("--bs=64k", str(job), cwd=tmp_path)["jobs"][0]["read"]["total_ios"] == 16


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110 - a name, no path
def test_an_error_is_the_exit_code_the_message_and_the_field(tmp_path: Path) -> None:
    done = fio("--name=a", "--filename=/dev/full", "--rw=write", "--size=1m", cwd=tmp_path, code=1)
    assert "io_u error on file /dev/full: No space left on device: write offset=0" in done.stderr
    assert "a: (groupid=0, jobs=1): err=28 (" in done.stdout
    doc = document("--name=a", "--filename=/dev/full", "--rw=write", "--size=1m", cwd=tmp_path, code=1)
    assert doc["jobs"][0]["error"] == 28


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110 - a name, no path
@pytest.mark.parametrize("more", [(), ("--group_reporting",)])
def test_the_exit_code_is_the_number_of_clones_that_failed(tmp_path: Path, more: tuple[str, ...]) -> None:
    """fio counts each clone with an error, whatever line it is reported on."""
    bad = ("--filename=/dev/full", "--rw=write", "--size=8k", "--numjobs=3")
    good = ("--name=b", "--filename=/dev/zero", "--rw=read", "--size=8k")
    ignores = ("--name=c", "--filename=/dev/full", "--rw=write", "--size=8k", "--continue_on_error=write")
    fio("--name=a", *more, *bad, *good, *ignores, cwd=tmp_path, code=4)


def test_a_target_that_cannot_be_opened(tmp_path: Path) -> None:
    done = fio("--name=a", "--filename=/proc/nonexistent/x", "--rw=read", "--size=1m", cwd=tmp_path, code=1)
    assert done.stderr.startswith("fio: ")
    assert "/proc/nonexistent" in done.stderr


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("words", "ios"),
    [
        ("--rw=read --size=1000000", 244),
        ("--rw=randread --norandommap --size=1000000", 245),
        ("--rw=write --size=2m --nrfiles=3", 510),
        ("--rw=randwrite --size=2m --nrfiles=5", 510),
        ("--rw=randwrite --size=2m --nrfiles=5 --norandommap", 512),
        ("--rw=randwrite:8 --size=2m --nrfiles=3", 512),
        ("--rw=write:4k --size=1000000 --nrfiles=3 --openfiles=1", 245),
        ("--rw=read --size=2m --nrfiles=3 --percentage_random=0", 510),
        ("--rw=read --size=1m --io_size=999999", 245),
        ("--rw=read --size=1m --io_size=2500001", 611),
        ("--rw=randread --bs=3k --norandommap --size=1000000", 326),
    ],
)
def test_the_last_io_is_issued_where_fio_issues_it(tmp_path: Path, words: str, ios: int) -> None:
    """As fio 3.42 counts: it goes on until the size was issued, and a file has whole blocks."""
    job = document("--name=a", *words.split(), cwd=tmp_path)["jobs"][0]
    assert job["read"]["total_ios"] + job["write"]["total_ios"] == ios


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("words", "syncs"),
    [
        ("--fsync=8 --size=512k", 15),
        ("--fdatasync=4 --size=1m --number_ios=16", 3),
        ("--fsync=3 --size=64k", 5),
    ],
)
def test_nothing_is_flushed_after_the_last_write(tmp_path: Path, words: str, syncs: int) -> None:
    job = document("--name=a", "--rw=write", *words.split(), cwd=tmp_path)["jobs"][0]
    assert job["sync"]["total_ios"] == syncs


def test_reads_at_the_end_of_a_file_are_errors_that_can_be_continued_after(tmp_path: Path) -> None:
    """Such a job has the error in its line, and fio ends with 0."""
    words = ("--name=a", "--rw=randread", "--size=64k", "--create_on_open=1", "--continue_on_error=all")
    job = document(*words, cwd=tmp_path)["jobs"][0]
    assert (job["error"], job["read"]["total_ios"], job["total_err"]) == (5, 16, 16)


@pytest.mark.in_turn
@pytest.mark.parametrize("word", ["--gtod_reduce=1", "--disable_clat=1"])
def test_what_is_not_measured_has_no_percentiles(tmp_path: Path, word: str) -> None:
    job = document("--name=a", "--rw=read", "--size=64k", word, cwd=tmp_path)["jobs"][0]
    assert "percentile" not in job["read"]["clat_ns"]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("name", "words"),
    [("data", ("--rw=write",)), ("below/data", ("--rw=write", "--directory=.")), ("data.0", ("--rw=trim",))],
)
def test_what_is_refused_names_files_as_the_job_does(
    tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    """fio says the name it was given; the switch that permits it takes the whole path."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("somebody's text " * 512)
    done = fio("--name=a", f"--filename={name}", "--size=8k", *words, cwd=tmp_path, code=1)
    assert re.search(rf"^  (\./)?{re.escape(name)}: it exists", done.stderr, re.MULTILINE), done.stderr
    assert f"LOADSTONE_ACCEPT_DATA_LOSS={tmp_path / name}" in done.stderr


def test_a_longer_name_is_not_taken_for_another() -> None:
    names = {"/a/x": "x", "/a/x.1": "./x.1", "/a": "/a"}
    said = "/a/x and /a/x.1, /a/x1, /b/a/x and /a/x: it is /a/x."
    assert as_given(said, names) == "x and ./x.1, /a/x1, /b/a/x and x: it is x."


def test_every_io_is_in_the_logs(tmp_path: Path) -> None:
    logs = ("--write_lat_log=x", "--write_bw_log=x", "--log_offset=1")
    doc = document(*NULL, "--rw=randread", "--iodepth=4", *logs, cwd=tmp_path)
    total = doc["jobs"][0]["read"]["total_ios"]
    for kind in ("lat", "slat", "clat", "bw"):
        rows = [line.split(", ") for line in (tmp_path / f"x_{kind}.1.log").read_text().splitlines()]
        assert len(rows) == total
        assert {int(row[4]) for row in rows} == set(range(0, 4 << 20, 4096))


def test_a_log_whose_directory_cannot_be_made_is_refused_before_the_load(tmp_path: Path) -> None:
    job = ("--name=a", "--rw=write", "--size=64k", "--filename=data")
    done = fio(*job, "--write_bw_log=/proc/none/below/x", cwd=tmp_path, code=1)
    assert "/proc/none" in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.in_turn
def test_submission_and_completion_are_parts_of_the_latency(tmp_path: Path) -> None:
    """The rest of it is what an I/O waits for its turn, which is in neither."""
    for engine in ("libaio", "posixaio", "null"):
        job = document("--name=t", f"--ioengine={engine}", "--size=1M", "--iodepth=16", cwd=tmp_path)["jobs"][
            0
        ]
        slat, clat, lat = (job["read"][f"{part}_ns"] for part in ("slat", "clat", "lat"))
        assert slat["mean"] + clat["mean"] <= lat["mean"] + 1
        assert clat["mean"] > 0
        for part in (slat, clat, lat):
            assert part["min"] <= part["mean"] <= part["max"]


@pytest.mark.in_turn
def test_clones_apart_or_together(tmp_path: Path) -> None:
    apart = document(*NULL, "--numjobs=3", cwd=tmp_path)["jobs"]
    assert [job["read"]["total_ios"] for job in apart] == [1024] * 3
    together = document(*NULL, "--numjobs=3", "--group_reporting", cwd=tmp_path)["jobs"]
    assert [job["read"]["total_ios"] for job in together] == [3072]


def test_a_group_has_the_name_of_its_first_job_and_the_options_of_its_last(tmp_path: Path) -> None:
    """fio goes through the jobs of a line and overwrites options, percentiles and depth with each."""
    first = ("--name=one", "--ioengine=null", "--size=1m", "--group_reporting", "--iodepth=2")
    last = ("--name=two", "--ioengine=null", "--size=1m", "--iodepth=8", "--percentile_list=50:90")
    (job,) = document(*first, *last, "--group_reporting", cwd=tmp_path)["jobs"]
    assert (job["jobname"], job["job options"]["name"], job["latency_depth"]) == ("one", "two", 8)
    assert list(job["read"]["clat_ns"]["percentile"]) == ["50.000000", "90.000000"]
    assert job["read"]["total_ios"] == 512


def test_unified_reporting_has_only_mixed(tmp_path: Path) -> None:
    job = document(*NULL, "--rw=rw", "--unified_rw_reporting=1", cwd=tmp_path)["jobs"][0]
    assert job["mixed"]["total_ios"] == 1024
    assert "read" not in job


def test_results_in_between(tmp_path: Path) -> None:
    timed = ("--time_based", "--runtime=2", "--rate_iops=100")
    out = fio("--output-format=json", "--status-interval=500ms", *NULL, *timed, cwd=tmp_path).stdout
    documents = [json.loads("{" + part) for part in out.split("\n{\n")[1:]]
    totals = [doc["jobs"][0]["read"]["total_ios"] for doc in documents]
    assert len(totals) >= 2
    assert totals == sorted(totals)
    assert totals[-1] >= 190
    left_s = [doc["jobs"][0]["eta"] for doc in documents]
    assert left_s[0] in (1, 2)
    assert left_s[-1] == 0


def test_the_status_line(tmp_path: Path) -> None:
    timed = ("--time_based", "--runtime=2", "--rate_iops=1000")
    out = fio("--eta=always", "--eta-newline=1", *NULL, *timed, cwd=tmp_path).stdout
    line = next(line for line in out.replace("\r", "\n").splitlines() if line.startswith("Jobs: 1"))
    assert line.startswith("Jobs: 1 (f=1), 0-1000 IOPS: [R(1)][")
    assert "IOPS][eta 00m:0" in line


@pytest.mark.in_turn
def test_the_seeds_repeat_unless_told_not_to(tmp_path: Path) -> None:
    def seeds(*words: str) -> list[str]:
        out = fio("--debug=random", *NULL, "--rw=randread", *words, cwd=tmp_path).stdout
        return [line.rpartition("=")[2] for line in out.splitlines() if "rand_seeds[" in line]

    assert seeds() == seeds()
    assert seeds("--randrepeat=0") != seeds("--randrepeat=0")
    assert seeds("--randseed=1", "--randrepeat=0") == seeds("--randseed=1", "--randrepeat=1")
    assert seeds("--randseed=1") != seeds("--randseed=2")


def test_the_aggregate_bandwidth_log(tmp_path: Path) -> None:
    fio("--bandwidth-log", *NULL, "--time_based", "--runtime=1", "--rate_iops=1000", cwd=tmp_path)
    assert (tmp_path / "agg-read_bw.log").read_text()
    assert (tmp_path / "agg-write_bw.log").read_text() == ""


def test_a_compressed_log_is_inflated(tmp_path: Path) -> None:
    fio(*NULL, "--write_bw_log=x", "--log_store_compressed=1", "--log_compression=10K", cwd=tmp_path)
    assert len(fio("--inflate-log=x_bw.1.log.fz", cwd=tmp_path).stdout.splitlines()) == 1024


def test_the_bundle_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_FIO_BUNDLES", str(tmp_path / "kept"))
    fio(*NULL, cwd=tmp_path)
    (bundle,) = (tmp_path / "kept").iterdir()
    assert json.loads((bundle / "manifest.json").read_text())["status"] == "complete"


@pytest.mark.in_turn
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(
    "words",
    [
        ("--rw=randrw", "--iodepth=4"),
        ("--rw=write", "--fsync=16", "--lat_percentiles=1"),
        ("--rw=trimwrite",),
        ("--rw=rw", "--unified_rw_reporting=both", "--group_reporting", "--numjobs=2"),
    ],
)
def test_the_keys_are_those_of_fio(words: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        ["fio", "--output-format=json+", *NULL, *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    theirs = json.loads(done.stdout)
    ours = json.loads(fio("--output-format=json+", *NULL, *words, cwd=tmp_path).stdout)

    def keys(doc: object, path: str = "") -> set[str]:
        if isinstance(doc, dict):
            if path.endswith("/bins"):
                return {path}
            return {path} | {key for name, value in doc.items() for key in keys(value, f"{path}/{name}")}
        if isinstance(doc, list):
            return {key for value in doc for key in keys(value, path)}
        return {path}

    missing = {key for key in keys(theirs) - keys(ours) if "/job options/" not in key}
    assert not missing
    added = keys(ours) - keys(theirs)
    assert {key.split("/")[-1] for key in added if "/job options/" not in key} <= {
        "job_start", "latency_target_ns", "latency_window_us", "loadstone version", "loadstone notes",
    }  # fmt: skip
    for a, b in zip(ours["jobs"], theirs["jobs"], strict=True):
        for name in ("read", "write", "trim"):
            assert a[name]["io_bytes"] + a[name]["total_ios"] >= 0
        total = sum(a[name]["total_ios"] for name in ("read", "write"))
        assert total == sum(b[name]["total_ios"] for name in ("read", "write"))


@pytest.mark.in_turn
def test_fio_replays_the_trace_of_a_run(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    words = ("--name=a", "--filename=f", "--size=64k", "--rw=randrw", "--bs=4k", "--write_iolog=a.log")
    ran = document(*words, cwd=tmp_path)["jobs"][0]
    done = subprocess.run(
        ["fio", "--name=b", "--read_iolog=a.log", "--replay_no_stall=1", "--output-format=json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    replayed = json.loads(done.stdout)["jobs"][0]
    for way in ("read", "write"):
        assert replayed[way]["io_bytes"] == ran[way]["io_bytes"] > 0


def test_commands_run_only_when_the_environment_permits_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*NULL, "--exec_prerun=echo before > ran", "--exec_postrun=echo after >> ran")
    assert "LOADSTONE_ALLOW_EXEC" in fio(*words, cwd=tmp_path, code=1).stderr
    assert not (tmp_path / "ran").exists()
    monkeypatch.setenv("LOADSTONE_ALLOW_EXEC", "1")
    fio(*words, cwd=tmp_path)
    assert (tmp_path / "ran").read_text() == "before\nafter\n"


@pytest.mark.serial
def test_jobs_of_a_flow_do_their_shares(tmp_path: Path) -> None:
    words = ["--ioengine=null", "--size=1g", "--time_based", "--flow_id=1"]
    slow = ["--name=a", "--flow=1", "--rate_iops=500", "--runtime=1"]
    # It ends first, so that it is never alone and free to run as fast as it can.
    fast = ["--name=b", "--flow=3", "--runtime=800ms"]
    jobs = document(*words, *slow, *fast, cwd=tmp_path)["jobs"]
    assert [job["read"]["total_ios"] for job in jobs] == pytest.approx([500, 3 * 500 * 0.8], rel=0.1)


def test_windows_leave_out_what_they_skip(tmp_path: Path) -> None:
    words = ("--rw=read", "--bs=4k", "--zonesize=8k", "--zoneskip=8k", "--write_bw_log=w", "--log_offset=1")
    fio("--name=a", "--ioengine=null", "--size=64k", "--io_size=40k", *words, cwd=tmp_path)
    rows = (tmp_path / "w_bw.1.log").read_text().splitlines()
    kib = [int(row.split(",")[4]) // 1024 for row in rows]
    assert kib == [0, 4, 16, 20, 32, 36, 48, 52, 0, 4]
