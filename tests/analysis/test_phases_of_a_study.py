"""A run of a study in phases: one that is not valid takes no other with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.study import run_figures
from loadstone.analysis.study.patterns import patterns
from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.bundle.study import Point
from loadstone.report.study import matrix
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.analysis.study.run_figures import RunFigures


def figures(place: Path, number: int, *kinds: str) -> RunFigures:
    """A run of two phases, `a` and `b`, with these verdicts; without any of phases for none."""
    jobs = [MadeJob("a", stage=0), MadeJob("b", stage=1, group=1)]
    path = runs.make(place / str(number), *jobs, seed=number).path
    told = [{"name": name, "verdict": {"kind": kind}} for name, kind in zip("ab", kinds, strict=False)]
    (path / "result.json").write_text(json.dumps({"phases": told}))
    point = Point(
        name=f"r repeat {number}", factors={"repeat": number}, bundle=f"runs/{number}", status="complete",
        exit_code=0, verdict="not_valid",
    )  # fmt: skip
    return run_figures.run(point, summarise(Bundle.open(path, unverified=True)))


@pytest.mark.in_turn
def test_only_the_cells_of_the_invalid_phase_are_struck(tmp_path: Path) -> None:
    made = [figures(tmp_path, number, "measures_storage", "not_valid") for number in (1, 2)]
    first, second = patterns(made)
    assert (first.job, first.valid, second.job, second.valid) == ("a", 2, "b", 0)
    assert first.sound is not None
    assert second.sound is None
    rows = [matrix._pattern(one) for one in (first, second)]  # a line of the table as it is
    struck = [[cell.struck for cell in row if not isinstance(cell, str)] for row in rows]
    assert struck == [[False] * 4, [True] * 4]
    assert [row[-1] for row in rows] == ["measures the storage", "not valid"]


@pytest.mark.in_turn
def test_what_is_built_upon_is_the_valid_phase_alone(tmp_path: Path) -> None:
    made = [figures(tmp_path, 1, "limited", "not_valid")]
    assert [line.job for one in run_figures.sound(made) for line in one.lines] == ["a"]
    assert run_figures.sound([figures(tmp_path, 2, "not_valid", "not_valid")]) == []


def test_a_run_that_does_not_tell_of_its_phases_is_what_the_study_says(tmp_path: Path) -> None:
    one = figures(tmp_path, 1)
    assert [line.valid for line in one.lines] == [False, False]
