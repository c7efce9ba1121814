"""Named procedures: their runs, what each does, and when rounds are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone.errors import InputError
from loadstone.plan.host_facts import HostFacts, TargetFacts
from loadstone.plan.model import TargetKind
from loadstone.plan.pattern import blocks_of
from loadstone.plan.resolve import resolve
from loadstone.workload import catalogue
from loadstone.workload.placement import Amount
from tests.support.realised import agrees, realised
from tests.support.work import rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.workload.catalogue import ProcedureRun

PROCEDURES = [name for name in catalogue.names() if catalogue.load(name).is_procedure]
SNIA_SHARES = (100, 95, 65, 50, 35, 5, 0)


def runs(name: str, **given: str) -> list[ProcedureRun]:
    return catalogue.load(name).runs(given)


def cells(name: str, **given: str) -> list[tuple[float, int, int]]:
    """Block size in KiB, share of reads and of random addresses of each run that measures."""
    rows = [rows_of(run.workload.jobs[0])[0] for run in runs(name, **given) if run.role == "measure"]
    return [(row.bytes / 1024, row.read_percent, row.random_percent) for row in rows]


@pytest.mark.parametrize("name", PROCEDURES)
def test_every_run_has_a_name_of_its_own_and_a_plan(name: str) -> None:
    found = runs(name)
    assert len({run.name for run in found}) == len(found) > 1 or catalogue.load(name).rounds
    here = HostFacts.here()
    known = {"/dev/drive": TargetFacts(TargetKind.BLOCK, size_bytes=1 << 40)}
    host = HostFacts(cpus=here.cpus, memory_bytes=64 << 30, known=known)
    for run in found:
        assert resolve(run.workload.with_targets(["/dev/drive"]), host=host).plan.streams


def test_snia_iops_is_56_cells_after_twice_the_capacity() -> None:
    blocks = (1024, 128, 64, 32, 16, 8, 4, 0.5)
    assert cells("snia-pts-iops-like") == [(kib, read, 100) for kib in blocks for read in SNIA_SHARES]
    first = runs("snia-pts-iops-like")[0]
    assert first.role == "prepare"
    (job,) = first.workload.jobs
    assert (blocks_of(job).mix.rw, job.limits.loops, blocks_of(job).sizes.bs[1]) == (
        "write",
        2,
        blocks_of(job).sizes.bs[0],
    )
    assert blocks_of(job).sizes.bs[0] is not None
    assert blocks_of(job).sizes.bs[0].model_dump()["bytes"] == 128 << 10
    rounds = catalogue.load("snia-pts-iops-like").rounds
    assert rounds is not None
    assert (rounds.most, rounds.tracks, rounds.quantity) == (25, "4k-0-read", "iops")


def test_the_other_tests_of_snia() -> None:
    assert cells("snia-pts-latency-like") == [
        (kib, read, 100) for kib in (8, 4, 0.5) for read in (100, 65, 0)
    ]
    assert all(
        run.workload.jobs[0].engine.iodepth == 1
        for run in runs("snia-pts-latency-like")
        if run.role == "measure"
    )
    assert cells("snia-pts-throughput-128k-like") == [(128, 100, 0), (128, 0, 0)]
    assert cells("snia-pts-throughput-1024k-like") == [(1024, 100, 0), (1024, 0, 0)]
    assert [run.role for run in runs("snia-pts-write-saturation-like")] == ["measure"]
    assert cells("snia-pts-write-saturation-like") == [(4, 0, 100)]


def test_the_easy_run() -> None:
    assert cells("hcibench-easy-run") == [
        (4, 70, 100),
        (4, 100, 100),
        (4, 0, 100),
        (8, 50, 100),
        (256, 100, 0),
        (256, 0, 0),
    ]


def test_the_log_device_writes_durably_from_4k_to_1m() -> None:
    found = runs("zfs-log-device")
    jobs = [run.workload.jobs[0] for run in found]
    assert [blocks_of(job).sizes.bs[1].model_dump()["bytes"] >> 10 for job in jobs] == [
        4 << n for n in range(9)
    ]
    assert {(blocks_of(job).mix.rw, job.durability.sync, job.engine.iodepth) for job in jobs} == {
        ("write", "dsync", 1)
    }
    assert [run.factors["block"] for run in found][:2] == ["4k", "8k"]


def test_a_loop_takes_other_values() -> None:
    assert [run.name for run in runs("zfs-log-device", block="8k, 24k")] == ["block=8k", "block=24k"]


def test_the_matrix_leaves_out_records_that_do_not_fit() -> None:
    found = [(run.factors["file"], run.factors["record"]) for run in runs("iozone-matrix-like")]
    assert len(found) == 20
    found = [
        (run.factors["file"], run.factors["record"])
        for run in runs("iozone-matrix-like", file="64k,1m", record="4k,256k")
    ]
    assert found == [("64k", "4k"), ("1m", "4k"), ("1m", "256k")]
    (run, *_) = runs("iozone-matrix-like")
    assert [job.name for job in run.workload.jobs] == [
        "write",
        "rewrite",
        "read",
        "reread",
        "random-read",
        "random-write",
        "backward-read",
        "record-rewrite",
        "strided-read",
    ]


def test_the_ramp_asks_for_shares_of_the_bsus() -> None:
    """50 I/Os a second for each BSU, at 100, 95, 90, 80, 50 and 10 %."""
    asked = [
        sum(
            (hz or 0) * (job.schedule.numjobs or 1)
            for job in run.workload.jobs
            for hz in job.pacing.rate_iops
        )
        for run in runs("spc-1-like-ramp", bsu="4")
    ]
    assert asked == pytest.approx([200 * share for share in (1, 0.95, 0.9, 0.8, 0.5, 0.1)])


def test_what_a_run_sets_cannot_be_set() -> None:
    with pytest.raises(InputError, match="the runs of hcibench-easy-run set read themselves"):
        runs("hcibench-easy-run", read="50")
    with pytest.raises(InputError, match="no parameter 'deep'"):
        runs("hcibench-easy-run", deep="50")


@pytest.mark.in_turn
@pytest.mark.parametrize("index", range(6))
def test_a_cell_does_what_it_says(index: int, tmp_path: Path) -> None:
    run = runs("hcibench-easy-run")[index]
    kib, read, random = cells("hcibench-easy-run")[index]
    ios = realised(run.workload, tmp_path, size=Amount(bytes=1 << 44), ops=10_000)
    counts = {(row[0], row[1]): row[2] for row in ios.group_by("op", "bytes").len().iter_rows()}
    assert agrees(counts, {(0, kib * 1024): read, (1, kib * 1024): 100 - read})
    ends = set((ios["offset"] + ios["bytes"]).to_list())
    follows = ios.select(pl.col("offset").is_in(ends).sum()).item()
    assert 100 * follows / ios.height == pytest.approx(100 - random, abs=1)


@pytest.mark.in_turn
def test_a_cross_stimulus_is_sequential_random_and_sequential_again(tmp_path: Path) -> None:
    workload = catalogue.load("snia-pts-cross-stimulus-recovery-like").workload({"random": "5400"})
    assert [(job.name, job.limits.runtime_ns, job.schedule.stonewall) for job in workload.jobs] == [
        ("sequential-before", 8 * 3600 * 10**9, None),
        ("random", 5400 * 10**9, True),
        ("sequential-after", 8 * 3600 * 10**9, True),
    ]
    assert all(job.limits.time_based and job.engine.direct for job in workload.jobs)
    blocks, mib, ops = 4096, 1 << 20, 3_000
    ios = realised(workload, tmp_path, size=Amount(bytes=blocks * mib), ops=ops).sort(
        "t_ns", maintain_order=True
    )
    # One after the other, writes alone, each with its size.
    assert [
        (job, op, size)
        for job, op, size in ios.group_by("job", "op", "bytes", maintain_order=True)
        .len()
        .select("job", "op", "bytes")
        .iter_rows()
    ] == [("sequential-before", 1, mib), ("random", 1, 8192), ("sequential-after", 1, mib)]
    assert ios["job"].rle().struct.field("len").to_list() == [ops] * 3
    for job in ("sequential-before", "sequential-after"):
        offsets = sorted(ios.filter(pl.col("job") == job)["offset"].to_list())
        assert offsets == [number * mib for number in range(ops)]
    random = ios.filter(pl.col("job") == "random")["offset"]
    assert (random % 8192 == 0).all()
    # As many in each quarter of the target as chance allows.
    counts = dict((random // (blocks * mib // 4)).value_counts().iter_rows())
    assert agrees(counts, dict.fromkeys(range(4), 1.0))


@pytest.mark.in_turn
def test_host_idle_recovery_is_bursts_with_ever_longer_rests(tmp_path: Path) -> None:
    found = runs("snia-pts-host-idle-recovery-like")
    assert [run.role for run in found] == ["prepare"] + ["measure"] * 11
    assert [run.name for run in found[1:]] == [
        "baseline",
        *(name for wait in (5, 10, 15, 25, 50) for name in (f"wait-{wait}", f"baseline-after-wait-{wait}")),
    ]
    bursts = [run.workload.jobs[0] for run in found if run.name.startswith("wait")]
    for job, wait in zip(bursts, (5, 10, 15, 25, 50), strict=True):
        assert (job.pacing.thinktime_ns, job.pacing.thinktime_iotime_ns) == (wait * 10**9, 5 * 10**9)
        assert job.limits.runtime_ns == 360 * (5 + wait) * 10**9
    # Two bursts of five seconds and the beginning of a third, ten seconds apart.
    run = next(run for run in found if run.name == "wait-10")
    slow = run.workload.model_copy(
        update={"jobs": tuple(job.changed({"engine.iodepth": 1}) for job in run.workload.jobs)}
    )
    ios = realised(slow, tmp_path, size=Amount(bytes=1 << 34), seconds=32.0)
    ends = ios.sort("t_ns")["t_ns"].to_numpy() / 1e9
    gaps = [(ends[at], ends[at + 1]) for at in (ends[1:] - ends[:-1] > 0.1).nonzero()[0]]
    assert [(round(before, 3), round(after, 3)) for before, after in gaps] == [(5.0, 15.0), (20.0, 30.0)]
    assert set(ios["bytes"].to_list()) == {4096}
    assert set(ios["op"].to_list()) == {1}


@pytest.mark.in_turn
def test_the_tests_of_a_matrix_go_where_they_should(tmp_path: Path) -> None:
    """16 records of 4 KiB: forwards, backwards, one of them again and again."""
    (run,) = runs("iozone-matrix-like", file="64k", record="4k")
    ios = realised(run.workload, tmp_path, size=Amount(bytes=64 << 10), ops=16)

    def places(job: str) -> list[int]:
        mine = ios.filter((pl.col("job") == job) & (pl.col("op") < 3)).sort("t_ns", maintain_order=True)
        return [offset >> 12 for offset in mine["offset"].to_list()]

    forwards = list(range(16))
    for job in ("write", "rewrite", "read", "reread"):
        assert places(job) == forwards, job
    # As with fio's negative offset, the first is one record below the last.
    assert places("backward-read")[:15] == forwards[-2::-1]
    assert places("record-rewrite") == [0] * 16
    assert sorted(places("random-read")) == sorted(places("random-write")) == forwards
    assert places("random-read") != forwards
