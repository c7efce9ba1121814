"""What a name leads to, in words: a file, a directory, a pipe, a device."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_KINDS: Final = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def is_file(path: Path) -> bool:
    """Tell whether a name leads to a regular file; False where we may not look (`Path.is_file` raises)."""
    return stat.S_ISREG(_mode(path))


def is_directory(path: Path) -> bool:
    """Tell whether a name leads to a directory; False where we may not look."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def words(mode: int) -> str:
    """Return what has this mode (`st_mode` of stat(2)), with its article."""
    return next((kind for is_it, kind in _KINDS if is_it(mode)), "something of no known kind")
