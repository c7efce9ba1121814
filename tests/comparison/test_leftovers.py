"""What is left of two sides when their loads have been paired, and how that is told."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadstone.audit.case import Case, JobRequest, OpMeasurement
from loadstone.audit.find_results import SearchProgress
from loadstone.comparison import pairing
from loadstone.comparison.compare import compare
from loadstone.comparison.gate import gate
from loadstone.comparison.pattern_name import may_be_one
from loadstone.comparison.repeat_command import repeat_command
from loadstone.comparison.side import side as read_side
from tests.comparison.test_compare import FOREIGN, made, study
from tests.comparison.test_repeats import fio_text, names_of
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.comparison.side import Side


def test_depths_that_one_side_alone_has_are_not_held_against_each_other(tmp_path: Path) -> None:
    """Depths 1 to 16 against 2 to 32: what was left, 1 and 32, had one name, and was *better* by 306 %."""
    sides = [
        read_side(fio_text(tmp_path / f"{at}.txt", [("a", depth, 1000 * depth) for depth in depths]))
        for at, depths in enumerate([[1, 2, 8], [2, 8, 32]])
    ]
    rows, alone = pairing.rows(sides)
    assert [row.pattern for row in rows] == ["4k random read, iodepth 2", "4k random read, iodepth 8"]
    assert [[cell.first.depth for cell in cells] for cells in alone] == [[1], [32]]


def test_one_job_that_got_another_depth_is_still_held_against_itself(tmp_path: Path) -> None:
    sides = [
        read_side(fio_text(tmp_path / f"{at}.txt", [("a", depth, 9000), ("b", 4, 8000)]))
        for at, depth in enumerate([1, 32])
    ]
    rows, alone = pairing.rows(sides)
    assert names_of(rows) == [["a", "a"], ["b", "b"]]
    assert alone == [[], []]


def test_a_side_without_a_name_for_a_run_leaves_no_arrow(tmp_path: Path) -> None:
    """A list of runs names them and fio's results have none: `4k random read, rand →`."""

    def labelled(at: int, labels: list[str]) -> Side:
        told = read_side(fio_text(tmp_path / f"{at}.txt", [(name, 8, 9000) for name in ("wd", "rand")]))
        phases = [replace(one, label=label) for one, label in zip(told.phases, labels, strict=True)]
        return replace(told, phases=tuple(phases))

    bare = read_side(fio_text(tmp_path / "bare.txt", [("rand", 8, 9100)]))
    rows, _ = pairing.rows([labelled(1, ["rd1", "rand"]), labelled(2, ["rd1", "rand"]), bare])
    assert [row.pattern for row in rows] == ["4k random read, rd1", "4k random read, rand"]
    assert [cell is None for cell in rows[1].cells] == [False, False, False]


@pytest.mark.in_turn
def test_what_terse_output_does_not_tell_may_be_another_load_and_is_not_said_to_be(tmp_path: Path) -> None:
    """It has no order: `4k read → 4k random read is another load` was said of one and the same job."""
    lines = (FOREIGN / "fio" / "shared.terse3").read_text().splitlines()
    line = next(one for one in lines if one.split(";")[2] == "reads")
    (tmp_path / "before.txt").write_text(line + "\n")
    runs.make(tmp_path / "after", MadeJob(line.split(";")[2]), seconds=20.0)
    found = compare([tmp_path / "before.txt", tmp_path / "after"])
    (pattern,) = {one.pattern for one in found.effects}
    assert pattern == "4k read → 4k random read"
    text = (
        f"after: {pattern} may be another load: one side does not tell the block size, the order or the mix"
    )
    assert text in found.warnings
    decided = gate(found.effects, found.sides, (), detect=0.05, alone=found.alone)
    assert decided.outcome == "no_data"
    assert any("may be another load" in why for why in decided.why)


def test_only_what_both_tell_makes_two_patterns() -> None:
    def case(*jobs: JobRequest) -> Case:
        return Case(name="a", source="fio", jobs=jobs, total=OpMeasurement(), ops={})

    known = JobRequest(job="a", random_percent=100.0, read_percent=100.0, block_bytes={4096: 1.0})
    no_order = JobRequest(job="a", read_percent=100.0, block_bytes={4096: 1.0})
    in_order = JobRequest(job="a", random_percent=0.0, read_percent=100.0, block_bytes={4096: 1.0})
    larger = JobRequest(job="a", read_percent=100.0, block_bytes={8192: 1.0})
    assert may_be_one(case(known), case(no_order))
    assert not may_be_one(case(known), case(in_order))
    assert not may_be_one(case(known), case(larger))
    assert not may_be_one(case(known), case(known, in_order))


def test_loads_that_nothing_tells_apart_are_said_to_be_that(tmp_path: Path) -> None:
    """`a does not have 4k random read of a, b: to compare those, name a first` was said."""
    sides = [
        fio_text(tmp_path / f"{at}.txt", [(name, 4, 9000) for name in names] + [("same", 64, 5000)])
        for at, names in enumerate([["x", "y"], ["u", "v", "w"]])
    ]
    text = (
        "4k random read, iodepth 4 of 0.txt, 1.txt cannot be compared: "
        "neither names nor depths tell which belong together"
    )
    assert text in compare(sides).warnings


@pytest.mark.in_turn
def test_a_copy_of_a_run_of_several_phases_is_told_once(tmp_path: Path) -> None:
    """A run of four phases was told to be a copy four times by its gate, and thrice above."""
    run = runs.make(tmp_path / "a", MadeJob("a"), MadeJob("b", {"write": 500.0}, stage=1), seconds=20.0).path
    shutil.copytree(run, tmp_path / "b")
    found = compare([run, tmp_path / "b"])
    twice = [text for text in found.warnings if "same measurement" in text]
    assert twice == ["b: b is the same measurement as a of a"]
    decided = gate(found.effects, found.sides, (), detect=0.05, alone=found.alone)
    assert len(decided.why) == len(set(decided.why))


@pytest.mark.in_turn
def test_a_curve_and_a_sweep_are_repeated_by_the_command_they_came_from(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    request = json.loads((run / "request.json").read_text())
    for verb in ("curve", "sweep"):
        words = ["/usr/bin/loadstone", verb, "job.fio", "--out=x", "--runtime=3s"]
        (run / "request.json").write_text(json.dumps(request | {"argv": words}))
        command = f"loadstone {verb} job.fio --runtime=3s --repeat 3"
        assert repeat_command(read_side(run, SearchProgress(unverified=True))) == command


@pytest.mark.in_turn
def test_the_maximum_of_a_curve_that_no_other_side_has_is_called_that(tmp_path: Path) -> None:
    """`only w has 4k random read, rate_percent None, purpose ladder` was said."""
    (tmp_path / "a").mkdir()
    study(tmp_path / "a" / "curve", [1000.0, 500.0], rates=[None, 50.0])
    for at, path in enumerate(("a/one", "b"), start=3):
        runs.make(tmp_path / path, MadeJob("w", {"write": 500.0}), seconds=20.0, seed=at)
    # Of one pattern there are names; the curve's has another depth than what both have.
    for at, path in enumerate(("a/two", "c"), start=5):
        runs.make(tmp_path / path, MadeJob("r", iodepth=4), seconds=20.0, seed=at)
    (tmp_path / "other").mkdir()
    for path in ("b", "c"):
        shutil.move(tmp_path / path, tmp_path / "other" / path)
    warnings = compare([tmp_path / "a", tmp_path / "other"]).warnings
    assert "only a has 4k random read, maximum of a curve" in warnings
