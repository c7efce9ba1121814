"""What is to be said of a run when this process cannot say it any more, and what its terminal is owed.

Also whether it is about something that is to be ended in its own order, or has changed settings.

A page of memory that is shared with the process that waits for this one (`cli.supervisor`): a
library that aborts, or the OOM killer, leaves it whole. Knows bytes only.
"""

from __future__ import annotations

import mmap
import struct
from typing import Final

SIZE_BYTES: Final = 16 << 10
"""Of one text."""
_LENGTH: Final = struct.Struct("<I")
_FIGURES: Final = 0
_OWED: Final = 1
_IN_ORDER: Final = 2 * SIZE_BYTES
_CHANGED: Final = _IN_ORDER + 1

_page: mmap.mmap | None = None
_texts = ["", ""]
"""What was noted, where there is no page."""


def share() -> None:
    """Make the page; processes that are forked from now on share it."""
    global _page  # noqa: PLW0603 # one per program
    _page = mmap.mmap(-1, _CHANGED + 1)


def is_shared() -> bool:
    """Whether another process waits for this one, and says what it cannot."""
    return _page is not None


def note(text: str) -> None:
    """Keep the figures of the run in place of those before."""
    _keep(_FIGURES, text)


def read() -> str:
    """Return the figures that were noted last; empty when none were."""
    return _text_at(_FIGURES)


def owe(text: str) -> None:
    """Keep what must still be written to the terminal, in place of what was owed before."""
    _keep(_OWED, text)


def owed() -> str:
    """Return what must still be written to the terminal."""
    return _text_at(_OWED)


def end_in_order(needed: bool) -> None:
    """Say whether what is being done is worth waiting for when somebody asks for its end."""
    if _page is not None:
        _page[_IN_ORDER] = needed


def ends_in_order() -> bool:
    """Whether a request to end is answered by whoever works, however long that takes."""
    return settings_are_changed() or (_page is not None and bool(_page[_IN_ORDER]))


def change_settings(changed: bool) -> None:
    """Say whether settings of the machine are changed and not yet put back."""
    if _page is not None:
        _page[_CHANGED] = changed


def settings_are_changed() -> bool:
    """Whether settings of the machine would stay changed, were this the end."""
    return _page is not None and bool(_page[_CHANGED])


def _keep(place: int, text: str) -> None:
    if _page is None:
        _texts[place] = text
        return
    at = place * SIZE_BYTES
    encoded = text.encode(errors="replace")[: SIZE_BYTES - _LENGTH.size]
    # The length is 0 while the text changes: who is killed in between leaves nothing, not a mixture.
    _LENGTH.pack_into(_page, at, 0)
    _page[at + _LENGTH.size : at + _LENGTH.size + len(encoded)] = encoded
    _LENGTH.pack_into(_page, at, len(encoded))


def _text_at(place: int) -> str:
    if _page is None:
        return _texts[place]
    at = place * SIZE_BYTES
    (length,) = _LENGTH.unpack_from(_page, at)
    return bytes(_page[at + _LENGTH.size : at + _LENGTH.size + length]).decode(errors="replace")
