"""Live progress on a terminal: a small table that is drawn anew twice a second at most.

Knows rich and the terminal's height. What the rows mean is in `api.jobs.progress_table`. Off a terminal
there is no live progress at all.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.console import Group
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from loadstone import units
from loadstone.api.jobs.progress_table import PhaseTotals, ProgressRow, ProgressTable
from loadstone.cli.display import console

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import RenderableType

    from loadstone.api.types import Plan

DRAW_EVERY_S: Final = 0.5
HEADINGS: Final = ("job", "op", "IOPS", "bandwidth", "p50", "p99", "max", "in flight", "errors")
SPARE: Final = ("in flight", "max", "p50", "errors")
"""Columns that go where there is no room, in this order; the others stay whole."""
MIN_NAME: Final = 16
"""Characters of a job's name that are always shown."""
AROUND: Final = 5
"""Lines beside rows and watched hosts: heading, total, what is left out, bar, and that of the cursor."""
BAR: Final = 20
MAX_BAR_SHARE: Final = 0.3
"""Of the width."""


class LiveProgress:
    """A `session.Progress` that draws on standard error."""

    def __init__(self) -> None:
        self._console = console.console()
        self._live: Live | None = None
        self._board: ProgressTable | None = None
        self._drawn_s = 0.0
        self._told = 0
        self._lengths: list[int] = []
        """How long each line was that is on the screen."""
        self._stopping = False
        self._watched: dict[str, str] = {}
        """Name of a watched host to its line."""

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Start drawing."""
        self._board = ProgressTable(plan)
        self._console.print(f"bundle: {bundle}", markup=False, style="dim")
        # Drawn only when there is something new: a clock of its own would cost CPU beside the engine.
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def event(self, event: Mapping[str, Any]) -> None:
        """Take note of an event; draw if it is time."""
        if self._board is None or self._live is None:
            return
        if event.get("type") == "watched":
            self._watched[str(event["text"]).partition(":")[0]] = str(event["text"])
            return
        over = self._board.event(event)
        if over is not None:
            self._say(self._live, Text(_finished(self._board, over), "dim"))
        self._stopping = self._stopping or event.get("type") == "stop"
        for note in self._board.notes[self._told :]:
            self._say(self._live, Text(f"note: {note}", "dim"))
        self._told = len(self._board.notes)
        now_s = time.monotonic()
        if event.get("type") in {"tick", "layout"} and now_s - self._drawn_s >= DRAW_EVERY_S:
            self._drawn_s = now_s
            self._draw(self._live, self._picture(self._board))

    def _draw(self, live: Live, picture: RenderableType) -> None:
        """Draw anew."""
        self._gather()
        live.update(picture, refresh=True)
        self._measure(live)

    def _say(self, live: Live, text: Text) -> None:
        """Print a line that stays, above what is drawn, which is drawn again below it."""
        self._gather()
        self._console.print(text, soft_wrap=True)
        self._measure(live)

    def _gather(self) -> None:
        """Take away what a narrower terminal has broken into more lines, of which no library knows."""
        width = self._console.width
        more = sum(max(0, -(-one // width) - 1) for one in self._lengths) if width else 0
        for _ in range(more):
            self._console.control(Control((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1)))
        self._lengths = []

    def _measure(self, live: Live) -> None:
        lines = self._console.render_lines(live.renderable, pad=False)
        self._lengths = [Segment.get_line_length(one) for one in lines]

    def finish(self) -> None:
        """Stop drawing and leave the screen as it was."""
        if self._live is not None:
            self._gather()
            self._live.stop()

    def _picture(self, board: ProgressTable) -> RenderableType:
        layout = board.layout()
        if layout is not None:
            share = layout.done_bytes / layout.total_bytes if layout.total_bytes else 1.0
            done, total = units.size(layout.done_bytes), units.size(layout.total_bytes)
            return Text(f"writing the test files: {done} of {total} ({share:.0%})")
        rows, total_row, errors = board.take()
        # The total and what is left come first where there is no room for all. A terminal made narrower
        # breaks each line in two: what no longer fitted its screen would scroll away, and stay.
        room = max(1, self._console.height // 2 - AROUND - len(self._watched))
        shown = [(_cells(row), "") for row in rows[:room]]
        if total_row is not None and len(rows) > 1:
            shown.append((_cells(total_row), "bold"))
        caption = Text(self._caption(board, errors), no_wrap=True, overflow="ellipsis")
        table = drawn(shown, self._console.width)
        more = [Text(f"… {len(rows) - room} more", "dim")] if len(rows) > room else []
        watched = [Text(one, "dim", no_wrap=True, overflow="ellipsis") for one in self._watched.values()]
        return Group(table, *more, *watched, caption)

    def _caption(self, board: ProgressTable, errors: int) -> str:
        left_ns = board.left_ns()
        phase = f"phase {board.phase} of {board.phases}" if board.phases > 1 else ""
        share = board.share
        width = min(BAR, int(self._console.width * MAX_BAR_SHARE))
        bar = "" if share is None else f"{bar_of(share, width)} {share:.0%}"
        left = "until its bytes are done" if left_ns is None else f"{units.whole_seconds(left_ns / 1e9)} left"
        parts = [bar, left, phase, f"{errors} errors" if errors else ""]
        parts.append("stopping; Ctrl-C again leaves at once" if self._stopping else "")
        return " · ".join(filter(None, parts))


def bar_of(share: float, width: int) -> str:
    """Return a bar of so many characters."""
    full = round(width * min(max(share, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


def drawn(rows: list[tuple[tuple[str, ...], str]], width: int) -> Table:
    """Return the table in a width: columns go whole, and the last to shrink is the job's name."""
    kept = list(range(len(HEADINGS)))
    for spare in (None, *SPARE):
        if spare is not None:
            kept.remove(HEADINGS.index(spare))
        widths = [
            max(cell_len(text) for text in (HEADINGS[at], *(row[at] for row, _ in rows))) for at in kept
        ]
        if min(widths[0], MIN_NAME) + sum(widths[1:]) + 2 * (len(kept) - 1) <= width:
            break
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    room = max(MIN_NAME, width - sum(widths[1:]) - 2 * (len(kept) - 1))
    for place, at in enumerate(kept):
        most = min(widths[0], room) if place == 0 else widths[place]
        table.add_column(
            HEADINGS[at], justify="left" if at < 2 else "right", no_wrap=True, overflow="ellipsis", width=most
        )
    for row, style in rows:
        name, *others = (row[at] for at in kept)
        table.add_row(_shortened(name, min(widths[0], room)), *others, style=style)
    return table


def _shortened(name: str, most: int) -> str:
    """Return a name that keeps both its ends: jobs of one kind differ in the last."""
    if cell_len(name) <= most:
        return name
    end = most // 2
    return f"{name[: most - end - 1]}…{name[-end:]}"


def _finished(board: ProgressTable, over: PhaseTotals) -> str:
    """Say what a phase came to that is over; it stays on the screen."""
    iops, moved = over.iops, over.bytes_per_s
    rates = f"{units.count(iops)} IOPS, {units.bandwidth(moved)}" if iops is not None else "nothing measured"
    return f"phase {over.number} of {board.phases} done: {over.name}: {rates}"


def _cells(row: ProgressRow) -> tuple[str, ...]:
    return (
        row.job,
        f"{row.op} (ramp)" if row.ramp else row.op,
        units.count(row.iops),
        units.bandwidth(row.bytes_per_s),
        *(units.duration(value_ns or None) for value_ns in (row.p50_ns, row.p99_ns, row.max_ns)),
        str(row.inflight),
        str(row.errors),
    )
