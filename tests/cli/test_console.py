"""What is said while work goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.cli.display import console
from loadstone.errors import Where
from loadstone.workload.model import Note

if TYPE_CHECKING:
    import pytest


def test_further_lines_of_a_message_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("run a: no host may write here\n  h1: /dev/sda is mounted")
    assert capsys.readouterr().err == "run a: no host may write here\n  h1: /dev/sda is mounted\n"


def test_an_end_of_line_in_a_name_makes_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("run a\nexit code 0")
    assert capsys.readouterr().err == "run a\\nexit code 0\n"


def test_what_is_said_of_many_jobs_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    places = [Where("a.fio", line=line, option="iodepth") for line in (3, 9, 12)]
    said = [Note(where=place, text="mind this", kind="info") for place in places]
    console.notes([*said, Note(where=None, text="done so", kind="changed")])
    assert capsys.readouterr().err == "changed: done so\ninfo: a.fio:3: iodepth and 2 more: mind this\n"
