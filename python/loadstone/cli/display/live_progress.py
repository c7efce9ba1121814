"""Live progress on a terminal: what was said and a table, drawn anew twice a second at most.

Knows rich, the terminal's two screens and its size. What the rows mean is in
`api.jobs.progress_table`. Off a terminal there is no live progress at all.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.console import Group
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from loadstone import units
from loadstone.api.jobs.progress_table import PhaseTotals, ProgressRow, ProgressTable
from loadstone.cli.display import console
from loadstone.cli.display.screen_keeper import ScreenKeeper
from loadstone.cli.process import standard_output
from loadstone.messages import say
from loadstone.printable import message

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import FrameType

    from rich.console import RenderableType

    from loadstone.api.types import Plan

DRAW_EVERY_S: Final = 0.5
HEADINGS: Final = (
    say("cli.live.job"),
    "op",
    "IOPS",
    say("cli.live.bandwidth"),
    "p50",
    "p99",
    "max",
    say("cli.live.in_flight"),
    say("cli.live.errors"),
)
SPARE: Final = (say("cli.live.in_flight"), "max", "p50", say("cli.live.errors"))
"""Columns that go where there is no room, in this order; the others stay whole."""
MIN_NAME: Final = 16
"""Characters of a job's name that are always shown."""
AROUND: Final = 4
"""Lines beside rows and watched hosts: heading, total, what is left out, and bar."""
MAX_SAID: Final = 3
"""What was said takes no more than one line in so many from a table that needs them."""
LEAVE: Final = "\x1b[2J\x1b[H\x1b[?1049l\x1b[?25h"
"""Takes the picture from the terminal and shows the cursor."""
ENTER: Final = "\x1b[?1049h\x1b[?25l"
BAR: Final = 20
MAX_BAR_SHARE: Final = 0.3
"""Of the width."""


