"""Did the engine do all that was planned."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loadstone.engine.completeness import PlannedStreams
from loadstone.plan.model import Plan
from tests.support import plans

SECOND_NS = 1_000_000_000


def plan(*changes: dict[str, Any], **top: Any) -> Plan:
    """Streams of 8 s and 1 s of ramp, each with its changes."""
    limits = {"runtime_ns": 8 * SECOND_NS, "ramp_ns": SECOND_NS, "time_based": True}
    streams = [plans.stream(**(limits | {"worker": one.pop("worker", 0)} | one)) for one in changes]
    workers = [plans.worker(stage=0), plans.worker(stage=1)]
    document = plans.plan([plans.target("/dev/null", "char")], streams, workers, **top)
    return Plan.model_validate_json(json.dumps(document))


def end(stream: int, reason: str, seconds: float = 9.0) -> dict[str, Any]:
    return {"stream": stream, "reason": reason, "started_ns": 5, "ended_ns": 5 + int(seconds * SECOND_NS)}


def missing(one: Plan, *ends: dict[str, Any], stage: int = -1, stream: int | None = None) -> list[str]:
    streams = PlannedStreams(one)
    streams.ordered_stage = stage
    if stream is not None:
        streams.ordered_streams.add(stream)
    for event in ends:
        streams.heard(event)
    return streams.missing()


@pytest.mark.parametrize("seconds", [9.0, 8.9, 9.5])
def test_a_stream_that_ran_its_time(seconds: float) -> None:
    assert missing(plan({}), end(0, "runtime", seconds)) == []


def test_a_stream_that_says_its_time_was_over_too_soon() -> None:
    assert missing(plan({}), end(0, "runtime", 1.0)) == [
        "stream 0 (job.0) ran 1.00\u00a0s of 9.00\u00a0s, and says that its time was over"
    ]


def test_a_stream_that_never_ended() -> None:
    assert missing(plan({}, {}), end(0, "runtime")) == [
        "stream 1 (job.0) never said that it ended: its worker is gone"
    ]


@pytest.mark.parametrize(
    "reason", ["bytes", "ops", "error", "hung", "damage", "found", "exhausted", "latency"]
)
def test_reasons_that_explain_a_short_stream(reason: str) -> None:
    assert missing(plan({}), end(0, reason, 0.1)) == []


def test_a_stream_that_was_stopped_needs_somebody_who_asked() -> None:
    assert missing(plan({}), end(0, "stopped", 1.0)) == [
        "stream 0 (job.0) was stopped without a request from loadstone"
    ]
    assert missing(plan({}), end(0, "stopped", 1.0), stage=0) == []
    assert missing(plan({}), end(0, "stopped", 1.0), stream=0) == []
    later = plan({}, {"worker": 1})
    ends = [end(0, "runtime"), end(1, "stopped", 1.0)]
    assert len(missing(later, *ends, stage=0)) == 1, "the order was for the stage before"


def test_a_stream_that_another_ends() -> None:
    assert missing(plan({}, {"ends_stage": True}), end(0, "stopped", 1.0), end(1, "bytes")) == []
    elsewhere = plan({}, {"ends_stage": True, "worker": 1})
    assert len(missing(elsewhere, end(0, "stopped", 1.0), end(1, "bytes"))) == 1


def test_a_steady_state_ends_its_streams() -> None:
    rule = {"streams": [0], "metric": "ops", "slope": False, "limit": 5.0, "percent": True}
    rule |= {"after_ns": 0, "sample_ns": 100_000_000, "samples": 3}
    assert missing(plan({}, steady=[rule]), end(0, "stopped", 1.0)) == []


def test_many_are_cut() -> None:
    found = missing(plan(*[{} for _ in range(9)]))
    assert len(found) == 6
    assert found[-1] == "and 4 more; see events.jsonl"
