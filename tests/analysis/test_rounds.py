"""Rounds added up: the window that counts, its means, and what is said and drawn of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.study.rounds import Rounds, rounds
from loadstone.analysis.study.run_figures import RunFigures
from loadstone.bundle.study import Point
from loadstone.report.study import rounds as study_rounds

SETTINGS = {"rounds": {"most": 25, "tracks": "4k-0-read", "quantity": "iops", "every": 1}}


def run(number: int, block: str, read: int, iops: float | None) -> RunFigures:
    point = Point(
        name=f"round-{number} {block}-{read}-read",
        factors={"block": block, "read": str(read), "random": "100", "round": number},
    )
    whole = None
    if iops is not None:
        estimate = Estimate(iops, None, 1, "1/s")
        whole = SimpleNamespace(
            iops=estimate, operations=int(iops), block_bytes=4096.0, max_ns=1000 * number, lines=()
        )
    return RunFigures(point, cast("Any", whole), ())


def study(tracked: list[float | None], **changes: Any) -> Rounds | None:
    """Two block sizes, reads and writes; only the 4 KiB writes change from round to round."""
    runs = [RunFigures(Point(name="precondition", role="prepare"), None, ())]
    for number, value in enumerate(tracked, start=1):
        runs += [run(number, "8k", 100, 500.0), run(number, "8k", 0, 250.0)]
        runs += [run(number, "4k", 100, 900.0), run(number, "4k", 0, value)]
    return rounds(runs, {"rounds": {**SETTINGS["rounds"], **changes}})


def test_the_window_is_the_last_five_rounds() -> None:
    found = study([1000.0, 500.0, 100.0, 101.0, 102.0, 99.0, 98.0])
    assert found is not None
    assert found.window == (3, 4, 5, 6, 7)
    assert found.found.steady
    assert found.mean(found.tracked) == pytest.approx(100)
    assert found.longest_ns(found.tracked) == 7000
    assert [cell.name for cell in found.cells] == ["8k-100-read", "8k-0-read", "4k-100-read", "4k-0-read"]


def test_rounds_apart_are_compared_as_the_procedure_says() -> None:
    found = study([100.0] * 13, every=3)
    assert found is not None
    assert found.window == (1, 4, 7, 10, 13)


def test_too_few_rounds_are_no_result() -> None:
    found = study([100.0, 100.0])
    assert found is not None
    assert not found.found.steady
    assert study_rounds.sentences(found) == ["Not steady: only 2 of 5 rounds were done."]
    assert study_rounds.window(found) is None
    assert study([]) is None
    assert study([None, None]) is None


def test_what_is_said() -> None:
    steady, unsteady = study([100.0] * 5), study([100.0, 200.0, 300.0, 400.0, 500.0])
    assert steady is not None
    assert unsteady is not None
    assert study_rounds.sentences(steady)[0].startswith("Steady after 5 rounds: over rounds 1, 2, 3, 4, 5")
    said = study_rounds.sentences(unsteady)
    assert "ranged over 133 % of its mean" in said[0]
    assert "slope of 133 %" in said[0]
    assert said[1].startswith("By SNIA's rule there is no result")


def test_the_matrix_has_blocks_down_and_reads_across() -> None:
    found = study([100.0] * 5)
    assert found is not None
    headings, rows = study_rounds.matrix(found)
    assert headings == ["block", "100 % read", "0 % read"]
    assert [row[0] for row in rows] == ["8k", "4k"]
    assert rows[1][2].startswith("100")


def test_the_matrix_is_drawn_as_bars_when_it_has_two_sides() -> None:
    found = study([100.0] * 5)
    assert found is not None
    spec = study_rounds.bars(found)
    assert spec is not None
    texts = {label["text"] for layer in spec["layer"][1:] for label in layer["data"]["values"]}
    assert {"8k", "4k", "100", "0", "block size", "% read"} <= texts
    one = rounds([run(number, "4k", 0, 100.0) for number in range(1, 7)], SETTINGS)
    assert one is not None
    assert study_rounds.bars(one) is None


def test_the_limits_are_drawn_around_the_mean() -> None:
    found = study([90.0, 110.0, 90.0, 110.0, 100.0])
    assert found is not None
    spec = study_rounds.window(found)
    assert spec is not None
    lines = {row["line"]: row["v"] for row in spec["data"]["values"] if row["x"] == 5}
    assert (lines["mean"], lines["110 %"], lines["90 %"]) == pytest.approx((100, 110, 90))
    # Least squares: (-2 * 90 - 110 + 110 + 2 * 100) / 10 = 2 for each round.
    assert lines["slope"] == pytest.approx(104)


def test_convergence_is_of_the_tracked_share_of_reads() -> None:
    found = study([100.0] * 5)
    assert found is not None
    rows = study_rounds.convergence(found)["data"]["values"]
    assert {row["line"] for row in rows} == {"8k-0-read", "4k-0-read"}
    assert len(rows) == 10


def test_one_cell_is_drawn_over_what_it_wrote() -> None:
    runs = [run(number, "4k", 0, 262144.0) for number in range(1, 7)]
    found = rounds(runs, SETTINGS)
    assert found is not None
    spec = study_rounds.over_written(found)
    assert spec is not None
    # 262,144 writes of 4 KiB are 1 GiB.
    assert [row["x"] for row in spec["data"]["values"]] == pytest.approx([1, 2, 3, 4, 5, 6])
