"""What stood at a target's path when it was looked at, and whether it stands there unchanged.

Between the look and the run there is time: others are looked at, and somebody may be asked. Knows
`stat(2)`, the birth of a file (an inode's number is given to the next one) and the number that the
kernel gives each disk it ever had (`diskseq`). Judges nothing else.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.path import inode
from loadstone.path.block import SYS
from loadstone.plan.model import Identity

if TYPE_CHECKING:
    from pathlib import Path


GONE: Final = "it is gone since it was looked at"
REPLACED: Final = "something else stands at its path since it was looked at"


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a path."""

    identity: Identity
    mode: int
    state: tuple[int, ...]
    """Changes with all that is written to a file, and when a device's number is given to another disk."""

    @classmethod
    def of(cls, path: Path) -> Seen | None:
        """Look at a path; None when there is nothing, or it cannot be looked at."""
        try:
            status, identity = look(path)
        except OSError:
            return None
        if stat.S_ISREG(status.st_mode):
            state: tuple[int, ...] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        else:
            state = (disk_number(identity.special),) if stat.S_ISBLK(status.st_mode) else ()
        return cls(identity, stat.S_IFMT(status.st_mode), state)

    @property
    def is_device(self) -> bool:
        """Whether it is a block device."""
        return stat.S_ISBLK(self.mode)


def look(path: Path | str) -> tuple[os.stat_result, Identity]:
    """Return the status and the identity of the file that stands at a path now. Raises OSError."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor), identity(descriptor)
    finally:
        os.close(descriptor)


def identity(descriptor: int) -> Identity:
    """Return what tells an open file from any other, also from one that gets its inode later."""
    status = os.fstat(descriptor)
    device = stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode)
    return Identity(
        device=status.st_dev,
        inode=status.st_ino,
        special=status.st_rdev if device else 0,
        born_ns=None if device else inode.steady_birth_ns(descriptor),
    )


def is_same(expected: Identity, now: Identity) -> bool:
    """Return whether two are of one file, as far as its file system tells."""
    if expected.born_ns is None or now.born_ns is None:
        expected, now = (one.model_copy(update={"born_ns": None}) for one in (expected, now))
    return expected == now


def change(before: Seen | None, now: Seen | None) -> str | None:
    """Say what became of a path between two looks; None when nothing did."""
    if before == now:
        return None
    if before is None:
        return say("plan.held.new")
    if now is None:
        return GONE
    if (before.identity, before.mode) != (now.identity, now.mode):
        return REPLACED
    return say("plan.held.changed") if not now.is_device else say("plan.held.other_disk")


def disk_number(number: int, sys: Path = SYS) -> int:
    """Return the number that the kernel gave the disk of a device number; 0 where it gives none."""
    place = sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    # A partition has that of its disk.
    for one in (place / "diskseq", place / ".." / "diskseq"):
        try:
            return int(one.read_text())
        except (OSError, ValueError):
            continue
    return 0