class LiveProgress:
    """A `session.Progress` that draws over the whole terminal.

    On a screen of its own, which is put away at the end: of lines among the others, a terminal that is
    made narrower breaks some in two and scrolls them away, and they stay for ever. What is said meanwhile
    is shown above the table, and printed at the end.
    """

    def __init__(self) -> None:
        self._error = standard_output.standard_error()
        self._console = console.console()
        self._console.file = self._error.beneath
        self._keeper = ScreenKeeper(self._error.beneath, LEAVE)
        self._board: ProgressTable | None = None
        self._drawn_s = 0.0
        self._told = 0
        self._stopping = False
        self._watched: dict[str, str] = {}
        """Name of a watched host to its line."""
        self._stops: Any = signal.SIG_DFL
        """What happened on Ctrl-Z before."""

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Start drawing."""
        self._board = ProgressTable(plan)
        self._say(f"bundle: {bundle}")
        self._enter()
        if threading.current_thread() is threading.main_thread():
            self._stops = signal.signal(signal.SIGTSTP, self._stopped)

    def event(self, event: Mapping[str, Any]) -> None:
        """Take note of an event; draw if it is time."""
        if self._board is None:
            return
        if event.get("type") == "watched":
            self._watched[str(event["text"]).partition(":")[0]] = str(event["text"])
            return
        over = self._board.event(event)
        if over is not None:
            self._say(_finished(self._board, over))
        self._stopping = self._stopping or event.get("type") == "stop"
        for note in self._board.notes[self._told :]:
            self._say(f"note: {note}")
        self._told = len(self._board.notes)
        now_s = time.monotonic()
        if event.get("type") in {"tick", "layout"} and now_s - self._drawn_s >= DRAW_EVERY_S:
            self._drawn_s = now_s
            self._console.update_screen(self._picture(self._board))

    def finish(self) -> None:
        """Stop drawing, leave the screen as it was and print what was said."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTSTP, self._stops)
        self._leave()

    def _enter(self) -> None:
        self._error.hold(LEAVE)
        self._keeper.begin()
        self._console.set_alt_screen()
        self._console.show_cursor(show=False)

    def _leave(self) -> None:
        # A terminal that has no other screen keeps the picture unless it is wiped away.
        self._console.clear()
        self._console.set_alt_screen(enable=False)
        self._console.show_cursor()
        self._keeper.end()
        self._error.release()

    def _stopped(self, number: int, frame: FrameType | None) -> None:
        """Give the terminal back while the program is stopped.

        Where it takes nothing (Ctrl-S, a slow connection) a picture may be half written, and Python lets
        nobody write to the stream in the middle of that. The terminal is told past it, if it can be told.
        """
        try:
            self._leave()
        except RuntimeError:
            has_left = False
            _tell_terminal(LEAVE)
        else:
            has_left = True
        if callable(self._stops):
            self._stops(number, frame)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
        if has_left:
            self._enter()
        else:
            _tell_terminal(ENTER)

    def _say(self, text: str) -> None:
        """Say what is to stay."""
        self._error.write(f"{message(text)}\n")

    def _picture(self, board: ProgressTable) -> RenderableType:
        height = self._console.height
        message_lines = self._console.render_lines(
            Text("\n").join(map(Text.from_ansi, self._error.recent)), pad=False
        )
        below = self._below(board, room=height - min(len(message_lines), height // MAX_SAID))
        left = height - len(self._console.render_lines(below, pad=False))
        return Group(
            *(Segments([*line, Segment.line()]) for line in message_lines[-left:] if left > 0), below
        )

    def _below(self, board: ProgressTable, room: int) -> RenderableType:
        """Return the part that changes, in at most this many lines."""
        layout = board.layout()
        if layout is not None:
            share = layout.done_bytes / layout.total_bytes if layout.total_bytes else 1.0
            done, total = layout.done_bytes, layout.total_bytes
            return Text(
                say("cli.run.writing_files", done_bytes=done, total_bytes=total, share=f"{share:.0%}")
            )
        rows, total_row, errors = board.take()
        # The total and what is left come first where there is no room for all.
        most = max(1, room - AROUND - len(self._watched))
        shown = [(_cells(row), "") for row in rows[:most]]
        if total_row is not None and len(rows) > 1:
            shown.append((_cells(total_row), "bold"))
        caption = Text(self._caption(board, errors), no_wrap=True, overflow="ellipsis")
        table = drawn(shown, self._console.width)
        more = [Text(say("cli.live.more", count=len(rows) - most), "dim")] if len(rows) > most else []
        watched = [Text(one, "dim", no_wrap=True, overflow="ellipsis") for one in self._watched.values()]
        return Group(table, *more, *watched, caption)

    def _caption(self, board: ProgressTable, errors: int) -> str:
        left_ns = board.left_ns()
        phase = say("cli.live.phase", number=board.phase, phases=board.phases) if board.phases > 1 else ""
        share = board.share
        width = min(BAR, int(self._console.width * MAX_BAR_SHARE))
        bar = "" if share is None else f"{bar_of(share, width)} {share:.0%}"
        left = (
            say("cli.live.until_done")
            if left_ns is None
            else say("cli.live.left", length=units.whole_seconds(left_ns / 1e9))
        )
        parts = [bar, left, phase, say("cli.live.error_count", errors=errors) if errors else ""]
        parts.append(say("cli.run.stopping") if self._stopping else "")
        return " · ".join(filter(None, parts))


def _tell_terminal(text: str) -> None:
    """Write to the terminal past the stream, and only if it takes that at once."""
    if not os.isatty(2):
        return
    with contextlib.suppress(OSError):
        terminal = os.open("/proc/self/fd/2", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            os.write(terminal, text.encode())
        finally:
            os.close(terminal)


def bar_of(share: float, width: int) -> str:
    """Return a bar of so many characters."""
    full = round(width * min(max(share, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


def drawn(rows: list[tuple[tuple[str, ...], str]], width: int) -> Table:
    """Return the table in a width: columns go whole, and the last to shrink is the job's name."""
    columns = list(range(len(HEADINGS)))
    for spare in (None, *SPARE):
        if spare is not None:
            columns.remove(HEADINGS.index(spare))
        widths = [
            max(cell_len(text) for text in (HEADINGS[at], *(row[at] for row, _ in rows))) for at in columns
        ]
        if min(widths[0], MIN_NAME) + sum(widths[1:]) + 2 * (len(columns) - 1) <= width:
            break
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    room = max(MIN_NAME, width - sum(widths[1:]) - 2 * (len(columns) - 1))
    for place, at in enumerate(columns):
        most = min(widths[0], room) if place == 0 else widths[place]
        table.add_column(
            HEADINGS[at], justify="left" if at < 2 else "right", no_wrap=True, overflow="ellipsis", width=most
        )
    for row, style in rows:
        name, *others = (row[at] for at in columns)
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
    rates = (
        f"{units.count(iops)} IOPS, {units.bandwidth(moved)}" if iops is not None else say("cli.live.nothing")
    )
    return say("cli.run.phase_done", number=over.number, phases=board.phases, name=over.name, rates=rates)


def _cells(row: ProgressRow) -> tuple[str, ...]:
    return (
        row.job,
        say("cli.live.ramp", op=row.op) if row.ramp else row.op,
        units.count(row.iops),
        units.bandwidth(row.bytes_per_s),
        *(_percentile(row, value_ns) for value_ns in (row.p50_ns, row.p99_ns)),
        units.duration(row.max_ns or None),
        str(row.inflight),
        str(row.errors),
    )


def _percentile(row: ProgressRow, value_ns: int) -> str:
    """Write a percentile, or what it is at most: what holds of each job holds of all of them."""
    return f"{'≤' if row.bounds and value_ns else ''}{units.duration(value_ns or None)}"
