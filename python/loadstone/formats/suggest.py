"""The nearest valid name to a wrong one. Knows nothing else."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, valid: Iterable[str], *, limit: int = 12) -> str | None:
    """Return a hint: the nearest valid name, or all of them when they are few."""
    choices = sorted(set(valid))
    close = difflib.get_close_matches(name[:64], choices, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "valid are: " + ", ".join(choices) if 0 < len(choices) <= limit else None
