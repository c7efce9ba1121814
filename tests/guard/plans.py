"""Small Plans for the guard: what is written where is all that matters to it."""

from __future__ import annotations

import json
from typing import Any

from loadstone.plan.model import Plan
from tests.support import plans
from tests.support.plans import target

__all__ = ["plan", "target"]


def plan(
    *targets: dict[str, Any],
    read: int = 0,
    write: int = 100,
    trim: int = 0,
    backend: dict[str, Any] | None = None,
    **limits: Any,
) -> Plan:
    """One stream with the given shares over all targets, 4 KiB random."""
    assert read + write + trim == 100
    stream = plans.stream(
        files=[
            {"target": index, "cell": index, "offset_bytes": 0, "length_bytes": one["size_bytes"]}
            for index, one in enumerate(targets)
        ],
        read_percent=read,
        trim_percent=trim,
        repeat=True,
        iodepth=1,
        **({"bytes": 1 << 20} | limits),
    )
    workers = [plans.worker(backend or {"type": "psync"})]
    return Plan.model_validate_json(json.dumps(plans.plan(list(targets), [stream], workers)))
