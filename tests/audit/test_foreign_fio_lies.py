"""Results of fio that were believed or accused: what its JSON tells of flushes, disks and targets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit.judge import judge
from tests.audit.foreign_files import KIB, MIB, cases, document

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.audit.case import Case
    from loadstone.verdict import Verdict

GIB = 1 << 30
SECONDS = 4


def of_fio(
    tmp_path: Path,
    options: dict[str, str],
    *,
    op: str = "read",
    block_bytes: int = 4 * KIB,
    bytes_: int = GIB,
    latency_ns: float | None = None,
    disk: tuple[int, int] | None = (0, 0),
    ios: int | None = None,
    **job: Any,
) -> Case:
    """Read what fio 3.33 would print of one job of four seconds; `disk`: I/Os of vda, reads and writes."""
    told = document()
    one = told["jobs"][0]
    ios = ios if ios is not None else bytes_ // block_bytes
    depth = int(options.get("iodepth", "1"))
    mean_ns = latency_ns if latency_ns is not None else 1e9 * SECONDS * depth / ios
    done = one["read"] | {
        "io_bytes": bytes_, "io_kbytes": bytes_ // KIB, "bw_bytes": bytes_ // SECONDS,
        "bw": bytes_ // SECONDS // KIB, "iops": ios / SECONDS, "runtime": 1000 * SECONDS, "total_ios": ios,
        "lat_ns": one["read"]["lat_ns"] | {"min": mean_ns / 2, "mean": mean_ns, "max": 9 * mean_ns, "N": ios},
        "clat_ns": one["read"]["clat_ns"] | {"mean": mean_ns, "N": ios},
        "iops_samples": 8, "iops_mean": ios / SECONDS,
    }  # fmt: skip
    nothing = one["write"] | {"io_bytes": 0, "bw_bytes": 0, "iops": 0, "runtime": 0, "total_ios": 0}
    one |= {
        "read": nothing,
        "write": nothing,
        op: done,
        "job options": options,
        "job_runtime": 1000 * SECONDS,
    }
    told["jobs"] = [one | job]
    told["global options"] = {}
    reads, writes = disk or (0, 0)
    told["disk_util"] = [
        {
            "name": "vda", "read_ios": reads, "write_ios": writes, "read_merges": 0, "write_merges": 0,
            "read_ticks": reads, "write_ticks": writes, "in_queue": reads + writes, "util": 5.0,
        }
    ] if disk is not None else []  # fmt: skip
    (tmp_path / "f.json").write_text(json.dumps(told))
    (case,) = cases(tmp_path / "f.json")
    return case


def verdict(case: Case) -> Verdict:
    return judge([case]).verdict


def rules(case: Case) -> list[str]:
    return [cause.rule for cause in verdict(case).causes if cause.effect != "note"]


HOT = {"rw": "randread", "bs": "4k", "ioengine": "psync", "filename": "f", "size": "64m", "direct": "0"}


def test_reads_from_memory_are_seen_beside_the_writes_of_others(tmp_path: Path) -> None:
    """A system's disk has some writes in every second: that made all cached reads "cannot tell"."""
    assert rules(of_fio(tmp_path, HOT, disk=(20, 190))) == ["page_cache_read"]


