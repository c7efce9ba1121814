"""In the place of signals: who asks a run of an agent to end.

Knows how often it was asked. Does not know what stopping takes: it calls back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class EngineStops:
    """In the place of signals: who asks a run of the agent to end."""

    def __init__(self, on_first: Callable[[], None], on_second: Callable[[], None]) -> None:
        self.count = 0
        self._on_first = on_first
        self._on_second = on_second

    def ask(self, times: int) -> None:
        """Ask for the end, or insist."""
        before, self.count = self.count, max(self.count, times)
        if not before:
            self._on_first()
        if before < 2 <= times:
            self._on_second()

    def __enter__(self) -> EngineStops:
        return self

    def __exit__(self, *_: object) -> None:
        return
