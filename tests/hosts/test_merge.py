"""Plans of several hosts as one."""

from __future__ import annotations

import json

from loadstone.hosts.merge import merged_plan
from loadstone.plan.model import Plan
from tests.support import plans


def test_every_target_is_told_with_its_host() -> None:
    """Those of the simulated device were not: the table of targets had one name twice."""
    stream = plans.stream(length_bytes=1 << 20, block_bytes=4096, read_percent=100)
    one = Plan.model_validate_json(
        json.dumps(plans.plan([plans.target("a.0.0", "virtual", 1 << 20)], [stream]))
    )
    merged = merged_plan({"h1": one, "h2": one}).plan
    assert [target.path for target in merged.targets] == ["h1:a.0.0", "h2:a.0.0"]
