"""Being asked on a terminal: only the path itself, typed out, is an answer."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.started import StartedProgram

from .program import PATIENCE_S, job, needs_engine

if TYPE_CHECKING:
    from pathlib import Path


def on_terminal(answer: str, *words: str, cwd: Path) -> tuple[int, str]:
    """Run with a terminal for input and talk, type `answer` when asked, return code and talk."""
    needs_engine()
    ours, theirs = pty.openpty()
    process = StartedProgram([*words], stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL, cwd=cwd)
    os.close(theirs)
    talk = b""
    typed = False
    try:
        while True:
            piece = os.read(ours, 65536)
            if not piece:
                break
            talk += piece
            if not typed and b"press Enter to stop" in talk:
                os.write(ours, answer.encode() + b"\n")
                typed = True
    except OSError:
        pass  # Linux says EIO when the other end of a terminal closes.
    finally:
        os.close(ours)
    code = process.wait(PATIENCE_S)
    assert typed, talk.decode()
    return code, talk.decode()


@pytest.mark.in_turn
@pytest.mark.parametrize(("answer", "code"), [("{path}", 0), ("yes", 2), ("", 2)])
def test_asked_on_a_terminal(tmp_path: Path, answer: str, code: int) -> None:
    path = tmp_path / "precious"
    path.write_bytes(b"precious" * 8192)
    one = job(tmp_path / "w.fio", f"[w]\nrw=write\nbs=4k\nsize=64k\nfilename={path}\n")
    found, talk = on_terminal(
        answer.format(path=path), "run", str(one), "--out", "b", "--no-report", cwd=tmp_path
    )
    assert found == code, talk
    assert "was not created by Loadstone" in talk
    assert path.read_bytes().startswith(b"precious") == (code != 0)
