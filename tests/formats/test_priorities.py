"""fio's options for I/O priorities, and what of them reaches a Plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadstone.errors import LoadstoneError
from loadstone.formats.fio import ReadOptions, TextSource, read_jobfiles
from loadstone.plan.host_facts import HostFacts, TargetFacts
from loadstone.plan.model import Plan, TargetKind
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve

RING = "[a]\nfilename=/t/1g\nioengine=io_uring\nrw=randrw\n"
HOST = HostFacts(
    cpus=(0, 1),
    memory_bytes=8 << 30,
    known={
        "/t/1g": TargetFacts(TargetKind.FILE, size_bytes=1 << 30, allocated_bytes=1 << 30),
        "/t/tmpfs": TargetFacts(TargetKind.FILE, size_bytes=1 << 30, allocated_bytes=1 << 30, punts=True),
    },
)


def planned(text: str, **options: object) -> Plan:
    read = read_jobfiles([TextSource(text, "job.fio", Path("/"))], options=ReadOptions(environment={}))
    asked = ResolveOptions(base_directory="/t", **options)  # type: ignore[arg-type]  # keywords of ResolveOptions
    return resolve(read, host=HOST, options=asked).plan


def shares(text: str) -> list[tuple[str, int | None, float, str]]:
    found = planned(text).streams[0].priorities
    return [(one.op, one.block_bytes, one.percent, f"{one.priority:#06x}") for one in found]


def refusal(text: str) -> LoadstoneError:
    with pytest.raises(LoadstoneError) as caught:
        planned(text)
    return caught.value


@pytest.mark.parametrize(
    ("options", "priority"),
    [
        ("", 0),
        ("prio=0\n", 0x4000),
        ("prio=7\n", 0x4007),
        ("prioclass=1\n", 0x2000),
        ("prioclass=3\nprio=2\n", 0x6002),
        ("prioclass=2\npriohint=1\n", 0x4008),
    ],
)
def test_the_priority_of_a_job_is_that_of_its_threads(options: str, priority: int) -> None:
    found = planned(RING + options)
    assert [worker.io_priority for worker in found.workers] == [priority]
    assert found.streams[0].priorities == ()


def test_jobs_of_different_priorities_do_not_share_threads() -> None:
    both = planned(RING + "prio=1\n" + RING.replace("[a]", "[b]"))
    assert [worker.io_priority for worker in both.workers] == [0x4001, 0]
    assert [stream.worker for stream in both.streams] == [0, 1]


def test_a_share_of_the_reads_and_of_the_writes_is_of_real_time_unless_said_otherwise() -> None:
    assert shares(RING + "cmdprio_percentage=20\n") == [
        ("read", None, 20, "0x2000"),
        ("write", None, 20, "0x2000"),
    ]
    assert shares(RING + "cmdprio_percentage=20,5\ncmdprio_class=3,2\ncmdprio=1,4\ncmdprio_hint=2\n") == [
        ("read", None, 20, "0x6011"),
        ("write", None, 5, "0x4014"),
    ]
    assert shares(RING + "cmdprio_percentage=0,5\n") == [("write", None, 5, "0x2000")]
    assert shares(RING.replace("randrw", "read") + "cmdprio_percentage=9\n") == [("read", None, 9, "0x2000")]


def test_shares_by_size_are_of_the_sizes_there_are() -> None:
    sizes = "bssplit=64k/40:1m/60\ncmdprio=3\n"
    split = "cmdprio_bssplit=64k/25/1/1:64k/75/3/2:1m/0:4k/10,1m/30:64k/5/2/0/7\n"
    assert shares(RING + sizes + split) == [
        ("read", 65_536, 25, "0x2001"),
        ("read", 65_536, 75, "0x6002"),
        ("write", 1 << 20, 30, "0x2003"),
        ("write", 65_536, 5, "0x4038"),
    ]


def test_what_is_in_memory_keeps_the_ring_that_carries_priorities() -> None:
    found = planned(RING.replace("/t/1g", "/t/tmpfs") + "cmdprio_percentage=50\n")
    assert found.workers[0].backend.type == "io_uring"
    assert planned(RING.replace("/t/1g", "/t/tmpfs")).workers[0].backend.type == "psync"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RING + "cmdprio_class=1\n", "no effect without cmdprio_percentage or cmdprio_bssplit"),
        (RING + "cmdprio_percentage=5\ncmdprio_bssplit=4k/5\n", "exclude each other"),
        (RING + "cmdprio_bssplit=8k/5\n", "no I/O of that direction and size"),
        (RING.replace("randrw", "randtrim") + "cmdprio_percentage=5\n", "no I/O of that direction and size"),
        (RING + "cmdprio_bssplit=4k/60:4k/41\n", "add up to 101%, expected at most 100%"),
        (RING + "cmdprio_bssplit=4k/60/1\n", "expected size/percent or size/percent/class/level"),
        (RING + "cmdprio_bssplit=4k/60/4/0\n", "out of range, expected 0 to 3"),
        (RING + "cmdprio_percentage=101\n", "out of range, expected 0 to 100"),
        (RING + "cmdprio_percentage=1,2,3\n", "expected at most read,write"),
        (RING + "cmdprio_class=0\n", "out of range, expected 1 to 3"),
        (RING + "prioclass=4\n", "out of range, expected 0 to 3"),
        (RING + "prio=8\n", "out of range, expected 0 to 7"),
        (RING.replace("io_uring", "psync") + "cmdprio_percentage=5\n", "no effect with ioengine=psync"),
    ],
)
def test_what_cannot_be_is_refused_at_its_line(text: str, said: str) -> None:
    error = refusal(text)
    assert said in str(error)
    assert error.where is not None
    assert error.where.line is not None
    assert error.where.line > 4
