"""The page and the terminal's lines of a run on several hosts, in phases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.hosts.host_state import notes_of_hosts
from loadstone.report.run import answer, hosts, page, path_chart
from tests.hosts.test_run import JOB, run

if TYPE_CHECKING:
    from pathlib import Path


PHASES = JOB + "[large]\nstonewall\nrw=read\nbs=64k\nio_size=1m\n"


@pytest.mark.in_turn
def test_hosts_are_told_phase_by_phase_with_their_names_and_data_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 4 KiB random reads and 64 KiB sequential ones each host had one mean over both."""
    assert run(tmp_path, text=PHASES) == 0
    told = capsys.readouterr().out
    # Two clones read two MiB each, in blocks of 4 KiB; then one reads one MiB, in blocks of 64.
    assert re.findall(r"^(?:on )(h\d · \w+)  +read", told, re.MULTILINE) == [
        "h1 · readers",
        "h2 · readers",
        "h1 · large",
        "h2 · large",
    ]
    made = summarise(Bundle.open(tmp_path / "out"))
    figures = {name: total.data for name, total in answer.by_phase(made, "host")}
    operations = {name: data.operations for name, data in figures.items() if data is not None}
    assert operations == {"h1 · readers": 1024, "h2 · readers": 1024, "h1 · large": 16, "h2 · large": 16}
    html = page.render(made)
    assert "2 hosts: h1, h2" in html
    assert re.findall(r"<summary>of (\w+)</summary>", html) == ["h1", "h2"]
    titles = [spec["title"]["text"] for spec in path_chart.of_hosts(hosts.paths(made)) if spec is not None]
    assert titles == ["Data path of h1"] * 2 + ["Data path of h2"] * 2


class _NotesOfHost:
    def __init__(self, *texts: str) -> None:
        self.notes = [{"text": text} for text in texts]


def test_a_note_names_each_host_once() -> None:
    """Seen: `client-a, client-a, client-b, client-b: iodepth_batch is not set`."""
    said = notes_of_hosts({"a": _NotesOfHost("all", "all", "some", "some"), "b": _NotesOfHost("all")})  # type: ignore[dict-item] # only notes are read
    assert [note["text"] for note in said] == ["all", "a: some"]
