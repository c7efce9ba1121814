"""Other tools' results: what is read from files of a known content."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit import foreign
from loadstone.audit.foreign import fio_disks
from loadstone.audit.judge import judge, judge_case
from loadstone.errors import InputError
from tests.audit.foreign_files import DATA, FIO, KIB, MIB, cases, close, document

if TYPE_CHECKING:
    from pathlib import Path

# ---- fio: the files come of fio 3.33 with shared.fio, so they are held against its own numbers


def test_fio_json_has_a_phase_for_each_stonewall_and_adds_its_clones() -> None:
    first, second = cases(FIO / "shared.json")
    jobs = document()["jobs"]
    assert [case.name for case in (first, second)] == ["same", "reads, mixed"]
    assert first.source == "fio"
    assert first.ops.keys() == {"read"}
    assert first.ops["read"].operations == sum(job["read"]["total_ios"] for job in jobs[:4])
    assert first.total.iops is not None
    assert close(first.total.iops.value, sum(job["read"]["iops"] for job in jobs[:4]))
    assert first.total.bandwidth is not None
    assert close(first.total.bandwidth.value, sum(job["read"]["bw_bytes"] for job in jobs[:4]))
    assert close(first.seconds, 2.0, 0.01)
    assert second.siblings[0].name == "same"


def test_fio_json_tells_what_was_asked_with_the_defaults_of_all_jobs() -> None:
    first, second = cases(FIO / "shared.json")
    (same,) = first.jobs
    assert (same.clones, same.iodepth, same.direct, same.backend) == (4, 8, True, "libaio")
    assert (same.read_percent, same.random_percent, same.block_bytes) == (100.0, 0.0, {64 * KIB: 1.0})
    assert (same.size_bytes, same.clones_share) == (16 * MIB, True)
    assert {clone[0].target for clone in same.ranges} == {"data"}
    assert len(same.ranges) == 4
    reads, mixed = second.jobs
    assert (reads.random_percent, reads.block_bytes) == (100.0, {4 * KIB: 1.0})
    assert (mixed.iodepth, mixed.read_percent) == (4, 70.0)
    assert mixed.block_bytes == pytest.approx({4 * KIB: 0.6, 16 * KIB: 0.4})
    # At random places, every block once: what would reach into a block that is taken is cut.
    assert mixed.write_block_bytes == {}


def test_fio_json_keeps_latency_and_its_percentiles() -> None:
    _, second = cases(FIO / "shared.json")
    told = document()["jobs"][4]["read"]
    reads = second.by_job["reads"]["read"]
    assert reads.latency is not None
    assert close(reads.latency.mean_ns, told["lat_ns"]["mean"])
    assert close(reads.latency.max_ns, told["lat_ns"]["max"])
    assert reads.latency.count == told["lat_ns"]["N"]
    assert reads.latencies["clat"].printed[99.0] == told["clat_ns"]["percentile"]["99.000000"]


def test_without_lat_the_time_after_submission_stands_for_a_direction(tmp_path: Path) -> None:
    """With disable_lat fio's JSON had no latency at all, and its text had."""
    told = document()
    section = told["jobs"][4]["read"]
    section["lat_ns"] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    told["jobs"] = [told["jobs"][4]]
    (tmp_path / "fio.json").write_text(json.dumps(told))
    (case,) = cases(tmp_path / "fio.json")
    reads = case.ops["read"]
    assert reads.kind == "clat"
    assert reads.latency is not None
    assert close(reads.latency.mean_ns, section["clat_ns"]["mean"])


