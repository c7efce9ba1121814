"""From a configuration to runs: which workers, targets and depths, and what each does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.errors import InputError, RefusedError
from loadstone.formats.iometer import CommandLineChanges, read_icf, runs
from loadstone.workload.payload import PayloadRequests
from loadstone.workload.placement import Amount
from loadstone.workload.rows import WorkloadRow
from tests.formats.iometer.files import DATA, NAMES, made, text
from tests.support.work import rows_of

if TYPE_CHECKING:
    from loadstone.workload.model import Workload

S = 10**9


def active(name: str) -> list[list[str]]:
    """The jobs of each run, by name."""
    return [[job.name for job in run.workload.jobs] for run in made(name)]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_has_runs_of_distinct_names_and_jobs(name: str) -> None:
    found = made(name)
    assert found
    assert len({run.name for run in found}) == len(found)
    for run in found:
        jobs = run.workload.jobs
        assert len({job.name for job in jobs}) == len(jobs) > 0
        assert run.factors["access_specification"]


def test_specifications_run_one_after_the_other() -> None:
    assert [run.name for run in made("02-four-patterns.icf")] == [
        "4 KiB random read",
        "4 KiB random write",
        "64 KiB sequential read",
        "64 KiB sequential write",
    ]


@pytest.mark.parametrize(
    ("name", "depths"),
    [
        ("03-depth-exponential.icf", [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        ("04-depth-linear.icf", [4, 8, 12, 16] * 2),
        ("19-1999-numbers.icf", [2, 4, 8]),
    ],
)
def test_depths(name: str, depths: list[int]) -> None:
    found = made(name)
    assert [run.workload.jobs[0].engine.iodepth for run in found] == depths
    assert [run.factors["iodepth"] for run in found] == depths


def test_targets_one_more_at_a_time_on_every_worker() -> None:
    assert active("05-targets-linear.icf") == [
        ["Worker 1 1:", "Worker 2 1:"],
        ["Worker 1 1:", "Worker 1 2:", "Worker 2 1:", "Worker 2 2:"],
        ["Worker 1 1:", "Worker 1 2:", "Worker 1 3:", "Worker 2 1:", "Worker 2 2:"],
        ["Worker 1 1:", "Worker 1 2:", "Worker 1 3:", "Worker 1 4:", "Worker 2 1:", "Worker 2 2:"],
    ]


def test_targets_doubled() -> None:
    assert [run.factors["targets"] for run in made("06-targets-exponential.icf")] == [1, 2, 4]


def test_workers_one_more_at_a_time() -> None:
    assert [len(jobs) for jobs in active("07-workers.icf")] == [2, 4, 6]


def test_targets_of_every_manager_one_more_at_a_time() -> None:
    """ALPHA has workers with two targets each, BETA one with two."""
    assert active("08-increment-parallel.icf") == [
        ["ALPHA Worker 1 1:", "BETA Worker 1 1:"],
        ["ALPHA Worker 1 1:", "ALPHA Worker 1 2:", "BETA Worker 1 1:", "BETA Worker 1 2:"],
        [
            "ALPHA Worker 1 1:",
            "ALPHA Worker 1 2:",
            "ALPHA Worker 2 3:",
            "BETA Worker 1 1:",
            "BETA Worker 1 2:",
        ],
        [
            "ALPHA Worker 1 1:",
            "ALPHA Worker 1 2:",
            "ALPHA Worker 2 3:",
            "ALPHA Worker 2 4:",
            "BETA Worker 1 1:",
            "BETA Worker 1 2:",
        ],
    ]


def test_targets_one_more_at_a_time_in_all() -> None:
    found = active("09-increment-serial.icf")
    assert [len(jobs) for jobs in found] == [1, 2, 3, 4, 5, 6]
    assert found[-2][-1] == "BETA Worker 1 1:"


def test_workers_and_targets() -> None:
    shares = [(r.factors["workers"], r.factors["targets"]) for r in made("10-workers-and-targets.icf")]
    assert shares == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_depth_is_inside_targets() -> None:
    shares = [(r.factors["targets"], r.factors["iodepth"]) for r in made("11-depth-and-targets.icf")]
    assert shares == [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4), (2, 8)]


def test_who_idles_has_no_job() -> None:
    assert [(run.name, [job.name for job in run.workload.jobs]) for run in made("16-idle.icf")] == [
        ("4 KiB random read", ["Reader D:"]),
        ("4 KiB random write", ["Writer E:"]),
        ("4 KiB random read (2)", ["Reader D:"]),
    ]


def test_a_job_is_a_worker_on_a_target() -> None:
    (run,) = made("13-all-in-one.icf")
    (job,) = run.workload.jobs
    assert (job.engine.ioengine, job.engine.direct, job.engine.iodepth, job.seeds.randseed) == (
        "io_uring",
        True,
        4,
        4711,
    )
    assert (job.limits.runtime_ns, job.limits.ramp_ns, job.limits.time_based) == (60 * S, 5 * S, True)
    assert job.placement.size == Amount(bytes=409600 * 512)
    assert len(rows_of(job)) == 29
    assert rows_of(job)[0] == WorkloadRow(percent=4, bytes=512, read_percent=100, random_percent=0)
    assert rows_of(job)[10] == WorkloadRow(
        percent=4, bytes=4096, read_percent=100, random_percent=100, align_bytes=4096
    )
    assert job.placement.targets[0].path == "/data/iometer.dat"


def test_a_target_keeps_its_own_depth() -> None:
    (run,) = made("23-by-a-script.icf")
    assert [(job.placement.targets[0].path, job.engine.iodepth) for job in run.workload.jobs] == [
        ("/dev/mapper/alpha", 32),
        ("/dev/mapper/beta", 4),
    ]


def test_bursts_wait_together() -> None:
    (run,) = made("14-bursts.icf")
    (job,) = run.workload.jobs
    assert (job.pacing.thinktime_ns, job.pacing.thinktime_blocks, job.pacing.thinktime_blocks_type) == (
        10**7,
        8,
        "issue",
    )
    assert [row.burst for row in rows_of(job)] == [8, 8]
    assert (len(job.placement.targets), job.engine.iodepth) == (2, 16)
    assert any("take turns" in note.text for note in run.workload.notes)


def test_bursts_without_a_delay_stay_with_the_row() -> None:
    (run,) = made("15-burst-rows.icf")
    (job,) = run.workload.jobs
    assert job.pacing.thinktime_ns is None
    assert [row.burst for row in rows_of(job)] == [16, 4]
    assert job.placement.offset == Amount(bytes=2048 * 512)


def test_without_managers_default_workers_do_what_is_assigned_to_them() -> None:
    found = made("22-no-managers.icf", CommandLineChanges(targets=("/data/x", "/data/y")))
    assert [run.name for run in found] == ["4 KiB random read", "64 KiB sequential write"]
    assert [job.name for job in found[0].workload.jobs][:3] == [
        "Worker 1 /data/x",
        "Worker 1 /data/y",
        "Worker 2 /data/x",
    ]
    assert len(found[0].workload.jobs) == 6


def test_random_io_at_any_sector_is_told() -> None:
    (run,) = made("24-unaligned.icf")
    assert any(note.kind == "trap" and "align is 0" in note.text for note in run.workload.notes)
    assert rows_of(run.workload.jobs[0])[0].align_bytes is None


@pytest.mark.parametrize(
    ("pattern", "field"), [("0", "payload.buffer_pattern"), ("1", "payload.scramble_buffers")]
)
def test_data_patterns(pattern: str, field: str) -> None:
    source = (DATA / "02-four-patterns.icf").read_text().replace("204800,0,2", f"204800,0,{pattern}")
    found = runs(read_icf(source.encode(), "x"), CommandLineChanges(mapping={"d": "/x"}))
    reads, writes = (one.workload.jobs[0] for one in found[:2])
    assert reads.payload == PayloadRequests()
    assert writes.value(field) != getattr(PayloadRequests(), field.rpartition(".")[2])


def test_a_logical_drive_is_a_file_in_its_root(tmp_path: Path) -> None:
    (run,) = made("24-unaligned.icf", CommandLineChanges(mapping={"D:": str(tmp_path)}))
    target = run.workload.jobs[0].placement.targets[0]
    assert (target.path, target.written) == (str(tmp_path / "iobw.tst"), "D:")


@pytest.mark.parametrize("place", ["/dev", "/dev/.", "/dev/mapper/."])
def test_a_directory_of_devices_is_no_drive(place: str) -> None:
    """A test file there would be in memory: somebody meant one of the devices."""
    if not Path(place).is_dir():
        pytest.skip(f"there is no {place}")
    with pytest.raises(InputError, match="is a directory of devices"):
        made("02-four-patterns.icf", CommandLineChanges(mapping={"D:": place}))


def whole(name: str, asked: CommandLineChanges) -> Workload:
    return made(name, asked)[0].workload


@pytest.mark.parametrize("written", ['1: "VIRTUAL DISK"', "1:", "1"])
def test_a_drive_is_mapped_by_any_of_its_names(written: str) -> None:
    assert (
        whole("01-normal.icf", CommandLineChanges(mapping={written: "/dev/x"}))
        .jobs[0]
        .placement.targets[0]
        .path
        == "/dev/x"
    )


def test_a_target_in_place_of_all() -> None:
    found = made("05-targets-linear.icf", CommandLineChanges(targets=("/dev/x",)))
    assert [[job.placement.targets[0].path for job in run.workload.jobs] for run in found] == [
        ["/dev/x", "/dev/x"]
    ]


def test_a_drive_without_a_map_is_told_by_line_and_name() -> None:
    with pytest.raises(InputError) as caught:
        made("01-normal.icf", CommandLineChanges())
    assert '1: "VIRTUAL DISK" is a drive of the host the file is for' in caught.value.message
    assert caught.value.where is not None
    assert caught.value.where.line == 62
    assert "--map '1:=PATH'" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (CommandLineChanges(mapping={"D:": "/dev/x"}), "no worker uses 'D:'"),
        (CommandLineChanges(targets=("/dev/x", "/dev/x")), "given twice"),
    ],
)
def test_what_has_no_effect_on_the_targets(asked: CommandLineChanges, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made("01-normal.icf", asked)


def test_until_stopped_needs_a_runtime() -> None:
    source = text("4096,100,100,100,0,1,4096,0").replace(b"\t0 0 30", b"\t0 0 0")
    with pytest.raises(InputError, match="until someone stops"):
        runs(read_icf(source, "x"), CommandLineChanges(targets=("/x",)))
    made_anyway = runs(read_icf(source, "x"), CommandLineChanges(targets=("/x",), runtime_ns=S))
    assert made_anyway[0].workload.jobs[0].limits.runtime_ns == S


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        (["4096,100,100,100,0,1,4096,512"], RefusedError, "not supported"),
        (["4096,50,100,100,0,1,0,0", "4096,50,100,100,5,1,0,0"], RefusedError, "waits 5 ms before 1"),
    ],
)
def test_what_is_not_done_is_refused(rows: list[str], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        runs(read_icf(text(*rows), "x"), CommandLineChanges(targets=("/x",)))


def test_too_many_default_workers() -> None:
    source = text("4096,100,100,100,0,1,4096,0", more="'Default Disk Workers to Spawn\n\t100000\n")
    with pytest.raises(InputError, match="100000 workers are too many"):
        runs(read_icf(source, "x"), CommandLineChanges(targets=("/x",)))


def test_a_missing_specification_is_told_with_the_nearest() -> None:
    source = (DATA / "01-normal.icf").read_bytes().replace(b"\n\t4 KiB random read\n", b"\n\t4 KiB random\n")
    with pytest.raises(InputError, match="no access specification '4 KiB random'") as caught:
        runs(read_icf(source, "x"), CommandLineChanges(targets=("/x",)))
    assert "4 KiB random read" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("kind", "cycle", "words"),
    [
        ("CYCLE_TARGETS", "'Disk Cycling\n\t0 1 LINEAR\n", "starts at 0"),
        ("CYCLE_WORKERS", "'Worker Cycling\n\t1 0 LINEAR\n", "never end"),
        ("CYCLE_OUTSTANDING_IOS", "'Queue Depth Cycling\n\t1 8 0 EXPONENTIAL\n", "never end"),
    ],
)
def test_cycles_that_never_end(kind: str, cycle: str, words: str) -> None:
    source = text("4096,100,100,100,0,1,4096,0", more=f"{cycle}'Test Type\n\t{kind}\n")
    with pytest.raises(InputError, match=words):
        runs(read_icf(source, "x"), CommandLineChanges(targets=("/x",)))


def test_the_example_is_four_patterns_at_nine_depths_each_twice() -> None:
    example = DATA.parents[2] / "examples" / "nfs-queue-depth" / "queue-depth.icf"
    found = runs(read_icf(example.read_bytes(), example.name))
    assert len(found) == 4 * 9 * 2
    assert [run.factors["iodepth"] for run in found[:9]] == [1 << power for power in range(9)]
    assert found[9].name == f"{found[0].name} (2)"
    assert {(job.limits.runtime_ns, job.limits.ramp_ns) for run in found for job in run.workload.jobs} == {
        (600 * S, 15 * S)
    }
