"""Which runs of a study are repeats of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.audit.find_results import PassedOver, SearchProgress, find
from loadstone.bundle import study as on_disk
from tests.support import runs

if TYPE_CHECKING:
    from pathlib import Path


def test_files_with_sections_of_one_name_are_no_repeats_of_each_other(tmp_path: Path) -> None:
    """Two job files with a section `job` each, run twice: 'runs differ', and no verdict on any of them."""
    points = []
    for repeat in (1, 2):
        for name, depth in (("d1", 1), ("d16", 16)):
            place = f"runs/{name}-{repeat}"
            runs.make(tmp_path / "s" / place, runs.MadeJob("job", iodepth=depth), seconds=2.0, seed=repeat)
            label = name if repeat == 1 else f"{name} repeat {repeat}"
            points.append(
                on_disk.Point(name=label, factors={"repeat": repeat}, bundle=place, status="complete")
            )
    on_disk.write(tmp_path / "s", runs.study_record("list", points=tuple(points), status="complete"))
    files: list[str] = []
    for found in find(tmp_path / "s", SearchProgress()):
        assert not isinstance(found, PassedOver)
        path, results = found
        (case,) = results.cases
        assert len(case.repeats) == 2
        assert case.total.iops is not None
        assert case.total.iops in case.repeats
        files.append(path.name.partition("-")[0])
    assert files == ["d1", "d16", "d1", "d16"]
