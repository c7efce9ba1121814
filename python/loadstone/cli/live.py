"""Live progress on a terminal: a small table that is drawn anew twice a second at most.

Knows rich and the terminal's height. What the rows mean is in `cli.board`. Off a terminal
there is no live progress at all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from rich.live import Live
from rich.table import Table
from rich.text import Text

from loadstone import units
from loadstone.cli import talk
from loadstone.cli.board import Board, Row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from loadstone.plan.model import Plan

DRAW_EVERY_S: Final = 0.5
HEADINGS: Final = ("job", "op", "IOPS", "bandwidth", "p50", "p99", "max", "in flight", "errors")


class LiveProgress:
    """A `session.Progress` that draws on standard error."""

    def __init__(self) -> None:
        self._console = talk.console()
        self._live: Live | None = None
        self._board: Board | None = None
        self._drawn_s = 0.0
        self._told = 0
        self._stopping = False

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Start drawing."""
        self._board = Board(plan)
        self._console.print(f"bundle: {bundle}", markup=False, style="dim")
        # Drawn only when there is something new: a clock of its own would cost CPU beside the engine.
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def event(self, event: Mapping[str, Any]) -> None:
        """Take note of an event; draw if it is time."""
        if self._board is None or self._live is None:
            return
        self._board.event(event)
        self._stopping = self._stopping or event.get("type") == "stop"
        for note in self._board.notes[self._told :]:
            self._console.print(f"note: {note}", markup=False, style="dim")
        self._told = len(self._board.notes)
        now_s = time.monotonic()
        if event.get("type") in {"tick", "layout"} and now_s - self._drawn_s >= DRAW_EVERY_S:
            self._drawn_s = now_s
            self._live.update(self._picture(self._board), refresh=True)

    def finish(self) -> None:
        """Stop drawing and leave the screen as it was."""
        if self._live is not None:
            self._live.stop()

    def _picture(self, board: Board) -> RenderableType:
        layout = board.layout()
        if layout is not None:
            share = layout.done_bytes / layout.total_bytes if layout.total_bytes else 1.0
            done, total = units.size(layout.done_bytes), units.size(layout.total_bytes)
            return Text(f"writing the test files: {done} of {total} ({share:.0%})")
        rows, total_row, errors = board.take()
        table = Table(box=None, pad_edge=False, caption=self._caption(board, errors), caption_justify="left")
        for at, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="left" if at < 2 else "right", no_wrap=True)
        room = max(3, self._console.height - 6)
        for row in rows[:room]:
            table.add_row(*_cells(row))
        if len(rows) > room:
            table.add_row(f"… {len(rows) - room} more")
        if total_row is not None and len(rows) > 1:
            table.add_row(*_cells(total_row), style="bold")
        return table

    def _caption(self, board: Board, errors: int) -> str:
        left_ns = board.left_ns()
        left = "until its bytes are done" if left_ns is None else f"{units.whole_seconds(left_ns / 1e9)} left"
        parts = [left, f"{errors} errors" if errors else ""]
        parts.append("stopping; Ctrl-C again leaves at once" if self._stopping else "")
        return ", ".join(filter(None, parts))


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.job,
        f"{row.op} (ramp)" if row.ramp else row.op,
        units.count(row.iops),
        units.bandwidth(row.bytes_per_s),
        *(units.duration(value_ns or None) for value_ns in (row.p50_ns, row.p99_ns, row.max_ns)),
        str(row.inflight),
        str(row.errors),
    )
