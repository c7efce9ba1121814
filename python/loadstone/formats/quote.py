"""Which parts of a file may be quoted before it is known to be a job file.

`include=/etc/shadow`, or any path given by mistake, must not put a line of that file on a screen or
into a log: only what looks like the name of an option with a value, or is near a known one, is shown.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
UNSHOWN: Final = "this line"


def name(text: str, *, has_value: bool = False, known: Iterable[str] = ()) -> str | None:
    """Return a name as it may be shown, None when it may be anything."""
    if text in (known := list(known)):
        return text
    if not NAME.fullmatch(text):
        return None
    near = has_value or bool(difflib.get_close_matches(text, known, n=1, cutoff=0.6))
    return text if near else None


def line(text: str, known: Iterable[str] = ()) -> str:
    """Return the name before `=` in quotes where it may be shown, else `this line`."""
    before, equals, after = text.partition("=")
    shown = name(before.strip(), has_value=bool(equals and after.strip()), known=known)
    return UNSHOWN if shown is None else repr(shown)
