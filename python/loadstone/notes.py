"""Notes of which several say the same, told once.

Knows neither where a note comes from nor where it is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class Noted(Protocol):
    """A note: of a workload, or of a run."""

    @property
    def kind(self) -> str:
        """How much it matters."""

    @property
    def text(self) -> str:
        """What it says."""


Note = TypeVar("Note", bound=Noted)


def once(notes: Iterable[Note]) -> list[tuple[Note, int]]:
    """Return the first of the notes that say the same, with the number of the others; the order stays."""
    groups: dict[tuple[str, str], list[Note]] = {}
    for note in notes:
        groups.setdefault((note.kind, note.text), []).append(note)
    return [(alike[0], len(alike) - 1) for alike in groups.values()]


def place(where: object, others: int) -> str:
    """Return what a note begins with: its place, and of how many other places it is; nothing without one."""
    if where is None:
        return ""
    return f"{where} and {others} more: " if others else f"{where}: "
