"""The completion script, sourced by a real shell, with what it asks the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.cli.app import VERBS
from loadstone.cli.options import suggestions
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from pathlib import Path

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
ASK = """
loadstone() { "$PYTHON" -m loadstone.cli.main "$@"; }
source <(loadstone completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
_loadstone
printf '%s\\n' "${COMPREPLY[@]}"
"""


def _offered(where: Path, *words: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", "loadstone", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=where,
        env={**os.environ, "PYTHON": sys.executable},
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.in_turn
@needs_bash
def test_a_shell_is_offered_verbs_workloads_files_and_parameters(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[j]\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "two\nlines").write_text("")
    assert _offered(tmp_path, "") == list(VERBS)
    assert _offered(tmp_path, "run", "") == [*sorted(catalogue.names()), "job.fio", "jobs/"]
    assert _offered(tmp_path, "curve", "jo") == ["job.fio", "jobs/"]
    assert _offered(tmp_path, "plan", "./jo") == ["./job.fio", "./jobs/"]
    assert _offered(tmp_path, "workloads", "four") == ["four-corners"]
    entry = catalogue.load("four-corners")
    assert _offered(tmp_path, "run", "four-corners", "--section", "") == [
        job.name for job in entry.workload().jobs
    ]
    parameters = catalogue.load("snia-pts-iops-like").parameters
    assert _offered(tmp_path, "run", "snia-pts-iops-like", "--set", "") == [
        f"{one.name}=" for one in parameters
    ]


def test_the_names_are_those_of_the_catalogue() -> None:
    offered = suggestions.workloads(_context(""))
    assert sorted(offered) == sorted(catalogue.names())
    for name, meaning in offered.items():
        assert meaning == catalogue.load(name).meaning


@pytest.mark.parametrize("job", ["", "nosuch", "../../etc/passwd", "/etc/passwd", "job.fio"])
def test_what_is_no_workload_has_no_parameters(job: str) -> None:
    assert suggestions.parameters(_context("", job)) == {}
    assert suggestions.sections(_context("", job)) == []


def test_a_directory_that_cannot_be_read_offers_no_files(tmp_path: Path) -> None:
    offered = suggestions.jobs_and_files(_context(f"{tmp_path}/none/x"))
    assert offered == suggestions.workloads(_context(""))


def _context(typed: str, job: str = "") -> Any:
    return SimpleNamespace(incomplete=typed, get=lambda _name: SimpleNamespace(raw=job or None))
