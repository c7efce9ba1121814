"""The two screens: talk on standard error while a verb works, tables on standard output.

Knows the terminal's habits (colour, width, NO_COLOR).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from loadstone import messages
from loadstone.notes import once, place
from loadstone.printable import message
from loadstone.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.api.types import Note


PIPE_WIDTH: Final = 120
"""A file or pipe has no width; there a table need not be squeezed into 80 columns."""


def data() -> Screen:
    """Return a screen on standard output."""
    return Screen(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def console() -> Screen:
    """Return a console on standard error."""
    return Screen(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a message; its further lines are indented."""
    console().print(message(text), markup=False)


def memory(needed_bytes: int) -> None:
    """Say, before the start, how much memory the engine will hold."""
    say(messages.say("cli.run.memory", needed_bytes=needed_bytes))


def notes(unsorted: Iterable[Note]) -> None:
    """Print notes, what changes the meaning first."""
    rank = {"changed": 0, "trap": 1, "info": 2, "harmless": 3}
    out = console()
    for note, others in once(sorted(unsorted, key=lambda note: rank[note.kind])):
        line = f"{note.kind}: {place(note.where, others)}{note.text}"
        out.print(line, markup=False, style="dim" if rank[note.kind] > 1 else None)


def doubts(texts: Iterable[str]) -> None:
    """Say why numbers may not be those that were measured, or not all of them."""
    for text in dict.fromkeys(texts):
        say(f"warning: {text}")


def on_terminal() -> bool:
    """Whether somebody can be asked: both ends of the talk are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()
