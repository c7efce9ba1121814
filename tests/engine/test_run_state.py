"""What a run comes to when its events are heard late, on a clock that the test moves."""

from __future__ import annotations

import json

import pytest

from loadstone.engine.run_state import RunState
from loadstone.plan.model import Plan
from tests.support import plans


def ending(ran_s: float, start_heard_s: float, end_heard_s: float) -> str | None:
    """The error of a run of so many seconds by the engine's clock; ours began at 0."""
    document = plans.plan([plans.target("/f")], [plans.stream()])
    state = RunState(Plan.model_validate_json(json.dumps(document)), 0.0)
    state.heard({"type": "start", "unix_ns": 0}, start_heard_s)
    state.heard({"type": "stream_end", "stream": 0, "reason": "runtime", "failed": [0] * 4}, end_heard_s)
    state.heard({"type": "end", "t_ns": int(ran_s * 1e9), "reason": "done"}, end_heard_s)
    ended = state.verdict(0)
    assert ended is not None
    return None if ended.error is None else str(ended.error)


@pytest.mark.parametrize("start_heard_s", [0.5, 9.9])
def test_whoever_reads_the_start_late_accuses_no_clock(start_heard_s: float) -> None:
    """Found on a busy host: an agent read `start` when half of the run was over."""
    assert ending(9.0, start_heard_s, 10.0) is None


def test_an_engine_that_ran_for_longer_than_we_know_it_has_a_wrong_clock() -> None:
    assert "a clock is wrong" in str(ending(30.0, 0.5, 10.0))
