"""The live display on a console that only remembers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from loadstone.cli import live, talk
from tests.guard.plans import plan, target

if TYPE_CHECKING:
    import pytest


def shown(monkeypatch: pytest.MonkeyPatch, *events: dict[str, Any], height: int = 24) -> str:
    out = io.StringIO()
    screen = Console(file=out, force_terminal=True, width=100, height=height, color_system=None)
    monkeypatch.setattr(talk, "console", lambda: screen)
    monkeypatch.setattr(live, "DRAW_EVERY_S", 0.0)
    display = live.LiveProgress()
    display.begin(plan(target("/dev/a"), runtime_ns=90_000_000_000), Path("runs/1"))
    for event in events:
        display.event(event)
    display.finish()
    return out.getvalue()


ROW = {"cell": 0, "op": "read", "ramp": False, "ops": 12345, "bytes": 3 << 20, "errors": 0}
ROW |= {"p50_ns": 1500, "p99_ns": 2_500_000, "max_ns": 3_000_000_000, "inflight": 7}


def test_a_tick_shows_rates_latencies_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = {"type": "tick", "t_ns": 1_000_000_000, "rows": [ROW]}
    text = shown(monkeypatch, {"type": "start"}, tick).replace("\N{NO-BREAK SPACE}", " ")
    for part in ("bundle: runs/1", "12.3k", "3.00 MiB/s", "1.50 µs", "2.50 ms", "3.00 s", "89 s left"):
        assert part in text
    assert "errors" in text
    assert "0 errors" not in text


def test_layout_and_notes_and_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = {"type": "layout", "target": 0, "done_bytes": 1 << 20, "total_bytes": 4 << 20}
    note = {"type": "note", "text": "registered buffers [were] refused"}
    tick = {"type": "tick", "t_ns": 1_000_000_000, "rows": [ROW | {"errors": 2}]}
    text = shown(monkeypatch, layout, note, {"type": "start"}, {"type": "stop"}, tick)
    assert "(25%)" in text
    assert "note: registered buffers [were] refused" in text
    assert "2 errors, stopping; Ctrl-C again leaves at once" in text