def test_reads_that_reached_the_disk_are_not_accused_beside_the_writes_of_others(tmp_path: Path) -> None:
    direct = HOT | {"direct": "1"}
    assert not rules(of_fio(tmp_path, direct, bytes_=GIB // 8, disk=(32768, 190)))


@pytest.mark.parametrize(("reads", "seen"), [(4, True), (9000, False)])
def test_so_few_ios_of_a_disk_cannot_have_moved_so_much(tmp_path: Path, reads: int, *, seen: bool) -> None:
    """Sequential reads are read ahead, so their I/Os tell no bytes; four of them tell enough."""
    case = of_fio(
        tmp_path, HOT | {"rw": "read", "bs": "128k"}, block_bytes=128 * KIB, bytes_=11 * GIB, disk=(reads, 13)
    )
    assert ("page_cache_read" in rules(case)) == seen


def test_disks_of_this_host_say_nothing_of_a_cluster(tmp_path: Path) -> None:
    """fio counts disks of its own host: of rbd they are the system's, and its reads were "from memory"."""
    case = of_fio(tmp_path, HOT | {"ioengine": "rbd", "direct": "1"}, disk=(20, 5))
    assert case.traffic is None
    assert not rules(case)


@pytest.mark.parametrize(("ramp", "drifts"), [("5", False), ("0", True)])
def test_what_was_outstanding_at_the_end_of_a_ramp_is_no_other_workload(
    tmp_path: Path, ramp: str, *, drifts: bool
) -> None:
    """A published run at 2,048 outstanding was not valid with 90 %: it had 2,045 I/Os more by its bytes."""
    options = {"rw": "randwrite", "bs": "4k", "ioengine": "libaio", "iodepth": "2048", "direct": "1"}
    case = of_fio(tmp_path, options | {"ramp_time": ramp}, op="write", bytes_=73320 * 4096, ios=71275)
    assert ("workload_drift" in rules(case)) == drifts


FLUSHED = {"rw": "randwrite", "bs": "4k", "ioengine": "psync", "filename": "f", "size": "64m"}


@pytest.mark.parametrize("counted", [0, 1060])
def test_flushes_that_fio_timed_and_did_not_count_are_flushes(tmp_path: Path, counted: int) -> None:
    """fio 3.33 has 0 in total_ios: an honest run was told to be not valid with 95 %."""
    sync = {
        "total_ios": counted,
        "lat_ns": {"min": 9e4, "max": 2e7, "mean": 3.75e6, "stddev": 1e6, "N": 1060},
    }
    case = of_fio(
        tmp_path, FLUSHED | {"fdatasync": "1"}, op="write", bytes_=1060 * 4096, latency_ns=18_420.0,
        disk=(41, 2799), sync=sync,
    )  # fmt: skip
    assert case.flush is not None
    assert case.flush.operations == 1060
    assert not rules(case)
    assert verdict(case).kind == "measures_storage"


@pytest.mark.parametrize(("written", "kind"), [(256 * MIB, "measures_storage"), (12 * GIB, "cannot_tell")])
def test_a_flush_at_the_end_stores_what_was_not_written_over(tmp_path: Path, written: int, kind: str) -> None:
    """12 GiB into a file of 256 MiB in four seconds: what was written over was never on the disk."""
    options = FLUSHED | {"rw": "write", "bs": "1m", "size": "256m", "end_fsync": "1"}
    case = of_fio(tmp_path, options, op="write", block_bytes=MIB, bytes_=written, disk=(11, 2977))
    assert verdict(case).kind == kind


@pytest.mark.parametrize(
    ("device", "kind"), [("/dev/zram1", "cannot_tell"), ("/dev/nvme0n1", "measures_storage")]
)
def test_what_was_never_written_of_a_device_over_memory_is_not_believed(
    tmp_path: Path, device: str, kind: str
) -> None:
    options = HOT | {"direct": "1", "filename": device, "ioengine": "libaio", "iodepth": "8"}
    case = of_fio(tmp_path, options, bytes_=GIB // 8, disk=(32768, 0), latency_ns=970_000.0)
    assert verdict(case).kind == kind


def test_a_file_in_shared_memory_is_memory(tmp_path: Path) -> None:
    assert rules(of_fio(tmp_path, HOT | {"filename": "/dev/shm/f"})) == ["page_cache_read"]


def test_the_null_engine_measures_no_storage(tmp_path: Path) -> None:
    """Its I/Os end before it keeps more of them, which was told as a latency that was measured elsewhere."""
    options = HOT | {"ioengine": "null", "iodepth": "16"}
    case = of_fio(tmp_path, options, latency_ns=600.0, disk=None)
    assert rules(case) == ["own_limit"]
    assert "no storage was measured" in verdict(case).sentences
