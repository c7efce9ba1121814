"""The live display on a console that only remembers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from loadstone import crash_note
from loadstone.api.jobs.progress_table import ProgressTable
from loadstone.cli.display import console, live_progress
from loadstone.cli.process import standard_output
from loadstone.printable import standard_streams
from tests.guard.plans import plan, target
from tests.support import runs
from tests.support.runs import MadeJob


def shown(monkeypatch: pytest.MonkeyPatch, *events: dict[str, Any], height: int = 24) -> str:
    out = io.StringIO()
    screen = Console(file=out, force_terminal=True, width=100, height=height, color_system=None)
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr(console, "console", lambda: screen)
    monkeypatch.setattr(live_progress, "DRAW_EVERY_S", 0.0)
    display = live_progress.LiveProgress()
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
    assert "2 errors · stopping; Ctrl-C again leaves at once" in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_important_columns_stay_whole_at_every_width(width: int) -> None:
    cells = (
        "a-job-with-a-long-name-of-its-own",
        "read",
        "123k",
        "1023 MiB/s",
        "12.3 µs",
        "99.9 ms",
        "1.50 s",
    )
    table = live_progress.drawn([((*cells, "128", "0"), "")] * 3, width)
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for part in ("read", "123k", "1023 MiB/s", "99.9 ms", "a-job-wit"):
        assert part in lines[1], (part, lines[1])
    for heading in ("IOPS", "bandwidth", "p99"):
        assert heading in lines[0]
    assert ("in flight" in lines[0]) == (width >= 120)


def test_a_phase_that_is_over_stays_on_the_screen_with_what_it_came_to() -> None:
    made = runs.plan_of((MadeJob("first"), MadeJob("second", stage=1)), 1, 10.0, 500_000_000)
    table = ProgressTable(made)
    table.event({"type": "start"})
    table.event({"type": "stage", "t_ns": 0, "stage": 0})
    for at in (1, 2, 3):
        rows = [ROW | {"ramp": at == 1}]
        assert table.event({"type": "tick", "t_ns": at * 1_000_000_000, "rows": rows}) is None
    assert (table.phase, table.phases) == (1, 2)
    assert table.share == pytest.approx(0.15)
    over = table.event({"type": "stage", "t_ns": 10_000_000_000, "stage": 1})
    assert over is not None
    assert (over.number, over.name, over.iops) == (1, "first", 12345)
    assert table.phase == 2
    assert table.share == pytest.approx(0.5)


def test_a_bar_is_as_long_as_its_room() -> None:
    assert live_progress.bar_of(0.5, 10) == "█████░░░░░"
    assert live_progress.bar_of(2.0, 4) == "████"


def test_what_is_drawn_goes_through_the_streams_that_let_only_printable_text_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(live_progress, "DRAW_EVERY_S", 0.0)
    with standard_streams():
        display = live_progress.LiveProgress()
        display.begin(plan(target("/dev/a"), runtime_ns=90_000_000_000), Path("runs/1"))
        display.event({"type": "start"})
        for at in (1, 2):
            display.event({"type": "tick", "t_ns": at * 1_000_000_000, "rows": [ROW]})
        display.finish()
    assert "\x1b[" in out.getvalue()
    assert "\\x1b" not in out.getvalue()


def test_what_is_said_meanwhile_is_shown_and_printed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", standard_output.StandardError(out))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(live_progress, "DRAW_EVERY_S", 0.0)
    console.say("said before")
    display = live_progress.LiveProgress()
    display.begin(plan(target("/dev/a"), runtime_ns=90_000_000_000), Path("runs/1"))
    display.event({"type": "start"})
    console.say("said meanwhile")
    assert crash_note.owed() == f"{live_progress.LEAVE}said meanwhile\n"
    display.event({"type": "tick", "t_ns": 1_000_000_000, "rows": [ROW]})
    display.finish()
    assert crash_note.owed() == ""
    drawn, leave, after = out.getvalue().partition(live_progress.LEAVE)
    assert leave
    for part in ("said before", "bundle: runs/1", "said meanwhile", "12.3k"):
        assert part in drawn.partition("\x1b[?1049h")[2]
    assert after == "said meanwhile\n"
