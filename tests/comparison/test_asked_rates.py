"""A rate that was asked for says that the storage reached it, not how fast that is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loadstone.api.comparing import Comparison
from loadstone.comparison.compare import compare
from tests.comparison.test_compare import at_rate

if TYPE_CHECKING:
    from pathlib import Path


def test_no_gate_passes_on_a_rate_that_was_asked_for(tmp_path: Path) -> None:
    """With `gtod_reduce` fio tells no latency: that 1,000 I/Os per second were held was a pass."""
    sides = [at_rate(tmp_path / name, 1000, factor) for name, factor in (("before", 1.0), ("after", 1.0005))]
    assert Comparison(compare(sides)).gate(detect=0.4) == "passed"
    for file in [file for side in sides for file in side.iterdir()]:
        told = json.loads(file.read_text())
        for name in ("lat_ns", "clat_ns", "slat_ns"):
            told["jobs"][0]["read"].pop(name, None)
        file.write_text(json.dumps(told))
    decided = Comparison(compare(sides)).decide(detect=0.4)
    assert decided.outcome == "not_detectable"
    assert decided.why[0].endswith("slower storage would not show")
