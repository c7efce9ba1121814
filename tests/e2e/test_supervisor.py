"""A working process that is killed: its parent says so, with the figures, and no engine is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .program import alive, engine_pid, finish, job, start, ticks, until

JOB = "[r]\nrw=randread\nbs=4k\nsize=4m\ntime_based\nruntime=60s\nfilename=data\nrate_iops=1k\n"


def worker_of(pid: int) -> int:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(found) == 1
    return int(found[0])


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGKILL])
def test_figures_outlive_the_working_process(tmp_path: Path, number: signal.Signals) -> None:
    running = start("run", job(tmp_path / "r.fio", JOB), "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    engine = engine_pid(tmp_path / "b")
    os.kill(worker_of(running.pid), number)
    done = finish(running)
    assert done.code == 1, done
    assert f"the program was killed by {number.name}" in done.err
    assert "read: " in done.err
    assert "IOPS" in done.err
    assert "bundle: b" in done.err
    until(lambda: not alive(engine), "the end of the engine")


def test_who_kills_the_parent_kills_the_working_process_and_the_engine(tmp_path: Path) -> None:
    running = start("run", job(tmp_path / "r.fio", JOB), "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    engine, worker = engine_pid(tmp_path / "b"), worker_of(running.pid)
    running.kill()
    finish(running)
    until(lambda: not alive(worker) and not alive(engine), "the end of both")


def test_a_signal_before_there_is_a_run_ends_both_by_it(tmp_path: Path) -> None:
    running = start("run", "-", cwd=tmp_path)
    worker = until(lambda: worker_or_none(running.pid), "the working process")
    os.kill(running.pid, signal.SIGTERM)
    done = finish(running)
    assert done.code in (-signal.SIGTERM, 2), done
    until(lambda: not alive(worker), "the end of the working process")


def worker_or_none(pid: int) -> int | None:
    try:
        return worker_of(pid)
    except (OSError, AssertionError):
        return None
