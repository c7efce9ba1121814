"""Rounds until one of their runs is steady."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.estimate import Estimate
from loadstone.study.controller import Next
from loadstone.study.rounds import RoundsController
from tests.study.simulated import workload

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Whole:
    iops: Estimate


@dataclass
class Numbers:
    whole: Whole | None


@dataclass
class EndedRun:
    """As much of a run that ended as a controller looks at."""

    run: Numbers


def follow(controller: RoundsController, iops: Callable[[int], float | None]) -> list[Next]:
    """Run to the end; `iops`: what the tracked cell does in each round, None when it fails."""
    done: list[Any] = []
    made: list[Next] = []
    while (wanted := controller.next(done)) is not None:
        made.append(wanted)
        value = iops(int(wanted.factors["round"] or 0)) if wanted.factors.get("round") else 1.0
        done.append(EndedRun(Numbers(None if value is None else Whole(Estimate(value, None, 1, "1/s")))))
    return made


def controller(**changes: Any) -> RoundsController:
    cells = [Next("read", workload()), Next("write", workload())]
    prepare = [Next("fill", workload(), role="prepare")]
    given: dict[str, Any] = {"most": 25, "tracks": "write", "quantity": "iops"} | changes
    return RoundsController(prepare, cells, **given)


def test_a_drive_that_is_steady_from_the_start_needs_five_rounds() -> None:
    rounds = controller()
    made = follow(rounds, lambda _: 1000.0)
    assert made[0].role == "prepare"
    assert [run.name for run in made[1:5]] == [
        "round-1 read",
        "round-1 write",
        "round-2 read",
        "round-2 write",
    ]
    assert len(made) == 1 + 2 * 5
    assert rounds.ended_because is not None
    assert "steady after 5 rounds" in rounds.ended_because


def test_a_drive_that_slows_down_is_followed_until_it_does_no_more() -> None:
    """1000, 900 ... 300, 300, ...: the last five lie within 20 % of their mean from round 12 on."""
    rounds = controller()
    made = follow(rounds, lambda number: max(1100.0 - 100 * number, 300.0))
    assert made[-1].factors["round"] == 12
    assert rounds.ended_because is not None
    assert rounds.ended_because.startswith("steady after 12 rounds")


def test_there_is_an_end_to_it() -> None:
    rounds = controller(most=7)
    made = follow(rounds, lambda number: 1000.0 if number % 2 else 100.0)
    assert made[-1].name == "round-7 write"
    assert "not steady after 7 rounds" in str(rounds.ended_because)


def test_a_round_that_failed_is_never_steady() -> None:
    rounds = controller(most=8)
    made = follow(rounds, lambda number: None if number == 2 else 1000.0)
    assert made[-1].factors["round"] == 8


def test_rounds_far_apart_are_compared() -> None:
    """With three between two that are compared, five need thirteen rounds."""
    rounds = controller(every=3)
    assert follow(rounds, lambda _: 1000.0)[-1].factors["round"] == 13


def test_what_is_certain_is_known() -> None:
    assert len(controller().known()) == 1 + 2 * 5
    assert len(controller(every=30, most=360).known()) == 1 + 2 * 121
    assert controller().expected() is None


def test_the_tracked_cell_must_be_there() -> None:
    with pytest.raises(ValueError, match="trim"):
        controller(tracks="trim")
