"""Comparisons of sides that are drawn: of mixed kinds, with what is broken, missing, not valid, or the same.

What must hold of any: no error but one in words, nothing told apart that rests on an invalid number,
no pass of a gate that could not have seen the regression, and nothing told of a copy.
"""

from __future__ import annotations

import math
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadstone.api.comparing import Comparison
from loadstone.audit.foreign.reader import BROKEN as BROKEN_READER
from loadstone.comparison import gate as gate_module
from loadstone.comparison.compare import compare
from loadstone.comparison.gate import ENOUGH, Gate, Power
from loadstone.errors import LoadstoneError
from loadstone.report.comparison import page, words
from tests.comparison.test_compare import study
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from loadstone.comparison.compare import ComparisonTable

ROOT = Path(__file__).parents[2]
FOREIGN = ROOT / "tests" / "data" / "foreign"
ALIEN = sorted(
    [
        *(one for one in (FOREIGN / "fio").iterdir() if one.suffix != ".fio"),
        *(FOREIGN / "iometer").iterdir(),
        *(FOREIGN / "diskspd").iterdir(),
        *FOREIGN.glob("vdbench-*"),
        *(ROOT / "examples" / "published").glob("*.toml"),
    ]
)
BROKEN = (
    "",
    "{",
    '{"fio version": "fio-3.36", "jobs": [{}]}',
    "Test Type,Test Description\n",
    "[[result]]\n",
)
OPS = ({"read": 900.0}, {"read": 1000.0}, {"write": 1100.0}, {"read": 700.0, "write": 300.0}, {"read": 0.0})


def own(chance: random.Random, path: Path) -> Path:
    """A bundle of one to three phases: jobs may share a name, be paced, fail, be cut off or very short."""
    names = [chance.choice(["a", "a", "b", "c"]) for _ in range(chance.randint(1, 3))]
    jobs = [
        MadeJob(
            name,
            dict(chance.choice(OPS)),
            block_bytes=chance.choice([512, 4096, 4096, 4096, 131072]),
            stage=at,
            group=at,
            paced=chance.random() < 0.2,
            random_percent=chance.choice([0, 100, 100]),
            iodepth=chance.choice([1, 32]),
            clones=chance.choice([1, 3]),
            errors=7 if chance.random() < 0.1 else 0,
        )
        for at, name in enumerate(names)
    ]
    seal = chance.choice(["complete", "complete", "complete", "interrupted", None])
    made = runs.make(
        path, *jobs, seconds=chance.choice([1.0, 5.0, 20.0]), seed=chance.randrange(10**6), seal=seal
    )
    if chance.random() < 0.1:
        next(iter(made.path.glob("samples.*"))).unlink()
    return made.path


def result(chance: random.Random, path: Path) -> None:
    """Put a result of some kind at a path."""
    kind = chance.choice(["own"] * 6 + ["study", "study", "alien", "alien", "broken"])
    if kind == "own":
        own(chance, path)
    elif kind == "study":
        study(path, [chance.choice([900.0, 1000.0]) for _ in range(chance.randint(1, 3))])
    elif kind == "alien":
        source = chance.choice(ALIEN)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, path.with_suffix(source.suffix))
    else:
        path.with_suffix(chance.choice([".json", ".csv", ".toml", ".txt"])).write_text(chance.choice(BROKEN))


def of_one_load(chance: random.Random, place: Path) -> list[Path]:
    """Draw sides of whole runs of one load, with nothing wrong: only these come to a gate's last question."""
    paths = [place / f"side{at}" for at in range(chance.choice([2, 2, 3]))]
    for path in paths:
        for number in range(chance.choice([1, 2, 3])):
            job = MadeJob("a", {"read": chance.choice([900.0, 1000.0])})
            runs.make(path / f"{number}", job, seconds=20.0, seed=chance.randrange(10**6))
    return paths


def sides(chance: random.Random, place: Path) -> list[Path]:
    """Draw two or three sides; one of them may be a copy of the first."""
    if chance.random() < 0.15:
        return of_one_load(chance, place)
    made: list[Path] = []
    for at in range(chance.choice([2, 2, 3])):
        side = place / f"side{at}"
        if at == 1 and chance.random() < 0.2:
            shutil.copytree(made[0], side)
        else:
            side.mkdir(parents=True)
            for number in range(chance.choice([1, 1, 2, 3])):
                result(chance, side / f"{number}")
        made.append(side)
    return made


def check(found: ComparisonTable) -> None:
    """Hold what was said against what it may rest on."""
    assert len(found.excluded) == sum(not phase.valid for one in found.sides for phase in one.phases)
    for one in found.effects:
        for entry in (one.before, one.after):
            assert entry.valid or entry.sample is None
            assert entry.sample is None or math.isfinite(entry.sample.value)
        if one.told_apart:
            assert one.before.valid
            assert one.after.valid
            assert one.contrast is not None
    for row in found.pairs:
        assert all(phase.valid for cell in row.cells if cell is not None for phase in cell.valid)
    compared = Comparison(found)
    for detect in (0.05, 0.5):
        answer = compared.decide(detect=detect)
        told = compared.document(detect=detect, gated=True)
        assert told["gate"] == answer.outcome
        assert all(cell["better"] is not None for cell in told["matrix"] if cell["told_apart"])
        if answer.outcome == "passed":
            assert not any(one.verdict == "not_valid" for one in found.sides)
            assert not found.alone
            known = compared.powers(detect=detect)
            assert known
            assert all(one.power >= ENOUGH for one in known)
            assert {one.pattern for one in known} == {one.pattern for one in found.effects}
        if any(one.verdict == "not_valid" for one in found.sides):
            assert answer.outcome == "not_valid"
    for text in (compared.markdown(), page.page(found)):
        assert " nan" not in text
        assert "inf %" not in text


def attack(seed: int, place: Path) -> str:
    """Draw sides, compare them, and say how it ended."""
    paths = sides(random.Random(seed), place)
    try:
        found = compare(paths)
    except LoadstoneError as error:
        if BROKEN_READER in str(error):
            raise
        return "refused"
    check(found)
    return Comparison(found).gate()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.in_turn
def test_drawn_sides(tmp_path: Path, seed: int) -> None:
    attack(31_000 + seed, tmp_path)


@pytest.mark.nightly
def test_many_drawn_sides_end_in_every_way(tmp_path: Path) -> None:
    ended = {attack(32_000 + seed, tmp_path / str(seed)) for seed in range(300)}
    assert {"refused", "not_valid", "no_data", "not_detectable"} <= ended


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.in_turn
def test_a_copy_of_a_side_does_not_differ(tmp_path: Path, seed: int) -> None:
    chance = random.Random(33_000 + seed)
    side = tmp_path / "one"
    own(chance, side / "1")
    shutil.copytree(side, tmp_path / "copy")
    try:
        found = compare([side, tmp_path / "copy"])
    except LoadstoneError:
        return
    assert not any(one.told_apart for one in found.effects)
    assert all(one.contrast is None or one.contrast.change == 0 for one in found.effects)
    assert not found.differences


def test_a_gate_that_does_not_pass_names_no_chance_that_would() -> None:
    """At 79.9 of 100 it said *80 of 100 cases (at least 80)*, and the line below it 79."""
    weak = Power("4k random read", "4k random read", "IOPS", "after", ENOUGH - 0.001, None)
    judged = Gate("not_detectable", (gate_module._weak(weak, 0.05),), 0.05)
    lines = words.gate(judged, [weak])
    assert "79 of 100 cases (at least 80)" in lines[0]
    assert "79 of 100 cases or more" in lines[1]
