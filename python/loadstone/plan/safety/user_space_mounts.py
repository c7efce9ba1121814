"""Names that a file has below a file system in user space that shows a directory (bindfs, mergerfs).

A file system that names no directory (unionfs, one of a server or an archive) shows nothing of what it
does. Judges nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from loadstone.path.fuse import shown_by
from loadstone.path.mounts import mount_of

MOST: Final = 64
"""Of names that are followed: a mount may show a directory that it is itself mounted in."""


class NamesBelow(NamedTuple):
    """Where a file is below its mount, and below theirs."""

    names: list[Path]
    mounts: frozenset[int]
    """`st_dev` of the mounts on the way there."""


def names_below(path: Path) -> NamesBelow:
    """Return the names of a file or directory below its mount, and below theirs."""
    names: list[Path] = []
    passed: set[int] = set()
    waiting = [os.path.realpath(path)]
    while waiting and len(names) < MOST:
        name = waiting.pop()
        mount = mount_of(Path(name))
        if mount is None or not (mount.kind == "fuse" or mount.kind.startswith("fuse.")):
            continue
        passed.add(mount.device)
        for lower in shown_by(mount, name):
            if os.path.lexists(lower) and Path(lower) not in names:
                names.append(Path(lower))
                waiting.append(os.path.realpath(lower))
    return NamesBelow(names, frozenset(passed))
