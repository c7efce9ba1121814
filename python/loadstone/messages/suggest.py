"""The nearest valid name to a wrong one, as a hint."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, valid: Iterable[str], *, limit: int = 12) -> str | None:
    """Return a hint: the nearest valid name, or all of them when they are few."""
    choices = sorted(set(valid))
    close = difflib.get_close_matches(name[:64], choices, n=1, cutoff=0.6)
    if close:
        return say("api.name.near", name=repr(close[0]))
    return say("api.name.valid", names=", ".join(choices)) if 0 < len(choices) <= limit else None
