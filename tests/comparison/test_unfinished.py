"""A study as a side that was ended before all of its runs were done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from loadstone.bundle import study as on_disk
from loadstone.comparison.compare import compare
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


def study(path: Path, status: Literal["running", "complete", "interrupted"]) -> Path:
    """Make a study of one run, which is complete."""
    runs.make(path / "runs" / "1", runs.MadeJob("a"), seconds=2.0, seed=len(status))
    point = on_disk.Point(name="1", factors={"repeat": 1}, bundle="runs/1", status="complete")
    on_disk.write(path, runs.study_record("repeat", points=(point,), status=status))
    return path


@pytest.mark.parametrize(("status", "said"), [("running", "partial"), ("interrupted", "interrupted")])
def test_a_study_that_ended_between_two_runs_is_said_not_to_be_complete(
    tmp_path: Path, status: Literal["running", "interrupted"], said: str
) -> None:
    """All runs that were there are complete, and nothing told that others are missing."""
    made = compare([study(tmp_path / "a", "complete"), study(tmp_path / "b", status)])
    about = [one for one in made.warnings if "is not complete" in one]
    assert about == [f"b is not complete: {said}"]
