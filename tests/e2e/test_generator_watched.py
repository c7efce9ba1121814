"""The load generator watches itself: its own stops are found, told and kept out; flushes are I/Os."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import engine_pid, finish, job, kinds, needs_engine, run, start, ticks

if TYPE_CHECKING:
    from pathlib import Path

STOPPED_S = 0.8
PACED = """
[j]
ioengine=io_uring
filename=data
size=8m
rw=randread
bs=4k
rate_iops=200
time_based=1
runtime=10
"""
FLUSHING = """
[j]
ioengine=psync
filename=data
size=1m
rw=randwrite
bs=4k
fsync=1
number_ios=200
"""


@pytest.mark.in_turn
def test_a_stopped_engine_is_told_and_kept_out_of_the_latency(tmp_path: Path) -> None:
    needs_engine()
    words = ("run", job(tmp_path / "j.fio", PACED), "--out", "b", "--no-progress", "--json")
    process = start(*words, cwd=tmp_path)
    ticks(tmp_path / "b", 8)
    pid = engine_pid(tmp_path / "b")
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    was_over = "stream_end" in kinds(tmp_path / "b")
    os.kill(pid, signal.SIGCONT)
    result = finish(process).document()
    if was_over:
        pytest.skip("on this busy host the load had ended before its engine was stopped")
    events = [json.loads(line) for line in (tmp_path / "b" / "events.jsonl").read_text().splitlines()]
    longest = max((one["stopped_ns"] for one in events if one["type"] == "stopped"), default=0)
    assert longest == pytest.approx(STOPPED_S * 1e9, rel=0.3)
    cause = next(one for one in result["verdict"]["causes"] if one["rule"] == "generator_stopped")
    assert cause["evidence"]["left_out"] == "yes"
    assert any("stood still" in note["text"] for note in result["notes"])
    assert result["jobs"][0]["clat_ns"]["max"] < STOPPED_S * 1e9 / 2
    assert result["jobs"][0]["measured_s"] < 10.0 - STOPPED_S / 2


@pytest.mark.in_turn
def test_a_commit_is_a_write_and_its_flush(tmp_path: Path) -> None:
    needs_engine()
    done = run("run", job(tmp_path / "j.fio", FLUSHING), "--no-progress", "--json", cwd=tmp_path)
    line = done.document()["jobs"][0]
    # As in fio, a flush is made before the next write: there is none after the last.
    assert (line["write"]["operations"], line["sync"]["operations"]) == (200, 199)
    both = line["write"]["latency_ns"]["mean"] + line["sync"]["latency_ns"]["mean"]
    assert line["commit_ns"] == pytest.approx(both)
