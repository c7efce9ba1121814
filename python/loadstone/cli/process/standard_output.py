"""Standard output that may be full, closed, or in an encoding without our letters.

What it does not take goes to standard error, so that no figure is lost. Standard error waits while a
display has the whole screen. Knows streams and letters; does not know what is printed.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TextIO

from loadstone import crash_note
from loadstone.messages import say
from loadstone.printable import unfiltered

if TYPE_CHECKING:
    from collections.abc import Iterable

PLAIN: Final = {
    "±": "+-", "µ": "u", "μ": "u", "×": "x", "·": "*", "–": "-", "—": "-", "…": "...", "≥": ">=", "≤": "<=",
    "→": "->", "←": "<-", "∞": "inf", "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ",
    "\N{THIN SPACE}": " ", "°": " deg ", "²": "2", "³": "3", "█": "#", "▏": "|",
}  # fmt: skip
"""Letters we print, for encodings that have none of them."""
RECENT_LINES: Final = 100


class StandardOutput:
    """Stands for `sys.stdout`. `failed`: why it takes nothing any more."""

    def __init__(self, stream: TextIO, *, closed: bool = False) -> None:
        self._stream = stream
        self._closed = closed
        self._unflushed: list[str] = []
        self.failed: str | None = None

    def write(self, text: str) -> int:
        """Write, or say it on standard error."""
        if self._closed and self.failed is None:
            self._fail(OSError(0, say("cli.output.closed")))
        if self.failed is not None:
            sys.stderr.write(text)
            return len(text)
        self._unflushed.append(text)
        try:
            self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            self._fail(error)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Bring it out."""
        if self.failed is not None:
            sys.stderr.flush()
            return
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            self._fail(error)
        self._unflushed.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fail(self, error: OSError) -> None:
        self.failed = error.strerror or str(error)
        with contextlib.suppress(OSError, ValueError):
            # What the stream still holds must not fail once more when the interpreter closes it.
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)
        sys.stderr.write(
            f"loadstone: standard output cannot be written: {self.failed}; what it was meant to get follows\n"
        )
        sys.stderr.writelines(self._unflushed)
        self._unflushed.clear()


class StandardError:
    """Stands for `sys.stderr`: where nobody listens, what is said is lost and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self.beneath = stream
        """The stream itself, for a display that holds this one."""
        self.recent: deque[str] = deque(maxlen=RECENT_LINES)
        """The lines that were said last, with the colours they have."""
        self._held: list[str] | None = None
        self._leave = ""

    def write(self, text: str) -> int:
        """Write, if it can be."""
        self.recent.extend(text.splitlines())
        if self._held is not None:
            self._held.append(text)
            crash_note.owe(self._leave + "".join(self._held))
            return len(text)
        with contextlib.suppress(OSError):
            self.beneath.write(text)
        return len(text)

    def hold(self, leave: str) -> None:
        """Keep what is said until `release`. `leave`: takes the display from the screen if we are killed."""
        self._held, self._leave = [], leave
        crash_note.owe(leave)

    def release(self) -> None:
        """Write what was kept."""
        lines, self._held = self._held or [], None
        crash_note.owe("")
        with contextlib.suppress(OSError):
            self.beneath.writelines(lines)
            self.beneath.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Bring it out, if it can be."""
        with contextlib.suppress(OSError):
            self.beneath.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


def standard_error() -> StandardError:
    """Return the one that stands for `sys.stderr`, or a new one where none does."""
    stream = unfiltered(sys.stderr)
    return stream if isinstance(stream, StandardError) else StandardError(stream)


def guarded(*, closed: bool) -> StandardOutput:
    """Put both in place, and let them take every letter. `closed`: we were started without an output."""
    codecs.register_error("loadstone.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and (stream.encoding or "").lower().replace("-", "") != "utf8":
            reconfigure(errors="loadstone.plain")
        elif reconfigure is not None:
            # Names of files may be bytes that are no text; they come out as they are.
            reconfigure(errors="surrogateescape")
    out = StandardOutput(sys.stdout, closed=closed)
    sys.stdout = out
    sys.stderr = StandardError(sys.stderr)
    return out


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in missing), error.end