def test_terse_lines_tell_the_time_after_submission_beside_the_whole(tmp_path: Path) -> None:
    """Where it is longer than the whole, of which it is a part, that was not seen in terse lines."""
    fields = (FIO / "shared.terse3").read_text().splitlines()[0].split(";")
    (tmp_path / "c.terse").write_text(";".join(fields))
    (case,) = cases(tmp_path / "c.terse")
    clat = case.ops["read"].latencies["clat"]
    assert (clat.mean_ns, clat.min_ns, clat.max_ns) == (2_986_375.395, 44e3, 45_429e3)
    assert (clat.percentile(99.0), clat.percentile(99.99)) == (27_394e3, 45_350e3)
    assert not any("completion_latency_ns" in cause.evidence for cause in judge([case]).verdict.causes)
    fields[15] = "9000.0"
    (tmp_path / "c.terse").write_text(";".join(fields))
    (cause, *_) = judge(cases(tmp_path / "c.terse")).verdict.causes
    assert cause.evidence == {"completion_latency_ns": 9e6, "mean_latency_ns": 2_998_984.099}


def test_the_shortest_io_of_several_clones_is_the_shortest_of_all() -> None:
    """It was not known, so that a copy could not be told from another run of a device with a limit."""
    first, _ = cases(FIO / "shared.json")
    shortest = [job["read"]["lat_ns"]["min"] for job in document()["jobs"] if job["jobname"] == "same"]
    assert len(shortest) > 1
    assert first.by_job["same"]["read"].latency is not None
    assert first.by_job["same"]["read"].latency.min_ns == min(shortest)


def test_what_group_reporting_hides_is_not_made_up() -> None:
    results = foreign.read(FIO / "grouped.json")
    first, second = results.cases
    assert first.jobs[0].clones == 4
    assert first.jobs[0].iodepth == 8
    (hidden,) = second.jobs
    assert (hidden.job, hidden.clones) == ("reads and others", 2)
    assert hidden.iodepth is None
    assert hidden.block_bytes == {}
    assert hidden.direct is True
    assert any("group_reporting" in note for note in results.notes)


def test_hidden_jobs_of_many_clones_each_are_told_apart(tmp_path: Path) -> None:
    """Eight jobs with a device and 16 clones each, which group_reporting makes one entry of."""
    told = json.loads((FIO / "grouped.json").read_text())
    told["global options"] |= {"numjobs": "16", "iodepth": "128", "size": "80%", "rw": "read", "bs": "4k"}
    told["jobs"] = [told["jobs"][0]]
    told["jobs"][0] |= {"job options": {"filename": "/dev/sdi"}, "job_runtime": 128 * 2001}
    told["jobs"][0]["read"]["runtime"] = 2001
    (tmp_path / "f.json").write_text(json.dumps(told))
    (case,) = cases(tmp_path / "f.json")
    assert [job.clones for job in case.jobs] == [16] * 8
    assert {job.iodepth for job in case.jobs} == {128}
    causes = {cause.rule: cause for cause in judge([case]).verdict.causes}
    assert causes["overlapping_clones"].evidence["asked_for_each_block_factor"] == 16
    # 16384 outstanding: what the host saw cannot have been what this file says.
    assert causes["littles_law"].evidence["outstanding_asked"] == 16384


@pytest.mark.parametrize("change", [{"job_runtime": 10**60}, {"numjobs": str(10**9)}])
def test_more_clones_than_any_run_has_are_not_believed(tmp_path: Path, change: dict[str, Any]) -> None:
    """Fuzzed: a file of 8 kB took the memory, as each of 10**56 clones got a place of its own."""
    told = json.loads((FIO / "grouped.json").read_text())
    for job in told["jobs"]:
        job.update({key: value for key, value in change.items() if key == "job_runtime"})
        job["job options"].update({key: value for key, value in change.items() if key == "numjobs"})
    (tmp_path / "many.json").write_text(json.dumps(told))
    clones = [asked.clones or 0 for case in cases(tmp_path / "many.json") for asked in case.jobs]
    assert clones
    assert max(clones) <= 64


def test_what_all_hidden_jobs_share_is_known(tmp_path: Path) -> None:
    told = json.loads((FIO / "grouped.json").read_text())
    told["jobs"] = [told["jobs"][1]]
    told["jobs"][0]["job options"] = {"filename": "/dev/sdc"}
    (tmp_path / "f.json").write_text(json.dumps(told))
    (case,) = cases(tmp_path / "f.json")
    assert (case.jobs[0].clones, case.jobs[0].iodepth) == (2, 8)


