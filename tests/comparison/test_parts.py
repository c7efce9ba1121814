"""What a total hides: one of several jobs or operations became slower while another became faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.api.comparing import Comparison
from loadstone.comparison.compare import compare
from loadstone.report.comparison.words import headline
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


def of_two(path: Path, reader: float, writer: float, seed: int) -> Path:
    """Write three runs of a job that reads and one that writes."""
    for number in range(3):
        jobs = (MadeJob("reader", {"read": reader}), MadeJob("writer", {"write": writer}, targets=(1,)))
        runs.make(path / str(number), *jobs, seconds=20.0, targets=2, seed=seed + number)
    return path


def test_reads_that_became_slower_are_told_although_the_total_did_not(tmp_path: Path) -> None:
    """Reads fell by half, writes rose by as much: *not significant*, and the gate passed."""
    sides = [of_two(tmp_path / "before", 1000.0, 1000.0, 1), of_two(tmp_path / "after", 500.0, 1500.0, 11)]
    made = compare(sides)
    comparison = Comparison(made)
    (total,) = (one for one in made.effects if one.first)
    assert (total.judgement, comparison.gate(detect=0.2)) == ("same", "regression")
    reasons = comparison.decide(detect=0.2).why
    assert any(one.startswith("read of reader: IOPS is worse by ") for one in reasons)
    assert ": not significant; but worse: IOPS -" in headline(made)
    judged = {(row.job, row.metric.name): row.cells[1].judgement for row in made.parts}
    assert (judged["reader", "IOPS"], judged["writer", "IOPS"]) == ("worse", "better")
    told = comparison.document(detect=0.2, gated=True)["parts"]
    assert {row["job"] for row in told} == {"reader", "writer"}


def test_parts_that_did_not_change_let_the_gate_pass(tmp_path: Path) -> None:
    sides = [of_two(tmp_path / name, 1000.0, 1000.0, seed) for name, seed in (("before", 1), ("after", 11))]
    assert Comparison(compare(sides)).gate(detect=0.2) == "passed"


def test_a_load_of_one_job_and_operation_has_no_parts(tmp_path: Path) -> None:
    sides = [runs.make(tmp_path / name, seed=seed).path for seed, name in enumerate("ab")]
    assert compare(sides).parts == ()


def test_repeats_under_other_names_are_no_parts(tmp_path: Path) -> None:
    for seed, side in enumerate("ab"):
        for number, name in enumerate(("x", "y", "z")):
            runs.make(tmp_path / side / name, MadeJob(name), seconds=10.0, seed=10 * seed + number)
    made = compare([tmp_path / "a", tmp_path / "b"])
    assert [len(cell.valid) for cell in made.pairs[0].cells if cell is not None] == [3, 3]
    assert made.parts == ()
