from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadstone.analysis.study import repeats, run_figures
from loadstone.api.studies.prepared_study import times
from loadstone.api.studies.repeats import precision
from loadstone.cli.options.arguments import SHELL
from loadstone.errors import InputError
from loadstone.study.controller import Next
from loadstone.study.random_seeds import leaves_open, own_sequence
from loadstone.study.repeat import MIN_RUNS, RepeatController, Until
from loadstone.study.run import Hooks, StudyRequest, run_study

from . import simulated

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.study.run import StudyOutcome

ASKED = StudyRequest("repeat", "again", "run", {}, {})


def repeat(
    path: Path, controller: RepeatController, service_ns: Any = lambda number: 100_000
) -> StudyOutcome:
    """Repeat on a device whose service time may depend on the number of the repeat."""
    device = simulated.on(lambda wanted: simulated.device(service_ns(wanted.factors["repeat"])))
    return run_study(controller, request=ASKED, out_dir=path / "s", hooks=Hooks(device))


@pytest.mark.in_turn
def test_so_many_repeats(tmp_path: Path) -> None:
    controller = RepeatController(Next("j", simulated.workload(1)), most=3)
    assert controller.expected() == len(controller.known()) == 3
    outcome = repeat(tmp_path, controller)
    assert [one.name for one in outcome.study.points] == ["repeat-1", "repeat-2", "repeat-3"]


@pytest.mark.in_turn
def test_it_stops_when_the_mean_is_known(tmp_path: Path) -> None:
    """The device is 1 % faster every other time: known to 2 % after the fewest runs there may be."""
    controller = RepeatController(
        Next("j", simulated.workload(1)), most=None, until=Until(0.02, 3600), now=lambda: 0.0
    )
    assert controller.expected() is None
    outcome = repeat(tmp_path, controller, lambda number: 100_000 + 1000 * (number % 2))
    assert len(outcome.done) == MIN_RUNS
    assert controller.ended_because == "the mean is known to within 2 %"


@pytest.mark.in_turn
def test_it_goes_on_while_the_runs_lie_apart_and_stops_when_time_is_up(tmp_path: Path) -> None:
    """Every other run has half the rate; each takes 10 s of a clock that has 65."""
    clock = iter([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0])
    controller = RepeatController(
        Next("j", simulated.workload(1)), most=None, until=Until(0.02, 65), now=lambda: next(clock)
    )
    outcome = repeat(tmp_path, controller, lambda number: 100_000 * (1 + number % 2))
    assert len(outcome.done) == 6
    assert "would exceed the 65.0" in str(controller.ended_because)
    lines = repeats.lines([run_figures.run(one.point, one.summary) for one in outcome.done])
    assert lines[0].iops is not None
    assert lines[0].iops.mean.value == pytest.approx(7500, rel=0.01)
    assert (lines[0].iops.low, lines[0].iops.high) == pytest.approx((5000, 10_000), rel=0.01)
    assert lines[0].iops.differ


def test_a_job_that_names_its_sequence_keeps_it() -> None:
    fixed = simulated.workload(randseed=7)
    assert not leaves_open(fixed)
    assert own_sequence(fixed, 2) == fixed
    assert not leaves_open(simulated.workload(randrepeat=1))
    open_ = simulated.workload()
    assert leaves_open(open_)
    assert own_sequence(open_, 1) != own_sequence(open_, 2)


@pytest.mark.parametrize(
    ("text", "share", "budget_s"), [("2%", 0.02, 1800), ("0.5%,90s", 0.005, 90), ("5 %,2m", 0.05, 120)]
)
def test_until_is_a_share_and_a_time(text: str, share: float, budget_s: float) -> None:
    assert precision(text, SHELL) == Until(pytest.approx(share), budget_s)  # type: ignore[arg-type]  # approx is a float here


@pytest.mark.parametrize("text", ["2", "0%", "100%", "2%,", "2%,soon", "2%,0s", "%", ""])
def test_anything_else_is_refused_and_named(text: str) -> None:
    with pytest.raises(InputError, match="--until"):
        precision(text, SHELL)


def test_numbers_of_repeats_have_bounds() -> None:
    assert times(None, SHELL) is None
    assert times(1, SHELL) == 1
    with pytest.raises(InputError, match="--repeat: found 0"):
        times(0, SHELL)