def test_terse_and_text_tell_the_same_as_json_of_their_own_runs() -> None:
    for name in ("shared.terse3", "shared.terse5", "shared.txt"):
        first, second = cases(FIO / name)
        assert first.name == "same"
        assert second.name == "reads, mixed"
        assert first.ops.keys() == {"read"}
        assert second.ops.keys() == {"read", "write"}
        assert first.total.iops is not None
        assert first.total.bandwidth is not None
        assert close(first.total.bandwidth.value / first.total.iops.value, 64 * KIB, 0.01)
        assert first.total.latency is not None
        # Four clones with eight outstanding each: the files' own rate and latency must say so.
        assert close(first.total.iops.value * (first.total.latency.mean_ns or 0) / 1e9, 32, 0.02)
        assert close(first.seconds, 2.0, 0.01)


def test_text_tells_the_lines_of_the_jobs() -> None:
    first, second = cases(FIO / "shared.txt")
    (same,) = first.jobs
    assert (same.clones, same.iodepth, same.random_percent) == (4, 8, 0.0)
    assert same.block_bytes == {64 * KIB: 1.0}
    assert same.direct is None
    assert [job.job for job in second.jobs] == ["reads", "mixed"]
    assert [job.iodepth for job in second.jobs] == [8, 4]
    grouped = cases(FIO / "grouped.txt")[1].jobs[0]
    assert (grouped.job, grouped.clones, grouped.iodepth) == ("reads and others", 2, None)


def test_an_amount_that_fio_printed_wrong_is_not_known(tmp_path: Path) -> None:
    """fio 3.1 dropped the digits of 24.99 GiB, so that its reads seemed smaller than asked for."""
    text = (FIO / "grouped.txt").read_text()
    start = text.index(": (groupid=0")
    line = next(one for one in text[start:].splitlines() if "BW=" in one)
    io = line[line.rindex("(") + 1 : line.rindex("/")]
    value, unit = float(io.rstrip("KMGTiB")), io.lstrip("0123456789.")
    (tmp_path / "f.txt").write_text(text.replace(line, line.replace(io, f"{value * 0.95:.1f}{unit}")))
    case = cases(tmp_path / "f.txt")[0]
    assert cases(FIO / "grouped.txt")[0].ops["read"].bytes is not None
    assert case.ops["read"].bytes is None
    assert case.ops["read"].operations is not None


def test_terse_says_nothing_of_what_was_asked() -> None:
    results = foreign.read(FIO / "shared.terse3")
    (job,) = results.cases[0].jobs
    assert (job.iodepth, job.direct, job.block_bytes, job.read_percent) == (None, None, {}, 100.0)
    assert "terse output does not say what was asked for" in results.notes[0]


@pytest.mark.parametrize("head", ["3;2.0.8;", "2;"])
def test_terse_lines_of_old_fios_are_read(tmp_path: Path, head: str) -> None:
    """fio before 2.0.9 called itself 2.0.8; version 2 does not say which fio wrote it."""
    line = (FIO / "shared.terse3").read_text()
    (tmp_path / "old").write_text(re.sub(r"(?m)^3;fio-[^;]*;", head, line))
    found, known = foreign.read(tmp_path / "old"), foreign.read(FIO / "shared.terse3")
    assert found.format == f"fio terse ({'version 2' if head == '2;' else '2.0.8'})"
    assert [one.ops for one in found.cases] == [one.ops for one in known.cases]


def test_a_name_with_semicolons_shifts_no_terse_field(tmp_path: Path) -> None:
    """Its line was read one field off: the bandwidth was taken for the rate."""
    lines = (FIO / "shared.terse3").read_text().splitlines()
    name = lines[0].split(";")[2]
    (tmp_path / "f").write_text(
        "".join(line.replace(f";{name};", f";{name};x;1;", 1) + "\n" for line in lines)
    )
    found, known = foreign.read(tmp_path / "f"), foreign.read(FIO / "shared.terse3")
    assert [one.ops for one in found.cases] == [one.ops for one in known.cases]
    assert f"{name};x;1" in {job.job for one in found.cases for job in one.jobs}
    (tmp_path / "f").write_text(lines[0].replace("%=", "%"))
    with pytest.raises(InputError, match="field 18 and the 19 after it are no percentiles"):
        foreign.read(tmp_path / "f")


