"""Targets that are closed and opened again: who can, with what it goes together, and what is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.requested_ops import requested
from loadstone.bundle.layout import OPS
from loadstone.errors import RefusedError
from loadstone.plan.model import BackendIoUring, Connection
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import resolve
from tests.plan.conftest import read

if TYPE_CHECKING:
    from loadstone.plan.host_facts import HostFacts
    from loadstone.plan.resolve import Resolution

TEXT = """[a]
size=1m
filename=/t/1g
ioengine={engine}
direct=1
iodepth=4
{more}[b]
filename=/t/1g
iodepth=4
direct=1
"""


def connected(host: HostFacts, engine: str = "io_uring", more: str = "") -> Resolution:
    """The Plan of two jobs, of which the first is opened again after 7 I/Os."""
    text = TEXT.format(engine=engine, more=more)
    workload = read(text)
    first, *others = workload.jobs
    again = first.changed({"engine.ios_per_connection": 7})
    workload = workload.model_copy(update={"jobs": (again, *others)})
    return resolve(workload, host=host, options=ResolveOptions(base_directory="/t"))


def test_it_has_a_thread_and_a_descriptor_of_its_own(host: HostFacts) -> None:
    plan = connected(host).plan
    assert [stream.connection for stream in plan.streams] == [Connection(ios=7), None]
    assert plan.streams[0].worker != plan.streams[1].worker
    registered = [
        backend.registered_files
        for backend in (plan.workers[stream.worker].backend for stream in plan.streams)
        if isinstance(backend, BackendIoUring)
    ]
    assert registered == [False, True]


@pytest.mark.parametrize(
    ("engine", "more", "words"),
    [
        ("null", "", "ioengine=null opens no target again"),
        ("mmap", "direct=0\n", "ioengine=mmap opens no target again"),
        ("io_uring", "latency_target=5ms\nlatency_window=1s\n", "the search for a depth needs it open"),
        ("io_uring", "rw=write\nverify=crc32c\n", "verification needs it open"),
        ("io_uring", "fsync_on_close=1\nrw=write\n", "an fsync on close needs it open"),
        ("io_uring", "filename=/t/1g:/t/tmpfs\n", "has 2 of them"),
    ],
)
def test_what_needs_it_open_all_the_time_is_refused(
    host: HostFacts, engine: str, more: str, words: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        connected(host, engine, more)
    assert words in caught.value.message
    assert caught.value.hint


def test_no_open_and_no_close_is_in_a_total(host: HostFacts) -> None:
    plan = connected(host).plan
    counted = {OPS[op] for ops in requested(plan).values() for op in ops}
    assert counted == {"read", "write", "trim"}
