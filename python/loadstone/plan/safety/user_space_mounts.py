"""Names that a file has below a file system in user space that shows a directory (bindfs, mergerfs).

Knows how such a mount names its directories. A file system that names none (unionfs, one of a server or
an archive) shows nothing of what it does. Judges nothing.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loadstone.path.mounts import mount_of

if TYPE_CHECKING:
    from loadstone.path.mounts import Mount

MERGERFS: Final = "fuse.mergerfs"
ALL_NAMES: Final = "user.mergerfs.allpaths"
"""Where mergerfs tells every name that a file has below."""
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
        for lower in _shown_by(mount, name):
            if os.path.lexists(lower) and Path(lower) not in names:
                names.append(Path(lower))
                waiting.append(os.path.realpath(lower))
    return NamesBelow(names, frozenset(passed))


def _shown_by(mount: Mount, name: str) -> list[str]:
    # Another mount over it passes the question on.
    with contextlib.suppress(OSError):
        if mount.kind == MERGERFS:
            all_names = os.getxattr(name, ALL_NAMES).split(b"\0")
            return [os.fsdecode(one) for one in all_names if one]
    rest = mount.root.rstrip("/") + name[len(mount.point.rstrip("/")) :]
    return [place.rstrip("/") + rest for place in mount.source.split(":") if place.startswith("/")]