def test_clones_of_one_file_are_found_in_real_output() -> None:
    found = judge(cases(FIO / "shared.json")).phases[0].verdict
    assert "overlapping_clones" in {cause.rule for cause in found.causes}


def changed(tmp_path: Path, **jobs: Any) -> Path:
    told = document()
    told["jobs"] = told["jobs"][:1]
    told["jobs"][0] |= jobs
    (tmp_path / "f.json").write_text(json.dumps(told))
    return tmp_path / "f.json"


@pytest.mark.parametrize(
    ("options", "field", "expected"),
    [
        ({}, "iodepth", 8),
        ({"ioengine": "psync"}, "iodepth", 1),
        ({"direct": "0"}, "direct", False),
        ({"bs": "8k"}, "block_bytes", {8 * KIB: 1.0}),
        ({"rw": "randwrite"}, "read_percent", 0.0),
        ({"rw": "randrw", "rwmixread": "30"}, "read_percent", 30.0),
        ({"rw": "randwrite", "verify": "crc32c"}, "read_percent", None),
        ({"rw": "randwrite", "verify": "crc32c", "do_verify": "0"}, "read_percent", 0.0),
        ({"rw": "randread", "verify": "crc32c"}, "read_percent", 100.0),
        ({"rw": "randread", "percentage_random": "80"}, "random_percent", 80.0),
        ({"rate_iops": "1000"}, "rate_iops", 1000.0),
        ({"rw": "randrw", "rate_iops": "1000"}, "rate_iops", 2000.0),
        ({"rw": "randrw", "rate_iops": "1000", "rwmixread": "100"}, "rate_iops", 1000.0),
        ({"rw": "randrw", "rate_iops": "300,100"}, "rate_iops", 400.0),
        ({"rw": "write", "rate_iops": "300,100"}, "rate_iops", 100.0),
        ({"rw": "trimwrite", "rate": "1m"}, "rate_bytes_per_s", 2.0 * MIB),
        ({"rw": "randrw", "rate_iops": "1000,0"}, "rate_iops", None),
        ({"rw": "randrw", "rate_iops": "1000,0"}, "paced", True),
        ({"thinktime": "10"}, "paced", True),
        ({"numjobs": "1", "offset_increment": "4m"}, "clones_share", None),
        ({"bssplit": "4k/50:8k/50"}, "read_block_bytes", {4 * KIB: 0.5, 8 * KIB: 0.5}),
        ({"rw": "randread", "bssplit": "4k/50:8k/50"}, "read_block_bytes", {}),
        (
            {"rw": "randread", "bssplit": "4k/50:8k/50", "norandommap": "1"},
            "read_block_bytes",
            {4 * KIB: 0.5, 8 * KIB: 0.5},
        ),
        ({"rw": "randread"}, "read_block_bytes", {4 * KIB: 1.0}),
        ({"ioengine": "external:mine"}, "iodepth", None),
        ({"ioengine": "splice"}, "iodepth", 1),
        ({"bs": "rubbish"}, "block_bytes", {4 * KIB: 1.0}),
        ({"no_such_option": "1"}, "iodepth", 8),
    ],
)
def test_options_of_fio(tmp_path: Path, options: dict[str, str], field: str, expected: Any) -> None:
    base = {"rw": "read", "bs": "4k", "numjobs": "1", "filename": "data"}
    (case,) = cases(changed(tmp_path, **{"job options": base | options}))
    assert getattr(case.jobs[0], field) == expected


