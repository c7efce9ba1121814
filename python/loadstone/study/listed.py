"""A fixed list of runs, some of which may decide for themselves how they go on.

Knows order only. A part is a run, or a controller whose runs come in its place: each of the
four corners with a curve of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.study.controller import Controller, Done, Next

if TYPE_CHECKING:
    from collections.abc import Sequence


class ListController:
    """Runs its parts in their order. A part that is a controller sees its own runs only."""

    def __init__(self, parts: Sequence[Next | Controller]) -> None:
        self._parts = [_Single(part) if isinstance(part, Next) else part for part in parts]
        self._at = 0
        self._before = 0
        """Runs that earlier parts did."""

    def next(self, done: Sequence[Done]) -> Next | None:
        """Return the next run of the part whose turn it is."""
        while self._at < len(self._parts):
            wanted = self._parts[self._at].next(done[self._before :])
            if wanted is not None:
                return wanted
            self._at, self._before = self._at + 1, len(done)
        return None

    def known(self) -> Sequence[Next]:
        """Return what every part is certain of."""
        return [run for part in self._parts for run in part.known()]

    def expected(self) -> int | None:
        """Return the sum over the parts, None as soon as one does not know."""
        counts = [part.expected() for part in self._parts]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


class _Single:
    """One run as a controller."""

    def __init__(self, run: Next) -> None:
        self._run = run

    def next(self, done: Sequence[Done]) -> Next | None:
        return None if done else self._run

    def known(self) -> Sequence[Next]:
        return [self._run]

    def expected(self) -> int | None:
        return 1
