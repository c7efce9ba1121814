"""How full a file system is: a file beside everything else, as large as it takes.

Knows fallocate(2) and statvfs(3). Room that is allocated counts as used for the file system; a device
that counts what was written to it does not see it. The file outlives a reboot, after which its file
system may not be mounted: it can be removed only when that is. Nothing is ever written to it: one that
holds anything is somebody else's by now, and stays.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import re
import stat
from pathlib import Path
from typing import Final

from loadstone import holes
from loadstone.control.control_kind import Control
from loadstone.control.file_system_name import label, stable_name
from loadstone.errors import RefusedError
from loadstone.messages import make_error, say

FILE: Final = ".loadstone-fill"
NONE: Final = "as is"
CLOSE_PERCENT: Final = 2.0
"""What is read may differ so much from what was asked for: file systems keep some room for themselves."""
_PERCENT: Final = r"(\d{1,2}(?:\.\d+)?)\s*%"
_PIECE_BYTES: Final = 1 << 30
_READ_BYTES: Final = 1 << 20
_READ_WHOLE_BYTES: Final = 128 << 20
_PLACES: Final = 1024
_BLOCK_BYTES: Final = 1 << 16
_OURS: Final = re.compile(r"ls[0-9a-f]{8}(n\d+)?")
"""Labels of layouts, which go with all that is on them."""


class FillLevel(Control):
    """Percent of the file system that is used, root's reserve counted as used: `80%`."""

    by_name = True
    name, title, source = "fill_level", "how full a file system is", "docs/experiments.md"
    volatile, moves = False, True
    takes = (_PERCENT, "a percentage below 100 %, as 80%")

    def resolve(self, subject: str) -> list[str]:
        """Return the directory, as the kernel names it."""
        if not Path(subject).is_dir():
            raise make_error(RefusedError, "control.fill.no_directory", control=self.name, asked=subject)
        if not os.statvfs(subject).f_blocks:
            raise make_error(RefusedError, "control.fill.no_room", control=self.name, asked=subject)
        return [os.path.realpath(subject)]

    def read(self, subject: str) -> str | None:
        """Return how full it is, or `as is` where no file of ours fills it."""
        if not Path(subject).is_dir():
            return None
        return f"{used_percent(subject):.1f}%" if (Path(subject) / FILE).exists() else NONE

    def write(self, subject: str, value: str) -> None:
        """Fill it, or remove what fills it. Raises RefusedError for less than is used already."""
        path = Path(subject) / FILE
        if value == NONE:
            _remove(path)
            _settle(subject)
            return
        percent = _percent(value)
        _settle(subject)
        # 0600 and exclusive: nobody else's file is made longer.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._fill(file, subject, percent)
            os.fsync(file)
        finally:
            os.close(file)
        _settle(subject)

    def identity(self, subject: str) -> str:
        """Return the name of its file system over a reboot; empty where the file goes with it."""
        if not Path(subject).is_dir():
            return ""
        name = stable_name(subject)
        return "" if _OURS.fullmatch(label(subject)) or _OURS.fullmatch(name) else name

    def out_of_reach(self, subject: str, identity: str) -> str:
        """Return that its file system is not mounted where it was."""
        return (
            say("control.fill.out_of_reach", file_system=identity, place=subject, file=FILE)
            if identity
            else ""
        )

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether it is about as full as was asked for."""
        if NONE in (requested, value):
            return requested == value
        return abs(float(requested.rstrip(" %")) - float(value.rstrip(" %"))) <= CLOSE_PERCENT

    def refuses(self, subject: str, value: str) -> str:
        """Return why it cannot be made so full: what is there already fills it more."""
        if value == NONE:
            return ""
        if why := super().refuses(subject, value):
            return why
        now = used_percent(subject)
        if (Path(subject) / FILE).exists() or now <= _percent(value) + CLOSE_PERCENT:
            return ""
        return say("control.fill.fuller", now=f"{now:.0f}")

    def _fill(self, file: int, subject: str, percent: float) -> None:
        now = used_percent(subject)
        if now > percent + CLOSE_PERCENT:
            raise make_error(
                RefusedError,
                "control.fill.too_full",
                control=self.name,
                subject=subject,
                now=f"{now:.0f}",
                asked=f"{percent:g}",
            )

        left, at = _missing_bytes(subject, percent), 0
        while at < left:
            piece = min(_PIECE_BYTES, left - at)
            os.posix_fallocate(file, at, piece)
            at += piece


def _settle(folder: str) -> None:
    """Let a file system write down what it uses: btrfs tells room that was freed or taken when it does."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ctypes.CDLL(None).syncfs(file)
    finally:
        os.close(file)


def _remove(path: Path) -> None:
    """Remove the file that fills. Raises RefusedError where somebody's data has its name."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno == errno.ELOOP:  # A symbolic link.
            raise make_error(RefusedError, "control.fill.not_ours", path=path) from error
        raise
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or _holds_anything(file, status.st_size):
            raise make_error(RefusedError, "control.fill.not_ours", path=path)
        # Another file may have got the name meanwhile.
        if not os.path.samestat(status, path.lstat()):
            raise make_error(RefusedError, "control.fill.not_ours", path=path)
        path.unlink()
    finally:
        os.close(file)


def _holds_anything(file: int, size_bytes: int) -> bool:
    """Whether a file has a byte that is not zero, where it says that it has data and at places beside."""
    for start, length in _read_parts(file, size_bytes):
        at, end = start, start + length
        while at < end:
            block = os.pread(file, min(_READ_BYTES, end - at), at)
            if not block or block.strip(b"\0"):
                return True
            at += len(block)
    return False


def _read_parts(file: int, size_bytes: int) -> list[holes.Part]:
    """Return what is read: file systems were wrong about their holes, so not only what they call data.

    All of a file of up to `_READ_WHOLE_BYTES`; of a longer one its data, and a block from each of
    `_PLACES` equal parts.
    """
    if size_bytes <= _READ_WHOLE_BYTES:
        return [(0, size_bytes)]
    draw, part = random.SystemRandom(), size_bytes // _PLACES
    places = [number * part + draw.randrange(part - _BLOCK_BYTES) for number in range(_PLACES)]
    return [*holes.data(file, size_bytes), *((place, _BLOCK_BYTES) for place in places)]


def missing_bytes(folder: str, value: str) -> int:
    """Return what it takes to fill a file system as far as asked."""
    return 0 if value == NONE else _missing_bytes(folder, _percent(value))


def _percent(value: str) -> float:
    match = re.fullmatch(_PERCENT, value)
    if match is None:
        raise make_error(RefusedError, "control.fill.not_percent", control=FillLevel.name, found=repr(value))
    return float(match[1])


def _missing_bytes(folder: str, percent: float) -> int:
    status = os.statvfs(folder)
    most = (status.f_blocks - status.f_bfree + status.f_bavail) * status.f_frsize
    return max(0, int(most * (percent - used_percent(folder)) / 100))


def used_percent(folder: str) -> float:
    """Return how full a file system is, as df(1) tells it."""
    status = os.statvfs(folder)
    used = status.f_blocks - status.f_bfree
    whole = used + status.f_bavail
    return 100 * used / whole if whole else 0.0
