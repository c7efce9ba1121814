"""Helpers read large studies, all of them from the beginning: each run once, and with the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.audit import find_results
from loadstone.bundle import layout
from loadstone.bundle import study as on_disk
from loadstone.comparison.compare import ComparisonTable, compare
from loadstone.errors import BundleError
from loadstone.helpers import Helpers
from tests.support import runs
from tests.support.runs import MadeJob, study_record

if TYPE_CHECKING:
    from pathlib import Path

RUNS = 3


def study(path: Path, hz: float) -> Path:
    points = [
        on_disk.Point(name=f"a {at}", bundle=f"runs/{at}", factors={"repeat": at}) for at in range(RUNS)
    ]
    for at, point in enumerate(points):
        runs.make(path / str(point.bundle), MadeJob("a", {"read": hz}), seconds=4.0, seed=at)
    on_disk.write(path, study_record("repeat", points=points, status="complete"))
    return path


def effects(table: ComparisonTable) -> list[tuple[str, str, str, str]]:
    return [(one.pattern, one.metric.name, one.judgement, repr(one.contrast)) for one in table.effects]


def test_all_studies_are_asked_for_before_the_first_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Helpers waited while the first side was judged, a sixth of the time of a comparison."""
    sides = [study(tmp_path / "before", 1000.0), study(tmp_path / "after", 800.0)]
    here = effects(compare(sides))
    assert here
    asked: list[Any] = []
    judged: list[int] = []
    do, find = Helpers.do, find_results.find

    def noted(self: Helpers, *words: Any) -> Any:
        asked.append(words[2].bundle)
        return do(self, *words)

    def searched(*words: Any) -> Any:
        judged.append(len(asked))
        return find(*words)

    monkeypatch.setattr(find_results, "MANY_RUNS", RUNS)
    monkeypatch.setattr(find_results, "cpus", lambda: 2)
    monkeypatch.setattr(Helpers, "do", noted)
    monkeypatch.setattr("loadstone.comparison.search.find", searched)
    assert effects(compare(sides)) == here
    assert len(asked) == 2 * RUNS
    assert judged == [2 * RUNS, 2 * RUNS]
    with (sides[1] / "runs" / "1" / layout.STREAMS["samples.arrows"]).open("ab") as file:
        file.write(b"x")
    with pytest.raises(BundleError, match=r"after/runs/1"):
        compare(sides)
