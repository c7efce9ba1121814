"""Standard output that may be full, closed, or in an encoding without our letters.

What it does not take goes to standard error, so that no figure is lost. Knows streams and letters;
does not know what is printed.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

PLAIN: Final = {
    "±": "+-", "µ": "u", "μ": "u", "×": "x", "·": "*", "–": "-", "—": "-", "…": "...", "≥": ">=", "≤": "<=",
    "→": "->", "←": "<-", "∞": "inf", "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ",
    "\N{THIN SPACE}": " ", "°": " deg ", "²": "2", "³": "3", "█": "#", "▏": "|",
}  # fmt: skip
"""Letters we print, for encodings that have none of them."""


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
            self._fail(OSError(0, "it is closed"))
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
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, if it can be."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Bring it out, if it can be."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


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