@pytest.mark.parametrize(("engine", "named"), [("pvsync", True), ("libaio", False)])
def test_a_depth_that_fio_caps_is_named(tmp_path: Path, engine: str, *, named: bool) -> None:
    """Regression: 1 of 32 outstanding I/Os was the storage with 60 %; fio says so on its terminal only."""
    options = document()["jobs"][0]["job options"] | {"ioengine": engine, "iodepth": "32", "numjobs": "1"}
    (case,) = cases(changed(tmp_path, **{"job options": options}))
    told = [one.rule for one in judge_case(case).causes if "I/Os of the jobs' depths" in one.text]
    assert told == ["depth_not_reached"] * named


def test_clones_with_an_increment_do_not_share(tmp_path: Path) -> None:
    told = document()
    for job in told["jobs"][:4]:
        job["job options"]["offset_increment"] = "16m"
    (tmp_path / "f.json").write_text(json.dumps(told))
    (same,) = cases(tmp_path / "f.json")[0].jobs
    assert [clone[0].start_bytes for clone in same.ranges] == [0, 16 * MIB, 32 * MIB, 48 * MIB]
    assert same.clones_share is False
    assert same.size_bytes == 64 * MIB


def test_clones_that_share_a_part_of_unknown_size_are_found(tmp_path: Path) -> None:
    told = document()
    for job in told["jobs"][:4]:
        job["job options"] |= {"size": "80%", "filename": "/dev/sdc"}
    (tmp_path / "f.json").write_text(json.dumps(told))
    case = cases(tmp_path / "f.json")[0]
    (same,) = case.jobs
    assert (same.ranges, same.clones_share, same.size_bytes) == ((), True, None)
    assert [target.kind for target in case.targets] == ["block"]
    (found,) = [cause for cause in judge([case]).verdict.causes if cause.rule == "overlapping_clones"]
    assert found.evidence["asked_for_each_block_factor"] == 4


def test_an_error_of_a_job_makes_its_number_not_valid(tmp_path: Path) -> None:
    (case,) = cases(changed(tmp_path, error=5))
    assert case.problems is not None
    assert [problem.count for problem in case.problems] == [1]
    assert judge([case]).verdict.kind == "not_valid"


@pytest.mark.parametrize(("engine", "is_storage"), [("libaio", True), ("net", False), ("cpuio", False)])
def test_engines_that_load_no_storage_are_left_out(tmp_path: Path, engine: str, *, is_storage: bool) -> None:
    root = document()
    for one in (root["global options"], *(job["job options"] for job in root["jobs"])):
        one["ioengine"] = engine
    root["jobs"][0]["job options"]["ioengine"] = engine
    path = tmp_path / "fio.json"
    path.write_text(json.dumps(root))
    if is_storage:
        assert len(cases(path)) == 2
        return
    with pytest.raises(InputError, match=f"measures no storage: ioengine is {engine}"):
        cases(path)
    for job in root["jobs"]:
        if job["groupid"]:
            job["job options"]["ioengine"] = "libaio"
    path.write_text(json.dumps(root))
    found = foreign.read(path)
    assert len(found.cases) == 1
    assert f"jobs that load no storage are left out: ioengine {engine}" in found.notes


def test_a_job_that_failed_before_its_first_io_has_no_failed_io(tmp_path: Path) -> None:
    root = document()
    for job in root["jobs"]:
        job["error"] = 22
        for op in ("read", "write"):
            job[op] |= {"total_ios": 0, "iops": 0.0, "io_bytes": 0, "bw": 0, "bw_bytes": 0, "runtime": 0}
    path = tmp_path / "fio.json"
    path.write_text(json.dumps(root))
    cause = next(one for one in judge_case(cases(path)[0]).causes if one.rule == "io_errors")
    assert cause.text == "The run failed before its first I/O. Nothing was measured."
    assert cause.evidence["first_problem"] == "fio ended a job with error 22"


