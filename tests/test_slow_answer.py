"""What is waited for is said while it is waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from loadstone import crash_note, input_file, process_state, slow_answer

if TYPE_CHECKING:
    from pathlib import Path


def test_an_input_that_is_late_is_a_warning_for_who_uses_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_answer, "SILENT_S", 0.05)
    monkeypatch.setattr(crash_note, "_page", None)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb") as out:
            time.sleep(0.5)
            out.write(b"[a]\n")

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.warns(RuntimeWarning, match=f"{pipe} has not answered for 0.05 s: still waiting"):
        assert input_file.read(pipe, "job file") == b"[a]\n"
    writer.join()


def test_a_process_tells_by_its_system_call_which_name_it_waits_for(tmp_path: Path) -> None:
    """Opening a pipe that nobody writes into waits, as anything does on storage that hangs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'rb')"]) as waiting:
        try:
            end_s = time.monotonic() + 30
            while (found := process_state.waited_for(waiting.pid)) != str(pipe):
                assert time.monotonic() < end_s, found
                time.sleep(0.02)
            assert waiting.pid in process_state.forks(os.getpid())
        finally:
            waiting.kill()


def test_waiting_for_a_pipe_without_a_name_is_nothing_unusual() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as waiting:
        try:
            end_s = time.monotonic() + 30
            while process_state.state(waiting.pid) != "S" and time.monotonic() < end_s:
                time.sleep(0.02)
            time.sleep(0.3)
            assert process_state.waited_for(waiting.pid) == ""
        finally:
            waiting.kill()
