"""What the engine says of itself: depth it never reached, targets that cannot be polled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.plans import IO_URING, NULL, layout, plan, stream, target, worker

from .runs import arrow_rows, run

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 1 << 22
NEVER_DEEP = "were outstanding at most"


def test_a_depth_that_is_never_outstanding_is_told_once(tmp_path: Path) -> None:
    zero = target("/dev/zero", "char", 1 << 30)
    outcome = run(plan([zero], [stream(ops=20_000, iodepth=512)]), tmp_path)
    (note,) = [event for event in outcome.of("note") if NEVER_DEEP in event["text"]]
    assert "of iodepth 512" in note["text"]
    assert note["worker"] == 0


def test_a_depth_that_was_reached_or_never_needed_is_not_told(tmp_path: Path) -> None:
    zero = target("/dev/zero", "char", 1 << 30)
    streams = [stream(ops=20_000, iodepth=8), stream(ops=100, iodepth=512)]
    outcome = run(plan([zero], streams), tmp_path)
    assert not [event for event in outcome.of("note") if NEVER_DEEP in event["text"]]


def test_a_target_that_cannot_be_polled_is_an_error_that_says_so(tmp_path: Path) -> None:
    made = target(tmp_path / "data", size_bytes=SIZE, create=True, direct=True, layout=layout(SIZE))
    polled = worker(IO_URING | {"iopoll": True})
    outcome = run(plan([made], [stream(ops=500, length_bytes=SIZE)], [polled]), tmp_path)
    failures = outcome.of("io_error")
    if not failures:
        pytest.skip("this file system can be polled")
    assert failures[0]["errno"] == 95
    assert "hipri=0" in failures[0]["message"]
    assert outcome.of("stream_end")[0]["reason"] == "error"


@pytest.mark.parametrize("read_percent", [100, 0])
@pytest.mark.in_turn
def test_a_kernel_thread_can_submit(tmp_path: Path, read_percent: int) -> None:
    made = target(tmp_path / "data", size_bytes=SIZE, create=True, layout=layout(SIZE))
    polled = worker(IO_URING | {"sqpoll": True})
    one = stream(ops=5_000, length_bytes=SIZE, read_percent=read_percent, fsync_every=100)
    outcome = run(plan([made], [one], [polled]), tmp_path)
    assert outcome.of("stream_end")[0]["reason"] == "ops"
    assert (outcome.total("errors"), outcome.total("shorts")) == (0, 0)
    assert outcome.total("ops", op=0) + outcome.total("ops", op=1) >= 4_900


@pytest.mark.in_turn
def test_the_record_of_every_io_is_whole_and_bounded(tmp_path: Path) -> None:
    count = 1_500_000  # 100 MB of records, made faster than they can be written
    virtual = target("", "virtual", 1 << 30)
    outcome = run(plan([virtual], [stream(ops=count, log_ios=True)], [worker(NULL)]), tmp_path)
    assert outcome.of("end")[0]["rss_peak_bytes"] <= 1.1 * outcome.of("hello")[0]["memory_bytes"]
    offsets = arrow_rows(outcome.out / "ios.arrows", ["offset"])
    assert len(offsets) == count


def test_many_buffers_are_not_pinned_before_the_first_io(tmp_path: Path) -> None:
    made = target(tmp_path / "data", size_bytes=SIZE, create=True, direct=True, layout=layout(SIZE))
    wide = stream(ops=64, iodepth=64, block_bytes=1 << 18, length_bytes=SIZE)
    outcome = run(plan([made], [wide]), tmp_path)
    assert outcome.total("ops") == 64
    assert [event for event in outcome.of("note") if "16 MiB of buffers are not registered" in event["text"]]
