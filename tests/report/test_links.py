"""Every link of every kind of page leads to something that exists; of studies see test_study_page.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.api import exporting
from loadstone.cli.main import main
from tests.support import links, runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.in_turn
def test_a_run_a_comparison_and_other_results_have_no_dead_link(tmp_path: Path) -> None:
    sides = [
        str(runs.make(tmp_path / f"{name} #1%", MadeJob("a"), seed=at).path) for at, name in enumerate("ab")
    ]
    pages = {
        "run.html": ["report", sides[0]],
        "results.html": ["report", str(tmp_path)],
        "comparison.html": ["compare", *sides],
    }
    for name, words in pages.items():
        assert main([*words, "-o", str(tmp_path / name)]) == 0
        assert links.dead(tmp_path / name) == []


@pytest.mark.in_turn
def test_pages_as_vdbench_writes_them_have_no_dead_link(tmp_path: Path) -> None:
    made = runs.make(tmp_path / "run", MadeJob("a#1%"), MadeJob("b c"))
    exporting.write(made.path, "vdbench", tmp_path / "out")
    pages = sorted((tmp_path / "out").glob("*.html"))
    assert len(pages) > 10
    assert [link for page in pages for link in links.dead(page)] == []
    assert sum(len(links.links(page)) for page in pages) > 10


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(
        '<a href="none.html">x</a><a href="#y">y</a><i id="z"></i><b id="z"></b><a href="#z">z</a>'
    )
    assert links.dead(page) == ["none.html", "#y", "#z"]
