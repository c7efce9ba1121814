"""A working process that is killed: its parent says so, with the figures, and no engine is left."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from loadstone.bundle.read import Bundle
from loadstone.cli.display.live_progress import LEAVE
from tests.support.started import StartedProgram

from .program import PATIENCE_S, alive, engine_pid, finish, job, needs_engine, start, state, ticks, until

JOB = "[r]\nrw=randread\nbs=4k\nsize=4m\ntime_based\nruntime=60s\nfilename=data\nrate_iops=1k\n"


def worker_of(pid: int) -> int:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert len(found) == 1
    return int(found[0])


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGKILL, signal.SIGILL])
@pytest.mark.in_turn
def test_figures_outlive_the_working_process(tmp_path: Path, number: signal.Signals) -> None:
    running = start("run", job(tmp_path / "r.fio", JOB), "--out", "b", "--no-report", cwd=tmp_path)
    ticks(tmp_path / "b")
    engine = engine_pid(tmp_path / "b")
    os.kill(worker_of(running.pid), number)
    done = finish(running)
    assert done.code == 1, done
    assert f"the program was killed by {number.name}" in done.err
    # A CPU without AVX2 was told to be one without memory.
    assert ("polars[rtcompat]" in done.err) == (number == signal.SIGILL)
    assert "read: " in done.err
    assert "IOPS" in done.err
    assert "bundle: b" in done.err
    until(lambda: not alive(engine), "the end of the engine")


CLUSTER = Path("/proc/sys/vm/page-cluster")
"""Of no effect without swap."""
EXPERIMENT = """title = "t"
repeats = 2
runtime = "5s"
size = "1g"
[[patterns]]
name = "read"
options = { ioengine = "null", rw = "randread", bs = "4k" }
[[factors]]
name = "cluster"
control = "sysctl"
subject = "vm.page-cluster"
levels = [5, 6]
"""


@pytest.mark.root
@pytest.mark.usefixtures("host_settings")
@pytest.mark.in_turn
def test_settings_that_stay_changed_are_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_STATE", str(tmp_path / "state"))
    before = CLUSTER.read_text()
    (tmp_path / "x.toml").write_text(EXPERIMENT)
    running = start("experiment", "run", "x.toml", "--out", "e", "--no-report", cwd=tmp_path)
    try:
        # The rehearsal sets a level, too, and puts it back at once.
        runs = tmp_path / "e" / "runs"
        until(lambda: CLUSTER.read_text() != before and any(runs.glob("*")), "the first run at its level")
        os.kill(worker_of(running.pid), signal.SIGKILL)
        done = finish(running)
        assert done.code == 1, done
        assert "settings of this machine are still changed: run loadstone restore" in done.err
        assert finish(start("restore", cwd=tmp_path)).code == 0
        assert CLUSTER.read_text() == before
    finally:
        CLUSTER.write_text(before)


@pytest.mark.in_turn
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


def run_on_a_terminal(folder: Path) -> tuple[StartedProgram, IO[bytes]]:
    """A run that shows its first figures on a terminal, and that terminal."""
    needs_engine()
    held, given = pty.openpty()
    words = ["run", str(job(folder / "r.fio", JOB)), "--out", "b", "--no-report", "--no-calibration"]
    running = StartedProgram(
        words, stderr=given, cwd=folder, env={**os.environ, "TERM": "xterm"}, process_group=0
    )
    os.close(given)
    terminal = os.fdopen(held, "rb", buffering=0)
    seen(terminal, b"IOPS")
    return running, terminal


@pytest.mark.in_turn
def test_the_terminal_is_given_back_when_the_program_is_stopped_and_when_it_is_killed(tmp_path: Path) -> None:
    running, terminal = run_on_a_terminal(tmp_path)
    with terminal:
        worker = worker_of(running.pid)
        os.kill(running.pid, signal.SIGTSTP)
        seen(terminal, LEAVE.encode())
        until(lambda: state(running.pid) == state(worker) == "T", "both to be stopped")
        os.kill(running.pid, signal.SIGCONT)
        seen(terminal, b"IOPS")
        os.kill(worker, signal.SIGKILL)
        assert LEAVE.encode() in seen(terminal, b"the program was killed by SIGKILL")
    assert running.wait(PATIENCE_S) == 1


@pytest.mark.in_turn
def test_ctrl_z_stops_a_run_whose_terminal_takes_nothing(tmp_path: Path) -> None:
    """The picture was half written, and the run ended: 'a mistake in the program', 'reentrant call'."""
    running, terminal = run_on_a_terminal(tmp_path)
    with terminal:
        worker = worker_of(running.pid)
        waits = Path(f"/proc/{worker}/wchan")
        until(lambda: waits.read_text() == "wait_woken" and not has_room(running), "a full terminal")
        os.kill(running.pid, signal.SIGTSTP)
        until(lambda: state(running.pid) == state(worker) == "T", "both to be stopped")
        os.kill(running.pid, signal.SIGCONT)
        seen(terminal, b"IOPS")
        os.kill(running.pid, signal.SIGINT)
        shown = rest(terminal)
    assert running.wait(PATIENCE_S) == 130
    assert b"mistake" not in shown
    assert b"the run was stopped for" in shown


def has_room(running: StartedProgram) -> bool:
    """Tell whether the terminal of a program takes anything at once."""
    screen = os.open(f"/proc/{running.pid}/fd/2", os.O_WRONLY | os.O_NOCTTY)
    try:
        return bool(select.select([], [screen], [], 0)[1])
    finally:
        os.close(screen)


@pytest.mark.in_turn
def test_a_bundle_that_goes_with_the_next_run_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """992503: the figures of a killed `loadstone fio` named a directory that would not stay."""
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    running = start("fio", job(tmp_path / "r.fio", JOB), cwd=tmp_path)
    bundle = until(lambda: next(tmp_path.glob("t/loadstone-run-*/d/bundle"), None), "the bundle")
    ticks(bundle)
    os.kill(worker_of(running.pid), signal.SIGKILL)
    done = finish(running)
    assert done.code == 1, done
    assert f"bundle: {bundle} (the next run removes it: copy it first)" in done.err
    assert Bundle.open(bundle).samples()["ops"].sum() > 0


@pytest.mark.in_turn
def test_the_terminal_is_given_back_when_the_parent_is_killed(tmp_path: Path) -> None:
    running, terminal = run_on_a_terminal(tmp_path)
    with terminal:
        os.kill(running.pid, signal.SIGKILL)
        assert running.wait(PATIENCE_S) == -signal.SIGKILL
        assert LEAVE.encode() in rest(terminal)


def rest(terminal: IO[bytes]) -> bytes:
    """Read until nobody holds the terminal any more."""
    found = b""
    with contextlib.suppress(OSError):
        while part := terminal.read(4096):
            found += part
    return found


def seen(terminal: IO[bytes], wanted: bytes) -> bytes:
    """Read until it comes; a terminal that nobody holds any more ends that with an error."""
    found = b""
    while wanted not in found:
        found += terminal.read(4096)
    return found


def test_what_is_registered_for_the_exit_is_done_and_what_was_printed_is_out(tmp_path: Path) -> None:
    """The working process ends without taking its modules down, which nobody may notice by a loss."""
    program = f"""
import atexit, sys, tempfile
from loadstone.cli.process import supervisor

def work():
    atexit.register(lambda: print("registered"))
    held = tempfile.TemporaryDirectory(dir={str(tmp_path)!r})
    globals()["held"] = held
    print("a line that is not flushed", end="")
    return 7

sys.exit(supervisor.run(work))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "a line that is not flushedregistered\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.in_turn
def test_a_limit_on_cpu_time_that_ends_the_program_is_named() -> None:
    """Only the engine's end was held against it: a slow host used three seconds before the engine did."""
    program = "import sys\nfrom loadstone.cli.process import supervisor\nsys.exit(supervisor.run(spin))"
    spin = "def spin():\n    while True:\n        pass\n"
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -t 2; exec {sys.executable} -c "$0"', spin + program],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "it used the 2 s of CPU time that ulimit -t allows" in done.stderr
