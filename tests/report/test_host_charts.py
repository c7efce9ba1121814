"""The host's charts of a long run: no more pieces than can be told apart, and nothing lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.path.layers import Layer
from loadstone.report.pictures import charts
from tests.support.paths import run_on
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 1300


@pytest.mark.in_turn
def test_seconds_of_a_long_run_are_added_up(tmp_path: Path) -> None:
    told = {"cpu.all.user_ns": 300_000_000, "cpu.all.idle_ns": 700_000_000, "memory.available_bytes": 1 << 30}
    job = MadeJob(ops_hz={"read": 1.0})
    made = run_on(tmp_path, [Layer(name="x", kind="disk")], told, job=job, seconds=SECONDS)
    spec = charts.host_cpu(made)
    assert spec is not None
    pieces = spec["data"]["values"]
    assert len(pieces) == -(-SECONDS // 3)
    assert (pieces[0]["t0"], pieces[0]["t1"], pieces[-1]["t1"]) == (0.0, 3.0, float(SECONDS))
    assert all(piece["high"] == pytest.approx(30) for piece in pieces)
    memory = charts.host_memory(made)
    assert memory is not None
    assert len(memory["data"]["values"]) == -(-SECONDS // 3)
