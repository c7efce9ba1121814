"""Every Plan made here is one the engine accepts."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from loadstone.engine.binary import find
from tests.plan.test_trees import planned, run
from tests.plan.test_values import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plan.conftest import Planner


def checked(path: Path) -> subprocess.CompletedProcess[str]:
    """Return what the engine says of a Plan."""
    return subprocess.run([find(), "check", path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("text", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_the_engine_accepts_it(plan: Planner, text: str, tmp_path: Path) -> None:
    check(plan, text, tmp_path)


def check(plan: Planner, text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan(text).plan.model_dump_json())
    done = checked(path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("operation=read", 0),
        ("operation=read", 1),
        ("operation=write,fileio=(seq,delete),stopafter=50%", 1),
        ("rdpct=70,fileio=(random,shared),xfersize=(4k,50,64k,50),threads=64", 1),
        ("operation=mkdir,fileselect=random", 1),
        ("operation=create,fileselect=(sequential,once)", 1),
        ("operation=setattr,fileselect=(poisson,4),threads=200", 1),
        ("operation=access", 1),
    ],
)
def test_the_engine_accepts_work_in_trees(words: str, number: int, tmp_path: Path) -> None:
    fsd = "fsd=f,anchor=/t/a,depth=2,width=30,files=100,sizes=(16k,50,64k,50),openflags=o_direct\n"
    made = planned(run(words, "format=restart", fsd=fsd), number=number)
    path = tmp_path / "plan.json"
    path.write_text(made.plan.model_dump_json())
    done = checked(path)
    assert done.returncode == 0, done.stdout + done.stderr
