"""The nearest valid names to a wrong one, as a hint."""

from __future__ import annotations

import difflib
import itertools
import re
from typing import TYPE_CHECKING, Final

from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Iterable


_MOST_LONGER: Final = 2
"""More names that begin as what was typed say nothing about which was meant."""


def nearest(name: str, valid: Iterable[str], *, limit: int = 12) -> str | None:
    """Return a hint: the nearest valid name, those that go on as what was typed, or all when they are few."""
    choices = sorted(set(valid))
    best = meant_by(name, choices)
    if best is not None:
        longer = [] if best.startswith(name) else [one for one in choices if one.startswith(name)]
        near = [best, *(longer if len(longer) <= _MOST_LONGER else [])]
        return say("api.name.near", name=" or ".join(map(repr, near)))
    if parts := [one for one in choices if name in re.split(r"[-_. ]", one)][:_MOST_LONGER]:
        return say("api.name.near", name=" or ".join(map(repr, parts)))
    return say("api.name.valid", names=", ".join(choices)) if 0 < len(choices) <= limit else None


def meant_by(name: str, choices: Iterable[str]) -> str | None:
    """Return the valid name that a misspelt one is nearest to; None where none is near."""
    close = difflib.get_close_matches(name[:64], list(choices), n=8, cutoff=0.6)
    return max(close, key=lambda one: _likeness(name[:64], one)) if close else None


def _likeness(name: str, other: str) -> float:
    """Return how alike two names are; who mistypes one begins it right (Winkler 1990)."""
    alike = difflib.SequenceMatcher(None, other, name).ratio()
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(name[:4], other, strict=False))
    return alike + 0.1 * sum(1 for _ in same) * (1 - alike)