def test_ios_that_were_issued_and_did_not_end_are_no_other_workload(tmp_path: Path) -> None:
    lines = (
        "j: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, "
        "ioengine=libaio, iodepth=1\n"
        "fio-3.7\n"
        "j: (groupid=0, jobs={jobs}): err= 0: pid=1: Wed Aug 12 01:04:39 2020\n"
        "   read: IOPS=326, BW=1279KiB/s (1310kB/s)(37.8MiB/30270msec)\n"
        "     lat (usec): min=1089, max=1814.3k, avg=78320.38, stdev=31490.25\n"
        "     issued rwts: total=9883,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
    )
    path = tmp_path / "fio.txt"
    for jobs, drifts in ((256, False), (4, True)):
        path.write_text(lines.format(jobs=jobs))
        rules = {one.rule for one in judge_case(cases(path)[0]).causes}
        assert ("workload_drift" in rules) is drifts, jobs


@pytest.mark.parametrize(
    ("text", "is_result"),
    [
        ('{\n  "fio version" : "fio-3.33"', True),
        ('fio: a message\n{\n  "fio version" : "fio-3.33"', True),
        ('{"disk_util": [], "fio version": "fio-3.33"', True),
        ('def version(root):\n    return {"run": root["fio version"]}\n', False),
        ('json_object_add_value_string(root, "fio version", fio_version_string);\n{\n', False),
        ('sample = {\n    "fio version": "fio-3.33",\n}\n', False),
    ],
)
def test_programs_that_know_the_key_are_no_results(tmp_path: Path, text: str, is_result: bool) -> None:
    path = tmp_path / "one"
    path.write_text(text)
    assert (foreign.recognise(path) is not None) is is_result


def test_messages_around_the_document_are_passed_over(tmp_path: Path) -> None:
    text = (FIO / "shared.json").read_text()
    (tmp_path / "f.json").write_text(f"fio: a message {{ of some kind\n{text}\nfio: and one after it\n")
    assert len(cases(tmp_path / "f.json")) == 2


def test_of_several_documents_the_last_one_counts(tmp_path: Path) -> None:
    early = document()
    early["jobs"] = early["jobs"][:1]
    (tmp_path / "f.json").write_text(json.dumps(early) + "\n" + (FIO / "shared.json").read_text())
    assert len(cases(tmp_path / "f.json")) == 2


def test_sectors_of_disks_tell_what_reached_the_storage(tmp_path: Path) -> None:
    told = document()
    told["jobs"] = told["jobs"][:1]
    disk = {"name": "sda", "read_ios": 10, "write_ios": 0, "read_sectors": 2048, "write_sectors": 0}
    told["disk_util"] = [disk]
    (tmp_path / "f.json").write_text(json.dumps(told))
    (case,) = cases(tmp_path / "f.json")
    assert case.traffic is not None
    assert case.traffic.carriers == ("sda",)
    assert case.seconds is not None
    unseen = fio_disks.UNSEEN_S / case.seconds * case.traffic.asked["read"].bytes
    assert close(case.traffic.moved["read"].bytes, MIB + unseen)
    # fio 3.33 and 3.42 counted 601 and 659 reads for 300 of a job with a ramp as long as its run.
    told["global options"]["ramp_time"] = "3s"
    (tmp_path / "f.json").write_text(json.dumps(told))
    (case,) = cases(tmp_path / "f.json")
    assert case.traffic is None


