"""Work in a child that can be left behind: answers, errors, questions, and no answer at all."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadstone import process_state
from loadstone.errors import RefusedError, RunError, Where
from loadstone.path import child
from loadstone.path.child import NoAnswerError, answering, ask_parent, run_in_child
from tests.engine.hanging import hanging_file, missing


def test_what_it_returns_comes_back_and_what_it_changes_does_not() -> None:
    kept: list[int] = []

    def work() -> tuple[int, list[int]]:
        kept.append(1)
        return os.getpid(), kept

    pid, there = run_in_child(work, doing="x")
    assert pid != os.getpid()
    assert (there, kept) == ([1], [])


def test_an_error_comes_back_whole() -> None:
    def refuse() -> None:
        raise RefusedError("no", where=Where("a", 3), hint="yes")

    with pytest.raises(RefusedError) as caught:
        run_in_child(refuse, doing="x")
    assert (str(caught.value), caught.value.message, caught.value.hint) == ("a:3: no", "no", "yes")


def test_what_vanished_is_told_with_what_was_done(tmp_path: Path) -> None:
    """A directory that went while a Plan was made came out as a bare `FileNotFoundError`."""
    with pytest.raises(RunError) as caught:
        run_in_child((tmp_path / "gone").stat, doing="looking at the targets of a")
    assert caught.value.message == f"looking at the targets of a: {tmp_path}/gone: No such file or directory"
    assert caught.value.hint


def test_an_error_that_cannot_travel_is_told_in_words() -> None:
    class OddError(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

    def fail() -> None:
        raise OddError(1, 2)

    with pytest.raises(RunError, match="OddError: 1 and 2"):
        run_in_child(fail, doing="x")


def test_it_asks_through_the_parent() -> None:
    mine = os.getpid()

    def ask(word: str) -> str:
        assert os.getpid() == mine
        return word[::-1]

    with answering(ask):
        assert run_in_child(lambda: ask_parent(ask, "abc"), doing="x") == "cba"


def test_a_child_that_is_killed_is_told() -> None:
    with pytest.raises(RunError, match="counting: the process that did it was killed by SIGKILL"):
        run_in_child(lambda: os.kill(os.getpid(), signal.SIGKILL), doing="counting")


def test_a_slow_child_that_goes_on_is_waited_for() -> None:
    def work() -> str:
        for _ in range(20):
            time.sleep(0.1)
        return "done"

    assert run_in_child(work, doing="x", silent_s=0.6) == "done"


def test_a_silent_child_is_ended_and_told() -> None:
    with pytest.raises(NoAnswerError, match=r"looking at /dev/sdx: no answer for \d s$"):
        run_in_child(lambda: time.sleep(60), doing="looking at /dev/sdx", silent_s=0.5)
    assert child._left == []


def test_a_killed_process_that_ends_late_is_not_left_behind() -> None:
    """Found on a host where twenty processes wanted two CPUs: it was said to wait in the kernel."""
    pid = os.fork()
    if pid == 0:
        time.sleep(0.5)
        os._exit(0)
    assert process_state.killed_ends(pid)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.in_turn
def test_one_that_waits_for_a_cpu_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found on a host where fifty processes wanted two CPUs: its storage was said not to answer."""
    monkeypatch.setattr(process_state, "progress", lambda _: ("it got no CPU",))

    def compute() -> str:
        end_s = time.monotonic() + 1.5
        while time.monotonic() < end_s:
            pass
        return "done"

    assert run_in_child(compute, doing="looking", silent_s=0.6) == "done"
    with pytest.raises(NoAnswerError, match="looking: no answer for"):
        run_in_child(lambda: time.sleep(60), doing="looking", silent_s=0.6)


def test_who_waits_may_give_up_at_once() -> None:
    with pytest.raises(NoAnswerError):
        run_in_child(lambda: time.sleep(60), doing="x", give_up=lambda: True)


@pytest.mark.in_turn
def test_it_holds_nothing_of_ours() -> None:
    reader, writer = os.pipe()
    try:
        held = run_in_child(
            lambda: [str(Path(f"/proc/self/fd/{n}").readlink()) for n in (0, 1, 2)], doing="x"
        )
        assert held == ["/dev/null"] * 3
        assert not run_in_child(lambda: Path(f"/proc/self/fd/{writer}").exists(), doing="x")
        assert run_in_child(lambda: os.getsid(0), doing="x") != os.getsid(0)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.root
@pytest.mark.skipif(missing() is not None, reason=f"no hanging file: {missing()}")
@pytest.mark.in_turn
def test_one_that_nothing_can_kill_is_left_behind_and_we_end(tmp_path: Path) -> None:
    """The server has taken the read and never answers: the reader is in state D, deaf to SIGKILL."""
    program = f"""
import os, sys
from loadstone.path import child
from loadstone.path.child import NoAnswerError, run_in_child
def read():
    with open({str(tmp_path / "file")!r}, "rb", buffering=0) as file:
        while True:
            file.read(4096)
            file.seek(0)
try:
    run_in_child(read, doing="reading", silent_s=1.0)
except NoAnswerError as error:
    print(error, len(child._left))
"""
    with hanging_file(tmp_path / "file", 1 << 20, good_reads=5, read_on=True):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
        )
    assert "waits in the kernel for it and is left behind" in done.stdout, done
    assert done.stdout.endswith(" 1\n")
    assert done.returncode == 0


@pytest.mark.parametrize("left", [0, 2], ids=["for the pipe", "for the child"])
def test_limits_that_leave_no_file_are_told(left: int) -> None:
    """Found under `ulimit -n 8`: the child ended without an answer, and nobody said why."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ours = {int(name) for name in os.listdir("/proc/self/fd")}  # noqa: PTH208 # numbers, no paths
    free = [number for number in range(max(ours) + 4) if number not in ours]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[left], hard))
        with pytest.raises(RunError, match=r"looking: .*Too many open files") as told:
            run_in_child(lambda: None, doing="looking")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "ulimit -n" in str(told.value.hint)


def test_limits_that_leave_no_process_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(RunError, match="no process can be started") as caught:
        run_in_child(lambda: 1, doing="looking")
    assert "ulimit -u" in str(caught.value.hint)
