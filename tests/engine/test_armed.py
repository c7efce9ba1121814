"""An engine that waits for the time of its start."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engine.process import EngineProcess
from loadstone.engine.watchdog import Watchdog, WatchdogAction
from tests.support import plans

if TYPE_CHECKING:
    from pathlib import Path


def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    target = plans.target("null", "virtual")
    made = plans.plan([target], [plans.stream(ops=1000)], [plans.worker(plans.NULL)])
    path.write_text(json.dumps(made))
    return path


def until_armed(engine: EngineProcess) -> tuple[Any, dict[str, Any]]:
    events = engine.events(60.0)
    for event in events:
        assert event is not None
        assert event["type"] != "start"
        if event["type"] == "armed":
            return events, event
    raise AssertionError("it ended before it was armed")


def test_it_starts_when_it_is_told_and_the_first_order_stands(tmp_path: Path) -> None:
    with EngineProcess(plan(tmp_path), tmp_path, arm=True) as engine:
        events, _ = until_armed(engine)
        at_ns = time.monotonic_ns() + 300_000_000
        engine.start_at(at_ns)
        engine.start_at(at_ns + 3600 * 10**9)
        rest = {event["type"]: event for event in events if event is not None}
        assert engine.wait(60.0) == 0
    # Its clock is calibrated at the start, and beside other load some hundred ns off the kernel's.
    assert rest["start"]["monotonic_ns"] >= at_ns - 10_000
    assert rest["start"]["first_ns"] < 10**9
    # Waiting for the order is no part of starting up.
    assert rest["start"]["startup_ns"] < rest["start"]["monotonic_ns"]
    assert rest["end"] == {**rest["end"], "reason": "done", "ops": 1000}


@pytest.mark.parametrize("order", ["stop", "gone"])
def test_without_a_start_it_ends_with_its_parent_or_when_told(tmp_path: Path, order: str) -> None:
    with EngineProcess(plan(tmp_path), tmp_path, arm=True) as engine:
        events, _ = until_armed(engine)
        if order == "stop":
            engine.stop()
        else:
            engine._pipes[0].close()
        rest = [event for event in events if event is not None]
        assert engine.wait(60.0) == 0
    assert "start" not in {event["type"] for event in rest}
    assert [event["ops"] for event in rest if event["type"] == "end"] == [0]


def test_an_armed_engine_may_be_silent_as_long_as_nobody_asks_for_its_end() -> None:
    watch = Watchdog(1.0, 10.0, 0.0)
    watch.heard("armed", 1.0)
    assert watch.look(100_000.0) is WatchdogAction.NOTHING
    watch.asked(100_000.0)
    assert watch.look(100_040.0) is WatchdogAction.WARN
    assert watch.look(100_041.0) is WatchdogAction.KILL
    watch = Watchdog(1.0, 10.0, 0.0)
    watch.heard("armed", 1.0)
    watch.heard("start", 2.0)
    assert watch.look(20.0) is WatchdogAction.WARN
