from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.plan.model import RateProcess
from loadstone.plan.stream import TotalRate
from loadstone.study.controller import Next
from loadstone.study.ladder import Ladder
from loadstone.study.listed import ListController
from loadstone.study.run import Hooks, StudyAsked, run_study

from . import simulated

if TYPE_CHECKING:
    from pathlib import Path

ASKED = StudyAsked("list", "a ladder", "vdbench", {}, {})


def ladder() -> Ladder:
    work = simulated.workload()

    def rung(percent: float, maximum_iops: float) -> Next:
        rate = TotalRate(iops=maximum_iops * percent / 100, process=RateProcess.LINEAR)
        return Next(f"rd1_({percent:g}%)", work, {"rate_percent": percent}, rate=rate)

    return Ladder(Next("rd1_(max)", work, role="maximum"), [10, 70], rung)


def test_rungs_are_shares_of_the_measured_maximum(tmp_path: Path) -> None:
    controller = ListController([ladder(), Next("after", simulated.workload(1))])
    assert controller.expected() == 4
    outcome = run_study(
        controller, asked=ASKED, out_dir=tmp_path / "s", hooks=Hooks(simulated.on(simulated.device(50_000)))
    )
    assert [point.name for point in outcome.study.points] == ["rd1_(max)", "rd1_(10%)", "rd1_(70%)", "after"]
    rates = [one.summary.total.data.iops.value for one in outcome.done]  # type: ignore[union-attr]
    assert rates == pytest.approx([20_000, 2_000, 14_000, 20_000], rel=0.01)


def test_a_ladder_without_a_maximum_ends_and_the_list_goes_on(tmp_path: Path) -> None:
    broken = simulated.on(lambda wanted: simulated.device(error_ppm=1_000_000 * (wanted.role == "maximum")))
    controller = ListController([ladder(), Next("after", simulated.workload(1))])
    outcome = run_study(
        controller, asked=ASKED, out_dir=tmp_path / "s", hooks=Hooks(broken), after_failure="go_on"
    )
    assert [point.name for point in outcome.study.points] == ["rd1_(max)", "after"]
    assert controller.expected() == 2
    assert outcome.exit_code == 1
