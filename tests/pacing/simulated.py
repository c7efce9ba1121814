"""Paced runs on the simulated device, through the whole tool: engine, bundle, analysis.

Time is virtual, so nothing here depends on how busy the machine is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from loadstone.analysis.summary import Summary, summarise
from loadstone.bundle.read import Bundle
from loadstone.plan.model import Plan
from loadstone.session import RunRequest, run_plan
from tests.support import plans

if TYPE_CHECKING:
    from pathlib import Path

SECOND_NS = 1_000_000_000


def rate(per_second: float, process: str = "linear", **changes: Any) -> dict[str, Any]:
    """An arrival rate in I/Os per second."""
    return {
        "amount": {"unit": "ops", "per_second": per_second},
        "process": process,
        "profile": [],
        "phase": 0.0,
        "minimum": 0.0,
        "min_window_ns": 0,
    } | changes


def run(
    directory: Path, backend: dict[str, Any], paces: list[dict[str, Any]], seconds: float, **changes: Any
) -> Summary:
    """Run one stream of reads per pace, side by side, and add the run up."""
    target = plans.target("simulated", kind="virtual", size_bytes=1 << 30)
    streams = [
        plans.stream(
            pace={"read": pace},
            runtime_ns=round(seconds * SECOND_NS),
            time_based=True,
            length_bytes=1 << 30,
            name=f"job.{index}",
            seed=index,
            **changes,
        )
        for index, pace in enumerate(paces)
    ]
    document = plans.plan([target], streams, [plans.worker(backend)], interval_ns=SECOND_NS)
    asked = RunRequest(
        request={"argv": [], "cwd": "/", "front_end": "run", "options": {}},
        inputs={},
        workload_json="{}",
        notes=[],
    )
    outcome = run_plan(
        Plan.model_validate_json(json.dumps(document)), request=asked, out_dir=directory / "run"
    )
    assert outcome.error is None, outcome.error
    return summarise(Bundle.open(outcome.bundle_path))
