"""Work that is done by helpers: what comes back, what fails, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadstone.errors import InputError, RunError
from loadstone.helpers import Helpers


def test_answers_come_from_other_processes_and_in_the_order_of_the_questions() -> None:
    with Helpers(2) as helpers:
        asked = [helpers.do(divmod, number, 7) for number in range(50)]
        pids = {helpers.do(os.getpid).result() for _ in range(8)}
        assert [one.result() for one in asked] == [divmod(number, 7) for number in range(50)]
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2


def test_what_the_work_raises_is_raised_here_and_the_helper_goes_on() -> None:
    with Helpers(1) as helpers:
        failed = helpers.do(_refuse, "no such thing")
        with pytest.raises(InputError, match="no such thing"):
            failed.result()
        assert helpers.do(abs, -3).result() == 3


def _refuse(why: str) -> None:
    raise InputError(why)


def test_what_a_library_prints_is_not_taken_for_an_answer() -> None:
    with Helpers(1) as helpers:
        assert helpers.do(os.system, "echo not an answer").result() == 0
        assert helpers.do(abs, -3).result() == 3


def test_a_helper_that_is_killed_is_told() -> None:
    with Helpers(1) as helpers, pytest.raises(RunError, match="ended with -9"):
        helpers.do(_die).result()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_closing_ends_work_that_is_still_done() -> None:
    with Helpers(1) as helpers:
        pid = helpers.do(os.getpid).result()
        sleeps = helpers.do(time.sleep, 600)
        while not sleeps.running():
            time.sleep(0.01)
    with pytest.raises(RunError):
        sleeps.result()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    """As `multiprocessing` would."""
    script = tmp_path / "mine.py"
    script.write_text(
        "from loadstone.helpers import Helpers\n"
        "print('once')\n"
        "with Helpers(1) as helpers:\n"
        "    print(helpers.do(abs, -3).result())\n"
    )
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert told.stdout.split() == ["once", "3"]


def test_helpers_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import os, time\n"
        "from loadstone.helpers import Helpers\n"
        "with Helpers(1) as helpers:\n"
        "    print(helpers.do(os.getpid).result(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        helper = int(program.stdout.readline())
        program.kill()
        # Its end closes what it holds of the program's: nothing is left to read.
        assert program.stdout.read() == ""
    for _ in range(600):
        try:
            if not Path(f"/proc/{helper}/cmdline").read_bytes():
                return
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail("the helper goes on")
