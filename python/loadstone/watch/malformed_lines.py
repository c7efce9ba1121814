"""Lines that a watched host prints, where it prints something else than its manual says.

Knows that such a line costs its own columns and nothing else. Knows no system.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Final, ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable

Given = ParamSpec("Given")
NONSENSE: Final = (ValueError, LookupError, ArithmeticError, TypeError)
DIGITS: Final = 19
"""Of the largest number that a counter has."""


def tolerant(read: Callable[Given, None]) -> Callable[Given, None]:
    """Leave out what a reader cannot make sense of."""

    @functools.wraps(read)
    def reading(*arguments: Given.args, **named: Given.kwargs) -> None:
        with contextlib.suppress(*NONSENSE):
            read(*arguments, **named)

    return reading


def whole(text: str) -> int | None:
    """Return a number as a counter may have it; None for anything else."""
    return int(text) if text.isdecimal() and len(text) <= DIGITS else None
