"""One use of a file or device: who has it and how, apart from the sentence that says so.

Knows no way to find one (`open_files`, `in_use`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto


class UseKind(Enum):
    """How somebody uses a file or device."""

    OPEN = auto()
    """Open for writing."""
    READ = auto()
    """Open or mapped, if only to be read."""
    MAPPED = auto()
    LOCKED = auto()
    """Locks and leases."""
    SERVED = auto()
    """By the kernel to others: targets, NFS."""
    LOOP = auto()
    """It backs a loop device."""
    MOUNTED = auto()
    SWAP = auto()


@dataclass(frozen=True, slots=True)
class Use:
    """One use, with the sentence that says it."""

    kind: UseKind
    text: str
    process: int | None = None
    """Its number, where one process is known to use it."""

    def placed(self, name: str) -> Use:
        """Return it as a use of what `name` leads to."""
        return replace(self, text=f"{name}: {self.text}")
