"""Sweeps beside each other: by where each would be operated, and by combination."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from loadstone.api import comparing
from loadstone.screen import Screen
from tests.report.test_study_page import swept

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.in_turn
def test_sweeps_are_compared_by_where_each_would_be_operated_and_by_combination(tmp_path: Path) -> None:
    swept(tmp_path / "a", ("iodepth", (1, 2, 4, 8)))
    swept(tmp_path / "b", ("iodepth", (1, 2, 4, 8, 16)))
    found = comparing.compare(tmp_path / "a", tmp_path / "b")
    told = found.document(detect=0.05, tolerance=0.0, gated=False)
    (row,) = told["operating"]
    # The device serves four at once: no later depth gains.
    assert (row["axis"], row["of"]) == ("iodepth", {})
    assert [point["value"] for point in row["points"]] == [4, 4]
    assert [round(point["rate"], -3) for point in row["points"]] == [40_000, 40_000]
    assert {one["pattern"].rpartition(", ")[2] for one in told["matrix"]} == {
        "iodepth 1", "iodepth 2", "iodepth 4", "iodepth 8",
    }  # fmt: skip
    assert any(text.startswith("only b has ") and text.endswith(", iodepth 16") for text in told["warnings"])
    console = Screen(file=io.StringIO(), width=200, highlight=False)
    found.print(console)
    text = console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ")  # type: ignore[attr-defined]  # the StringIO above
    assert "recommended iodepth of a: 4: 40" in text
    assert "recommended iodepth of b: 4: 40" in text
    page = tmp_path / "page.html"
    found.report(page)
    html = page.read_text()
    assert html.index("Where to operate") > html.index('class="matrix')
    assert html.count('class="forest') == 2
    assert json.dumps(told)


@pytest.mark.in_turn
def test_a_comparison_of_runs_tells_no_place_to_operate(tmp_path: Path) -> None:
    swept(tmp_path / "a", ("bs", (4096, 8192)))
    swept(tmp_path / "b", ("bs", (4096, 8192)))
    told = comparing.compare(tmp_path / "a", tmp_path / "b").document(detect=0.05, tolerance=0.0, gated=False)
    assert told["operating"] == []
