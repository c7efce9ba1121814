"""The bytes of a file that a person or a foreign file names: a job file, a data sheet, a result.

Knows that a name may lead to a device, which may have no end, to a pipe, which tells no size and may have
nobody at its other end, or to a file of the kernel's, which may keep its reader waiting for ever: never
more is read than such a file may have, and nothing is waited for longer than `SILENCE_S`. Knows no format.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
from typing import TYPE_CHECKING, Final

from loadstone import file_kind, slow_answer
from loadstone.errors import InputError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.errors import Where


MOST_BYTES: Final = 16 << 20
"""What a person or a program writes for us to read is not larger."""
SILENCE_S: Final = 60
"""Longest time that whoever writes into a pipe may take for the next bytes."""
_PIECE_BYTES: Final = 1 << 20


class NoFileError(OSError):
    """A name leads to what is neither a file nor a pipe."""

    def __init__(self, mode: int) -> None:
        super().__init__(errno.EINVAL, f"it is {file_kind.words(mode)}")
        self.mode = mode


class OpenInput:
    """A file or a pipe that is open for reading."""

    def __init__(self, descriptor: int, name: Path | str) -> None:
        self._descriptor = descriptor
        self._name = name
        self.status: Final = os.fstat(descriptor)
        if not _is_read(self.status.st_mode):
            raise NoFileError(self.status.st_mode)
        self._is_pipe = stat.S_ISFIFO(self.status.st_mode)

    def read(self, most_bytes: int) -> bytes:
        """Return what is left, or the first of it. Raises OSError, also when nothing comes for too long."""
        # A file without a size is empty, or the kernel's: /proc/kmsg waits, and what is read there is gone.
        left = most_bytes if self._is_pipe or self.status.st_size else 0
        pieces = []
        while left and (piece := self._piece(min(left, _PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def _piece(self, most_bytes: int) -> bytes:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        with slow_answer.told(self._name, is_pipe=self._is_pipe):
            if self._is_pipe and not waiting.poll(SILENCE_S * 1000):
                raise TimeoutError(errno.ETIMEDOUT, say("program.input.silent_pipe", silence=str(SILENCE_S)))
            return os.read(self._descriptor, most_bytes)


@contextlib.contextmanager
def opened(path: Path | str) -> Iterator[OpenInput]:
    """Open what a name leads to. Raises OSError; `NoFileError` for a device, a socket or a directory."""
    with slow_answer.told(path):
        # Before it is opened: opening a device may already do something.
        if not _is_read(mode := os.stat(path).st_mode):  # noqa: PTH116 - text, as a job file has it
            raise NoFileError(mode)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        yield OpenInput(descriptor, path)
    finally:
        os.close(descriptor)


def start(path: Path | str, most_bytes: int) -> bytes:
    """Return a file, or the first bytes of a longer one. Raises OSError as `opened` and `read` do."""
    with opened(path) as file:
        return file.read(most_bytes)


def read(path: Path, what: str, most_bytes: int = MOST_BYTES, where: Where | None = None) -> bytes:
    """Return the content of a file that is to be a `what`. Raises InputError, also for a larger one."""
    try:
        content = start(path, most_bytes + 1)
    except NoFileError as other:
        raise make_error(
            InputError,
            "program.input.other_kind",
            where=where,
            hint=_hint(path, other.mode),
            path=path,
            kind=file_kind.words(other.mode),
            expected=_one(what),
        ) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise make_error(
            InputError, "program.input.unreadable", where=where, kind=what, path=path, reason=reason
        ) from None
    if len(content) > most_bytes:
        size = f"{most_bytes >> 20} MiB" if most_bytes >> 20 else f"{most_bytes} bytes"
        raise make_error(
            InputError, "program.input.large", where=where, path=path, most=size, expected=_one(what)
        )
    return content


def _one(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def _is_read(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _hint(path: Path, mode: int) -> str:
    if stat.S_ISBLK(mode):
        return say("program.input.probe_target", path=path)
    return say("program.input.name_file")