@pytest.mark.parametrize("reads", [True, False])
def test_sectors_beside_one_direction_or_none_are_judged(tmp_path: Path, *, reads: bool) -> None:
    """A job that only reads asked for no writes: that is a number, too, and no traceback."""
    told = document()
    told["jobs"] = told["jobs"][:1]
    told["disk_util"] = [
        {"name": "sda", "read_ios": 9, "write_ios": 9, "read_sectors": 72, "write_sectors": 72}
    ]
    if not reads:
        told["jobs"][0]["read"] |= {"total_ios": 0, "io_bytes": 0, "runtime": 0, "iops": 0, "bw_bytes": 0}
    (tmp_path / "f.json").write_text(json.dumps(told))
    (case,) = cases(tmp_path / "f.json")
    assert set(case.ops) == ({"read"} if reads else set())
    assert (set(case.traffic.asked) if case.traffic else set()) == ({"read", "write"} if reads else set())
    judge_case(case)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "f.json",
            '{"fio version": "fio-3.33",\n"jobs": [',
            "f.json:2: is not a whole document of fio: expecting value at column 10",
        ),
        (
            "f.json",
            '{"fio version": "fio-3.33", "a": ' + "[" * 5000,
            "f.json: is not a whole document of fio: it is nested too",
        ),
        ("f.json", '{"fio version": "fio-3.33"}', "has no list of jobs"),
        ("f.json", '{"fio version": "fio-3.33", "jobs": [1, 2]}', "expected a list of objects"),
        # Totals of a group alone were "not a known result", as if the file were none of fio's.
        (
            "f.txt",
            "Run status group 0 (all jobs):\n   READ: bw=15.6MiB/s (16.4MB/s), io=29.3MiB, run=1873msec\n",
            "has no results of a job",
        ),
        ("f.terse", "3;fio-3.33;a;0;0;1;2", "found 7 fields, expected at least 92"),
        (
            "f.xml",
            "<Results><System></System>\n<TimeSpan>",
            "f.xml:2: is not XML: no element found at column 11",
        ),
        ("f.xml", '<!DOCTYPE a [<!ENTITY b "c">]><Results><System></System></Results>', "defines entities"),
        ("f.xml", "<Results><System></System></Results>", "has no TimeSpan"),
        ("f.csv", "'Target Type,Target Name\nALL\n", "found 1 column, expected 2"),
        ("f.csv", "'Target Type,Target Name\n", "has no results"),
    ],
)
def test_broken_files_are_told_with_their_name(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        foreign.read(tmp_path / name)
    assert message in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


# ---- vdbench: two versions with other columns and the same numbers


@pytest.mark.parametrize("version", ["5.04.06", "5.04.07"])
def test_vdbench_is_read_by_the_names_of_its_columns(version: str) -> None:
    results = foreign.read(DATA / f"vdbench-{version}")
    first, second = results.cases
    assert [case.name for case in results.cases] == ["rd1 (xfersize=64k)", "rd2 (xfersize=4k)"]
    assert first.total.iops is not None
    assert first.total.iops.value == 15400
    assert first.total.bandwidth is not None
    assert first.total.bandwidth.value == 962.5 * MIB
    assert first.total.latency is not None
    assert close(first.total.latency.mean_ns, 519.5e3)
    assert close(first.total.latency.max_ns, 5.08e6)
    assert first.total.latency.count == 385_000
    assert first.queue_depth == 8.0
    assert first.host_cpu_percent == 1.7
    assert first.seconds == 25.0
    (job,) = first.jobs
    assert (job.iodepth, job.direct, job.targets) == (8, True, ("/dev/sdq",))
    assert (job.block_bytes, job.random_percent, job.rate_iops) == ({64 * KIB: 1.0}, 0.0, None)
    assert second.jobs[0].rate_iops == 500.0
    assert second.ops["read"].iops is not None
    assert close(second.ops["read"].iops.value, 350)
    assert second.ops["write"].latency is not None
    assert close(second.ops["write"].latency.mean_ns, 1.6667e6)


def test_vdbench_keeps_only_the_intervals_of_the_average() -> None:
    series = foreign.read(DATA / "vdbench-5.04.06").cases[0].series
    assert series is not None
    assert series["iops"].to_list() == [15200, 15300, 15400, 15500, 15600]
    assert set(series["seconds"]) == {5.0}


def test_vdbench_without_a_flatfile_is_read_from_the_totals(tmp_path: Path) -> None:
    for version in ("5.04.06", "5.04.07"):
        place = tmp_path / version
        place.mkdir()
        (place / "totals.html").write_text((DATA / f"vdbench-{version}" / "totals.html").read_text())
        results = foreign.read(place)
        assert [case.name for case in results.cases] == ["rd1 (xfersize=64k)", "rd2 (xfersize=4k)"]
        assert results.cases[0].total.latency is not None
        assert close(results.cases[0].total.latency.max_ns, 5.08e6)
        assert results.cases[0].jobs[0].direct is None
        assert "no parmfile.html" in results.notes[0]


def test_a_row_of_vdbench_that_does_not_fit_its_header_is_told_by_line(tmp_path: Path) -> None:
    text = (DATA / "vdbench-5.04.06" / "flatfile.html").read_text().splitlines()
    text[6] = " ".join(text[6].split()[:-1])
    (tmp_path / "flatfile.html").write_text("\n".join(text))
    with pytest.raises(InputError, match=r"flatfile\.html:7: found 28 columns, expected 29"):
        foreign.read(tmp_path)


# ---- Iometer: two ages of columns


@pytest.mark.parametrize("name", ["results-2006.csv", "results-1.1.csv"])
def test_iometer_is_read_by_the_names_of_its_columns(name: str) -> None:
    (case,) = cases(DATA / "iometer" / name)
    assert case.source == "iometer"
    assert case.total.iops is not None
    assert case.total.iops.value == 30000
    assert case.total.bandwidth is not None
    assert close(case.total.bandwidth.value, 30000 * 4096)
    assert case.total.latency is not None
    assert close(case.total.latency.mean_ns, 4.2667e6)
    assert case.total.errors == 0
    assert case.ops["read"].operations == 720_000
    assert case.host_cpu_percent == 12.5
    (job,) = case.jobs
    # Two workers with two disks each, 32 outstanding on every one of them.
    assert job.iodepth == 128
    assert (job.read_percent, job.random_percent, job.block_bytes) == (40.0, 100.0, {4096: 1.0})
    assert job.size_bytes == 1 << 30
    assert [target.path for target in case.targets] == ["disk a", "disk b", "disk c", "disk d"]
    assert "littles_law" in judge([case]).verdict.checked


# ---- DISKSPD


def test_diskspd_is_read_with_its_profile() -> None:
    (case,) = cases(DATA / "diskspd" / "results.xml")
    assert (case.source, case.seconds, case.host_cpus, case.host_cpu_percent) == ("diskspd", 10.0, 8, 21.5)
    assert case.total.operations == 320_000
    assert case.total.iops is not None
    assert case.total.iops.value == 32_000
    assert case.ops["write"].bytes == 4 * 196_608_000
    assert case.total.latency is not None
    assert case.total.latency.mean_ns == 1e6
    assert case.total.latency.percentile(99.9) == 5e6
    assert case.total.latency.max_ns == 30e6
    (job,) = case.jobs
    assert (job.clones, job.iodepth, job.direct, job.synchronous) == (4, 8, True, True)
    assert (job.read_percent, job.random_percent, job.block_bytes) == (70.0, 100.0, {8192: 1.0})
    assert job.payload is not None
    assert job.payload.kind == "pattern"


@pytest.mark.parametrize(
    ("element", "shared"),
    [
        ("", True),
        ("<ThreadStride>1048576</ThreadStride>", False),
        ("<InterlockedSequential>true</InterlockedSequential>", False),
    ],
)
def test_threads_of_diskspd_start_together_unless_told_otherwise(
    tmp_path: Path, element: str, shared: bool
) -> None:
    text = (DATA / "diskspd" / "results.xml").read_text()
    text = text.replace("<Random>8192</Random><ThreadStride>0</ThreadStride>", element)
    (tmp_path / "r.xml").write_text(text)
    assert cases(tmp_path / "r.xml")[0].jobs[0].clones_share is shared


def test_each_format_is_recognised_and_named() -> None:
    names = {
        FIO / "shared.json": "fio JSON",
        FIO / "one.json+": "fio JSON",
        FIO / "shared.terse5": "fio terse",
        FIO / "shared.txt": "fio text",
        DATA / "vdbench-5.04.07": "vdbench's output directories",
        DATA / "iometer" / "results-1.1.csv": "Iometer's CSV",
        DATA / "diskspd" / "results.xml": "DISKSPD's XML",
    }
    for path, name in names.items():
        found = foreign.recognise(path)
        assert found is not None
        assert found.name == name
    assert foreign.recognise(FIO / "shared.fio") is None
