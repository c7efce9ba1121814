"""What a name leads to, in words: a file, a directory, a pipe, a device."""

from __future__ import annotations

import stat
from typing import Final

_KINDS: Final = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def words(mode: int) -> str:
    """Return what has this mode (`st_mode` of stat(2)), with its article."""
    return next((kind for is_it, kind in _KINDS if is_it(mode)), "something of no known kind")
