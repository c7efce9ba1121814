"""Targets that stop answering: the run ends in time, says what hangs and keeps what it had."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.plans import plan, stream, target, worker

from .hanging import hanging_file, missing
from .runs import finish, run, start

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(missing() is not None, reason=f"no hanging file: {missing()}"),
]
SIZE = 1 << 20
PSYNC = {"type": "psync"}
GRACE_NS = 500_000_000


def paused(**changes: Any) -> dict[str, Any]:
    """A stream of depth 1 that lasts half a second unless told otherwise."""
    return stream(**({"iodepth": 1, "runtime_ns": 500_000_000, "time_based": True} | changes))


def test_a_thread_stuck_in_the_kernel_is_given_up_and_its_counts_are_kept(tmp_path: Path) -> None:
    with hanging_file(tmp_path / "file", SIZE, good_reads=150) as path:
        document = plan([target(path)], [paused()], [worker(PSYNC)], grace_ns=GRACE_NS)
        outcome = run(document, tmp_path)
    (hung,) = outcome.of("hung")
    assert (hung["op"], hung["bytes"]) == ("read", 4096)
    assert hung["age_ns"] > GRACE_NS
    (end,) = outcome.of("stream_end")
    assert (end["reason"], end["issued"][0], end["completed"][0]) == ("hung", 151, 150)
    assert outcome.total("ops") == 150, "what was counted since the last interval is lost"
    assert outcome.of("end")[0]["reason"] == "failed"


def test_a_ring_that_blocks_where_it_should_not_is_given_up_too(tmp_path: Path) -> None:
    # The kernel reads this file inside the submitting call, whatever the ring asks.
    with hanging_file(tmp_path / "file", SIZE, good_reads=150) as path:
        document = plan([target(path)], [paused(iodepth=8, on_close=True)], grace_ns=GRACE_NS)
        outcome = run(document, tmp_path)
    (end,) = outcome.of("stream_end")
    assert end["reason"] == "hung"
    assert end["issued"][0] == end["completed"][0] + len(outcome.of("hung"))
    assert outcome.total("ops") == end["completed"][0] > 100


def test_in_flight_ios_of_a_ring_that_never_return_are_told(tmp_path: Path) -> None:
    losetup = shutil.which("losetup")
    if losetup is None:
        pytest.skip("there is no losetup")
    device = ""
    try:
        with hanging_file(tmp_path / "file", SIZE, good_reads=150) as path:
            attach = [losetup, "-f", "--show", "--direct-io=on", str(path)]
            done = subprocess.run(attach, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"no loop device: {done.stderr.strip()}")
            device = done.stdout.strip()
            block = target(device, "block", direct=True)
            one = paused(iodepth=8, on_close=True, runtime_ns=2_000_000_000)
            document = plan([block], [one], grace_ns=GRACE_NS)
            outcome = run(document, tmp_path)
    finally:
        if device:
            subprocess.run([losetup, "-d", device], check=True)
    assert len(outcome.of("hung")) == 8
    (end,) = outcome.of("stream_end")
    assert end["reason"] == "hung"
    assert end["t_ns"] < 30_000_000_000, "not within its time and grace"
    assert end["issued"][0] == end["completed"][0] + 8
    assert outcome.total("ops") == end["completed"][0] > 20


def test_silence_is_told_and_a_stop_ends_a_run_without_a_time_limit(tmp_path: Path) -> None:
    with hanging_file(tmp_path / "file", SIZE, good_reads=20) as path:
        endless = stream(iodepth=1, ops=1_000_000)
        process = start(plan([target(path)], [endless], [worker(PSYNC)], grace_ns=GRACE_NS), tmp_path)
        assert process.stdin is not None
        assert process.stdout is not None
        event: dict[str, Any] = {"type": ""}
        while event["type"] != "note":
            event = json.loads(process.stdout.readline())
        assert "no I/O has completed for" in event["text"]
        assert f"of {path}" in event["text"]
        process.stdin.write("stop\n")
        process.stdin.flush()
        outcome = finish(process, tmp_path)
    assert len(outcome.of("hung")) == 1
    assert outcome.total("ops") == 20


@pytest.mark.in_turn
def test_one_stuck_worker_does_not_hold_up_what_is_told_of_the_others(tmp_path: Path) -> None:
    zero = target("/dev/zero", "char", 1 << 30)
    with hanging_file(tmp_path / "file", SIZE, good_reads=20) as path:
        second = stream(
            worker=1,
            runtime_ns=3_000_000_000,
            time_based=True,
            iodepth=4,
            files=[{"target": 1, "cell": 1, "offset_bytes": 0, "length_bytes": 1 << 20}],
        )
        document = plan(
            [target(path), zero],
            [paused(runtime_ns=3_000_000_000), second],
            [worker(PSYNC), worker()],
            grace_ns=GRACE_NS,
        )
        outcome = run(document, tmp_path)
    types = [event["type"] for event in outcome.events]
    before = [
        event
        for event in outcome.events[: types.index("hung")]
        if event["type"] == "tick" and any(row["cell"] == 1 for row in event["rows"])
    ]
    assert len(before) >= 20, "the live numbers stood still"
    (end,) = [end for end in outcome.of("stream_end") if end["stream"] == 1]
    assert outcome.total("ops", cell=1) == sum(end["completed"])
    assert outcome.total("ops", cell=0) == 20
