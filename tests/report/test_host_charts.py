"""The host's charts of a long run: no more pieces than can be told apart, and nothing lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from loadstone.path.layers import Layer
from loadstone.report.pictures import host_charts, watched
from tests.support.paths import run_on
from tests.support.runs import MadeJob

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 1300


def test_rows_of_another_time_than_the_run_set_no_scale_and_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rows of eleven days later, with a thousand times the memory, made its chart a line at zero."""
    told = {"cpu.all.user_ns": 300_000_000, "cpu.all.idle_ns": 700_000_000, "memory.available_bytes": 1 << 30}
    made = run_on(
        tmp_path, [Layer(name="x", kind="disk")], told, job=MadeJob(ops_hz={"read": 1.0}), seconds=20
    )
    sound = [host_charts.host_cpu(made), host_charts.host_memory(made)]
    host = made.bundle.host("cpu.all.", "memory.")
    strange = [host.tail(3).with_columns(pl.col("t_ns") + later_ns) for later_ns in (10**15, -(10**14))]
    strange = [rows.with_columns(pl.col("memory.available_bytes") * 1000) for rows in strange]
    monkeypatch.setattr(type(made.bundle), "host", lambda *_: pl.concat([strange[1], host, strange[0]]))
    for spec, before in zip((host_charts.host_cpu(made), host_charts.host_memory(made)), sound, strict=True):
        assert spec is not None
        assert before is not None
        assert spec["data"]["values"] == before["data"]["values"]
        assert spec["title"] == {
            "text": before["title"], "subtitle": "6 rows of another time than the run's left out",
            "subtitleColor": "#555",
        }  # fmt: skip


@pytest.mark.in_turn
def test_seconds_of_a_long_run_are_added_up(tmp_path: Path) -> None:
    told = {"cpu.all.user_ns": 300_000_000, "cpu.all.idle_ns": 700_000_000, "memory.available_bytes": 1 << 30}
    job = MadeJob(ops_hz={"read": 1.0})
    made = run_on(tmp_path, [Layer(name="x", kind="disk")], told, job=job, seconds=SECONDS)
    spec = host_charts.host_cpu(made)
    assert spec is not None
    pieces = spec["data"]["values"]
    together = -(-SECONDS // host_charts.MAX_SECONDS)
    assert together > 1
    assert len(pieces) == SECONDS / together
    assert (pieces[0]["t0"], pieces[0]["t1"], pieces[-1]["t1"]) == (0.0, float(together), float(SECONDS))
    assert all(piece["high"] == pytest.approx(30) for piece in pieces)
    memory = host_charts.host_memory(made)
    assert memory is not None
    assert len(memory["data"]["values"]) == SECONDS / together


def test_a_strip_of_a_watched_host_has_the_scale_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run_on(tmp_path, [Layer(name="x", kind="disk")], {}, job=MadeJob(ops_hz={"read": 1.0}), seconds=20)
    points = [{"t": at, "v": value, "line": "sda"} for at, value in ((1.0, 5.0), (19.5, 6.0), (1e6, 9e9))]
    monkeypatch.setattr(watched, "_points", lambda *_: points)
    host, track = SimpleNamespace(interval_ns=10**9), SimpleNamespace(name="sda", unit="count")
    spec = watched._strip(made, "requests", [track], host, last=True)  # type: ignore[arg-type,list-item] # as read
    assert spec["data"]["values"] == points[:2]
    assert spec["title"]["text"] == "requests (1 row of another time than the run's left out)"
    points = points[2:]
    spec = watched._strip(made, "requests", [track], host, last=True)  # type: ignore[arg-type,list-item] # as read
    assert [row["v"] for row in spec["data"]["values"]] == [None]
