"""A list of runs several times over: order, names, what each pass sees, and the spread of each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.study import repeats
from loadstone.analysis.study.document import document
from loadstone.cli.app import run as command
from loadstone.errors import InputError
from loadstone.study.controller import Done, Next
from loadstone.study.list_controller import ListController, RepeatedList
from loadstone.study.run import Hooks, StudyRequest, run_study

from . import simulated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ASKED = StudyRequest("list", "again", "vdbench", {}, {})


def two() -> ListController:
    return ListController([Next("a", simulated.workload(1), {"rd": "a"}), Next("b", simulated.workload(1))])


class Fading:
    """Goes on until it has seen two runs of its own."""

    def next(self, done: Sequence[Done]) -> Next | None:
        return Next(f"run {len(done)}", simulated.workload(1)) if len(done) < 2 else None

    def known(self) -> Sequence[Next]:
        return []

    def expected(self) -> int | None:
        return None

    def most(self) -> int | None:
        return None


def run(path: Path, controller: Any) -> Any:
    # The device is slower in each pass, and each run's own noise is nothing.
    device = simulated.on(lambda wanted: simulated.device(100_000 * int(str(wanted.factors["repeat"]))))
    return run_study(controller, request=ASKED, out_dir=path / "s", hooks=Hooks(device))


@pytest.mark.in_turn
def test_each_pass_begins_anew_under_names_of_its_own(
    tmp_path: Path,
) -> None:
    controller = RepeatedList(two, 2)
    assert controller.expected() == len(controller.known()) == 4
    outcome = run(tmp_path, controller)
    assert [one.name for one in outcome.study.points] == ["a", "b", "a repeat 2", "b repeat 2"]
    assert [one.factors for one in outcome.study.points][:3:2] == [
        {"rd": "a", "repeat": 1},
        {"rd": "a", "repeat": 2},
    ]


@pytest.mark.in_turn
def test_a_pass_sees_its_own_runs_only(tmp_path: Path) -> None:
    controller = RepeatedList(Fading, 3)
    assert controller.expected() is None
    outcome = run(tmp_path, controller)
    names = [one.name for one in outcome.study.points]
    assert names == ["run 0", "run 1", "run 0 repeat 2", "run 1 repeat 2", "run 0 repeat 3", "run 1 repeat 3"]


@pytest.mark.in_turn
def test_the_spread_is_that_of_each_run(tmp_path: Path) -> None:
    outcome = run(tmp_path, RepeatedList(two, 3))
    runs = [done.run for done in outcome.done]
    found = repeats.by_run(runs)
    assert list(found) == ["a", "b"]
    for lines in found.values():
        rate = lines[0].iops
        assert rate is not None
        assert rate.values == pytest.approx([10_000, 5_000, 10_000 / 3], rel=0.01)
        assert rate.differ
    told = document(outcome.path, outcome.study, runs)
    assert [one["name"] for one in told["repeated_runs"]] == ["a", "b"]
    assert told["repeated_runs"][0]["lines"][0]["iops"]["runs"] == 3
    assert told["repeats"] is None


@pytest.mark.in_turn
def test_once_is_no_repeat(tmp_path: Path) -> None:
    outcome = run_study(
        two(),
        request=ASKED,
        out_dir=tmp_path / "s",
        hooks=Hooks(simulated.on(lambda _: simulated.device(100_000))),
    )
    runs = [done.run for done in outcome.done]
    assert repeats.by_run(runs) == {}
    assert document(outcome.path, outcome.study, runs)["repeated_runs"] is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("snia-pts-iops-like", "its rounds go on until they are steady"),
        ("iozone-matrix-like", "drawn as a surface"),
    ],
)
@pytest.mark.in_turn
def test_what_is_no_plain_list_is_not_repeated(tmp_path: Path, name: str, why: str) -> None:
    words = ["run", name, "--target", str(tmp_path / "x"), "--size", "64m", "--repeat", "2"]
    with pytest.raises(InputError, match=f"--repeat: {name} cannot be repeated: .*{why}"):
        command(words)
