"""An interrupt that comes while the program is still being read ends it with a word, not with a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

INTERRUPTED_AT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

from loadstone.cli import start
sys.meta_path.insert(0, Interrupting())
sys.argv = ["loadstone", "--version"]
sys.exit(start.main())
"""


@pytest.mark.parametrize("module", ["loadstone.cli.main", "loadstone.crash_note", "loadstone.printable"])
def test_an_interrupt_while_the_program_is_read_is_told(module: str) -> None:
    """Ctrl-C half a second after Enter, on a busy host: 40 lines of `dataclasses.py`, and no exit code."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT.format(module=module)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "loadstone: interrupted\n")


def test_without_one_it_starts_as_ever() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT.format(module="loadstone.nothing")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("loadstone ")
