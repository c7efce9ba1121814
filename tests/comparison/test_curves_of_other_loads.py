"""Curves of other operations, block sizes or names are not better, and no gate passes what it did not see."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from loadstone.analysis.study.curve import Curve
from loadstone.bundle import study as on_disk
from loadstone.comparison import curve_effects
from loadstone.comparison.compare import compare
from loadstone.comparison.gate import gate, powers
from loadstone.errors import InputError
from tests.report.test_study_page import curve

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.comparison.compare import ComparisonTable
    from loadstone.comparison.gate import Gate

PERCENTS = (20.0, 40.0, 60.0, 75.0, 90.0)
JOBS = {
    "4k": {"bs": "4k"},
    "8k": {"bs": "8k"},
    "64k": {"bs": "64k"},
    "1m": {"bs": "1m"},
    "writes": {"bs": "4k", "rw": "randwrite"},
}


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("curves")
    for name, job in JOBS.items():
        curve(path / name, slo=None, percents=PERCENTS, **job)
    return path


def gated(table: ComparisonTable) -> Gate:
    known = powers(table.effects, table.sides, detect=0.3, alpha=table.alpha)
    return gate(table.effects, table.sides, known, detect=0.3, alone=table.alone)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("first", "other", "title"),
    [
        ("4k", "8k", "curve 4k random read → 8k random read"),
        ("64k", "1m", "curve 64k random read → 1m random read"),
        ("4k", "64k", "curve 4k random read → 64k random read"),
    ],
)
def test_a_curve_of_another_block_size_is_neither_better_nor_passed(
    studies: Path, first: str, other: str, title: str
) -> None:
    """64k against 1m was called 16 times better, and 4k against 8k passed the gate."""
    table = compare([studies / first, studies / other])
    assert {one.pattern for one in table.effects} == {title}
    assert {one.judgement for one in table.effects} == {"unknown"}
    decided = gated(table)
    assert (decided.outcome, decided.why) == ("no_data", (f"{other}: {title} is another load",))
    assert f"{other}: {title} is another load" in table.warnings


@pytest.mark.in_turn
def test_a_curve_of_writes_is_not_held_against_one_of_reads(studies: Path) -> None:
    """The gate passed: the writes were as fast as the reads."""
    with pytest.raises(InputError, match="no load can be compared"):
        compare([studies / "4k", studies / "writes"])


@pytest.mark.in_turn
def test_loads_of_large_blocks_are_told_as_bandwidth(studies: Path) -> None:
    """Of a maximum in MiB/s the knee and the equal load were in IOPS."""
    table = compare([studies / "64k", studies / "1m"])
    names = [one.metric.name.partition(" at ")[0] for one in table.effects]
    assert names == ["maximum bandwidth", "knee, bandwidth", "bandwidth"]
    knees = next(one for one in table.effects if one.metric.name == "knee, bandwidth")
    for side, value, size in ((0, knees.before, 2**16), (1, knees.after, 2**20)):
        row = table.curves[0].each[side]
        assert row is not None
        assert row.knee is not None
        assert value.sample is not None
        assert value.sample.value == pytest.approx(row.knee.load * size, rel=1e-3)


@pytest.mark.in_turn
def test_a_gate_does_not_pass_a_curve_that_one_side_lacks(studies: Path, tmp_path: Path) -> None:
    """Of two curves the other side had one: it was as before, and the gate passed."""
    before, after = tmp_path / "before", tmp_path / "after"
    both = [(studies / "4k", "small"), (studies / "64k", "large")]
    study_of(before, both)
    study_of(after, both[:1])
    for sides, why in (
        ((before, after), "before: no other side has curve large"),
        ((after, before), "before: after does not have curve large"),
    ):
        table = compare(sides)
        decided = gated(table)
        assert {one.pattern for one in table.effects} == {"curve small"}
        assert decided.outcome == "no_data"
        assert why in decided.why
        assert "only before has curve large" in table.warnings


def study_of(path: Path, parts: list[tuple[Path, str]]) -> None:
    """Make a study of the curves of others, each under a name of its own."""
    points = []
    for study, name in parts:
        for point in on_disk.open_all(study).study.points:
            assert point.bundle is not None
            bundle = point.bundle.replace("runs/", f"runs/{name}-")
            shutil.copytree(study / point.bundle, path / bundle)
            points.append(
                point.model_copy(
                    update={
                        "name": f"{name} {point.name}",
                        "bundle": bundle,
                        "factors": {**point.factors, "job": name},
                    }
                )
            )
    record = on_disk.StudyRecord(
        kind="curve", name="x", front_end="fio", loadstone_version="0", started="2026-01-01T00:00:00+00:00",
        request={}, points=tuple(points), status="complete",
    )  # fmt: skip
    on_disk.write(path, record)


def test_what_is_left_out_of_curves_of_one_name_is_told() -> None:
    one = curve_effects.SideCurve(Curve("reads", None, (), None, None), None)
    other = curve_effects.SideCurve(Curve("reads", None, (), None, None), None)
    assert list(curve_effects.left_out([one, other])) == [
        "has 2 of curve reads: the first is compared, and the others are not"
    ]
    assert list(curve_effects.left_out([one])) == []
