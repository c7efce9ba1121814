from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from loadstone.analysis.summary import summarise
from loadstone.bundle.read import Bundle
from loadstone.plan.model import Plan
from loadstone.report.run import page, terminal
from tests.support import runs
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path


def calibration(ceiling_iops: float) -> dict[str, Any]:
    stage = {"stage": 0, "ceiling_iops": ceiling_iops, "ops": 300_000, "measured_ns": 300_000_000}
    cpu = {"cpu_user_ns": 9_000_000, "cpu_system_ns": 0, "ops": 300_000}
    return {"type": "calibration", "stages": [stage], **cpu}


def printed(bundle: Bundle) -> str:
    out = io.StringIO()
    terminal.summary(summarise(bundle), Console(file=out, width=200, highlight=False))
    return out.getvalue()


def asked_for_2000(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Plans ask for 2,000 a second, whatever the samples say."""
    made = runs.plan_of

    def asked(jobs: tuple[MadeJob, ...], *rest: Any, **more: Any) -> Any:
        document = made(jobs, *rest, **more).model_dump(mode="json")
        for stream in document["streams"]:
            stream["pace"]["read"]["amount"]["per_second"] = 2_000.0
        return Plan.model_validate_json(json.dumps(document))

    monkeypatch.setattr(runs, "plan_of", asked)


@pytest.mark.parametrize(("done_hz", "words"), [(2_000.0, "rate held"), (1_000.0, "RATE NOT HELD")])
@pytest.mark.in_turn
def test_a_rate_and_whether_it_was_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done_hz: float, words: str
) -> None:
    asked_for_2000(monkeypatch)
    run = runs.make(tmp_path / "b", MadeJob("users", {"read": done_hz}, paced=True))
    bundle = Bundle.open(run.path)
    text = printed(bundle)
    assert f"{words}: users read" in text
    assert "of 2.00k/s; started late by p50" in text
    assert ("NOT HELD" in page.render(summarise(bundle))) == ("NOT" in words)


def test_many_rates_that_were_held_are_a_line_and_one_that_was_not_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for_2000(monkeypatch)
    jobs = [MadeJob(f"lun-{at}", {"read": 1_000.0 if at == 3 else 2_000.0}, paced=True) for at in range(6)]
    text = printed(Bundle.open(runs.make(tmp_path / "b", *jobs).path))
    lines = [line for line in text.splitlines() if line.lower().startswith("rate")]
    assert len(lines) == 2
    assert lines[0].startswith("RATE NOT HELD: lun-3 read: ")
    assert lines[1].startswith("rate held: 5 of 6 rates; the latest I/O started ")


@pytest.mark.parametrize(("ceiling", "share", "near"), [(1e6, 0.1, False), (1_500.0, 66.7, True)])
@pytest.mark.in_turn
def test_how_near_the_generator_was_to_its_limit(
    tmp_path: Path, ceiling: float, share: float, near: bool
) -> None:
    run = runs.make(tmp_path / "b", MadeJob(), extra_events=[calibration(ceiling)])
    bundle = Bundle.open(run.path)
    text = printed(bundle)
    found = re.search(r"Load generator: (\S+) %", text)
    assert found
    assert float(found[1]) == pytest.approx(share, rel=0.05)
    assert "30 ns user CPU per I/O" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert ("is part of the result" in text) == near
    assert "of the" in page.render(summarise(bundle))


def test_without_a_calibration_nothing_is_said_of_a_limit(tmp_path: Path) -> None:
    run = runs.make(tmp_path / "b", MadeJob())
    assert "Load generator" not in printed(Bundle.open(run.path))


@pytest.mark.in_turn
def test_what_watching_cost_and_what_was_given_up(tmp_path: Path) -> None:
    cost = {"type": "monitor_cost", "cpu_ns": 50_000_000, "rows": 5}
    cost |= {"by_collector": {"cpu": 10_000_000, "run_queue": 20_000_000}, "failed": {"tcp": "no number"}}
    made = summarise(Bundle.open(runs.make(tmp_path / "b", MadeJob(), extra_events=[cost]).path))
    text = page.render(made).replace("\N{NO-BREAK SPACE}", " ")
    assert "The monitors took 1 % of a CPU, most of it: run queue 0.400 %, cpu 0.200 %." in text
    assert "the monitor tcp was given up: no number" in text
    assert made.document()["tool"]["monitors"] == {"run_queue": 0.004, "cpu": 0.002}
