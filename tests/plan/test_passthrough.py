"""Jobs of NVMe commands: what they become, and what they cannot ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import LoadstoneError
from loadstone.plan.model import BackendIoUringCmd, TargetKind
from tests.plan.conftest import GIB
from tests.plan.test_engine_agrees import check

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plan.conftest import Planner

JOB = "[a]\nfilename=/dev/ng0n1\nioengine=io_uring_cmd\ncmd_type=nvme\nruntime=1\n"


def test_a_job_becomes_commands_to_the_namespace(plan: Planner) -> None:
    found = plan(JOB + "rw=randwrite\niodepth=32\nsqthread_poll=1\nfixedbufs=0\n")
    (target,) = found.plan.targets
    assert (target.kind, target.size_bytes, target.direct) == (TargetKind.NVME, 100 * GIB, True)
    assert (target.exclusive, target.invalidate, target.advice) == (True, False, None)
    assert target.namesake is not None
    assert target.namesake.path == "/dev/nvme0n1"
    assert found.plan.workers[0].backend == BackendIoUringCmd(
        registered_files=True, fixed_buffers=False, iopoll=False, sqpoll=True
    )
    assert found.plan.streams[0].iodepth == 32
    assert any("diskstats" in note.text for note in found.notes)


@pytest.mark.parametrize(
    "more",
    [
        "",
        "rw=randrw\niodepth=8\nfsync=4\nend_fsync=1\n",
        "rw=randtrim\nhipri=1\n",
        "rw=write\nverify=crc32c\nsize=1m\n",
        "rw=write\ndirect=1\n",
    ],
)
def test_the_engine_takes_what_is_planned(plan: Planner, more: str, tmp_path: Path) -> None:
    check(plan, JOB + more, tmp_path)


def test_who_only_reads_keeps_nobody_out(plan: Planner) -> None:
    (target,) = plan(JOB).plan.targets
    assert (target.read_only, target.exclusive) == (True, False)


@pytest.mark.parametrize(
    ("text", "option", "says", "hint"),
    [
        (
            "[a]\nfilename=/dev/ng0n1\nioengine=io_uring\n",
            "ioengine",
            "takes NVMe commands only",
            "io_uring_cmd",
        ),
        ("[a]\nfilename=/dev/ng0n1\n", "filename", "not ioengine=psync", "/dev/nvme0n1"),
        ("[a]\nfilename=/dev/ng0n1\nioengine=libaio\n", "ioengine", "not ioengine=libaio", "io_uring_cmd"),
        ("[a]\nfilename=/dev/sda\nioengine=io_uring_cmd\n", "filename", "/dev/sda is not one", "/dev/ng0n1"),
        ("[a]\nfilename=/t/1g\nioengine=io_uring_cmd\n", "filename", "/t/1g is not one", "/dev/ng0n1"),
        (
            "[a]\nfilename=/dev/sda\nioengine=io_uring\ncmd_type=nvme\n",
            "cmd_type",
            "no effect",
            "io_uring_cmd",
        ),
        (JOB + "direct=0\n", "direct", "no page cache", "remove"),
        (JOB + "sync=1\nrw=write\n", "sync", "no effect", "fsync=1"),
        (JOB + "fsync_on_close=1\nrw=write\n", "fsync_on_close", "no effect", "end_fsync=1"),
        (JOB + "prioclass=1\n", "prioclass", "no effect", "no I/O priority"),
        (JOB + "prio=3\n", "prio", "no effect", "no I/O priority"),
        (
            JOB + "cmdprio_percentage=10\n",
            "cmdprio_percentage",
            "no effect with ioengine=io_uring_cmd",
            "io_uring",
        ),
        (JOB + "hipri=1\nfsync=1\nrw=write\n", "fsync", "cannot be polled for", "hipri=0"),
        (
            JOB + "bs=512\nfilename=/dev/ng0n2\n",
            "bs",
            "multiples of 4096 bytes, not 512",
            "use multiples of 4096",
        ),
        (JOB + "offset=200g\n", "offset", "past the end of /dev/ng0n1", "smaller"),
        ("[a]\nfilename=/dev/ng0n1\nioengine=io_uring_cmd\ncmd_type=scsi\n", "cmd_type", "expected nvme", ""),
        (JOB + "md_per_io_size=8\n", "md_per_io_size", "does not support", "Not supported"),
        (JOB + "ioengine=io_uring_cmf\n", "ioengine", "unknown engine", "io_uring_cmd"),
    ],
)
def test_what_is_refused(plan: Planner, text: str, option: str, says: str, hint: str) -> None:
    with pytest.raises(LoadstoneError) as caught:
        plan(text)
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "direct=0" not in (caught.value.hint or "")
    assert caught.value.where is not None
    assert caught.value.where.option == option


def test_a_range_ends_where_the_namespace_does(plan: Planner) -> None:
    found = plan(JOB + "size=200g\n").plan
    assert found.streams[0].files[0].length_bytes == 100 * GIB
