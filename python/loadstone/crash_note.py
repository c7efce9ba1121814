"""What is to be said of a run when this process cannot say it any more.

A page of memory that is shared with the process that waits for this one (`cli.supervisor`): a
library that aborts, or the OOM killer, leaves it whole. Knows bytes only.
"""

from __future__ import annotations

import mmap
import struct
from typing import Final

SIZE_BYTES: Final = 16 << 10
_LENGTH: Final = struct.Struct("<I")

_page: mmap.mmap | None = None
_text = ""
"""What was noted, where there is no page."""


def share() -> None:
    """Make the page; processes that are forked from now on share it."""
    global _page  # noqa: PLW0603 # one per program
    _page = mmap.mmap(-1, SIZE_BYTES)


def note(text: str) -> None:
    """Keep a text in place of the one before."""
    global _text  # noqa: PLW0603 # one per program
    if _page is None:
        _text = text
        return
    said = text.encode(errors="replace")[: SIZE_BYTES - _LENGTH.size]
    # The length is 0 while the text changes: who is killed in between leaves nothing, not a mixture.
    _LENGTH.pack_into(_page, 0, 0)
    _page[_LENGTH.size : _LENGTH.size + len(said)] = said
    _LENGTH.pack_into(_page, 0, len(said))


def read() -> str:
    """Return what was noted last; empty when nothing was."""
    if _page is None:
        return _text
    (length,) = _LENGTH.unpack_from(_page, 0)
    return bytes(_page[_LENGTH.size : _LENGTH.size + length]).decode(errors="replace")
