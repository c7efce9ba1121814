"""Errors nobody catches end as one line, in a process of its own as the program is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import loadstone

THREAD = "import threading\nt = threading.Thread(target=fail, name='monitors')\nt.start()\nt.join()\n"
GENERATOR = """
def one():
    try:
        yield
    finally:
        fail()
next(one())
"""
FINALIZER = "class One:\n    def __del__(self):\n        fail()\nOne()\n"


def ended(text: str, error: str, **environment: str) -> tuple[int, str]:
    script = f"from loadstone import uncaught\nuncaught.install()\ndef fail():\n    raise {error}\n{text}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(loadstone.__file__).parents[1]), **environment},
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (THREAD, "monitors"),
        (GENERATOR, "putting one away"),
        (FINALIZER, "putting One.__del__ away"),
    ],
)
@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("MemoryError", "out of memory"),
        ("OSError(28, 'No space left on device', 'b/x')", "b/x: No space left on device"),
        ("KeyError('a\\nb')", r"KeyError: 'a\nb'"),
    ],
)
def test_what_fails_in_the_background_is_one_line(text: str, where: str, error: str, what: str) -> None:
    told = f"failed in the background: {where}: {what}; what was measured may be incomplete"
    assert ended(text, error) == (0, f"loadstone: warning: {told}\n")


def test_the_same_is_told_once() -> None:
    code, told = ended(f"for _ in range(3):\n    {THREAD.replace(chr(10), chr(10) + '    ')}", "MemoryError")
    assert (code, len(told.splitlines())) == (0, 1)


MISTAKE = "loadstone: a mistake in the program: KeyError: 'x'\nhint: report this line, and what you typed\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [("KeyError('x')", MISTAKE), ("MemoryError", "loadstone: out of memory\n"), ("SystemExit(1)", "")],
)
def test_what_ends_the_program_is_told_without_a_traceback(error: str, told: str) -> None:
    assert ended("fail()\n", error) == (1, told)


def test_the_place_of_a_mistake_is_told_and_the_traceback_on_request() -> None:
    text = "from loadstone import units\nunits.digits(None)\n"
    code, told = ended(text, "ValueError")
    assert code == 1
    assert "TypeError" in told
    assert "(units.py, line " in told
    assert "Traceback" in ended(text, "ValueError", LOADSTONE_TRACEBACK="1")[1]
