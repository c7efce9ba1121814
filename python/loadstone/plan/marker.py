"""The mark Loadstone leaves on files it created: an extended attribute.

A marked file may be written again without consent. While a file is being laid out its mark
says so: it may have its full length and yet hold extents that were never written and read
many times faster than data, so a run that was killed then must not count as preparation.
File systems without user attributes keep no mark; there a file needs consent next time.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "user.loadstone"
READY: Final = b"1"
UNFINISHED: Final = b"unfinished"


def read(path: Path) -> bytes | None:
    """Return the mark of a file, `None` when it has none."""
    try:
        return os.getxattr(path, NAME)
    except OSError:
        return None


def write(path: Path, mark: bytes) -> None:
    """Mark a file, where the file system can."""
    with contextlib.suppress(OSError):
        os.setxattr(path, NAME, mark)
