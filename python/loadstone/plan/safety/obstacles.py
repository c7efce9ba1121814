"""May what a Plan uses be opened as it would be: found before the load, not as an I/O error in it.

Knows permissions, read-only mounts and devices, immutable and append-only files, sealed files, what
takes no direct I/O and the limit on file sizes. Opens what is there for reading at most and changes
nothing of it. Does not know whether anybody would mind: that is the guard's question.
"""

from __future__ import annotations

import array
import fcntl
import os
import resource
import stat
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.path.block import SYS
from loadstone.plan.model import TargetKind
from loadstone.plan.safety import direct_io, guard, writable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.errors import Where
    from loadstone.plan.model import Plan, Target

FS_IOC_GETFLAGS: Final = 0x80086601
FS_APPEND: Final = 0x20
FS_IMMUTABLE: Final = 0x10
"""Of ioctl_iflags(2)."""
SEALED: Final = getattr(fcntl, "F_SEAL_WRITE", 8) | 0x10
"""F_SEAL_WRITE and F_SEAL_FUTURE_WRITE of fcntl(2)."""
GET_SEALS: Final = getattr(fcntl, "F_GET_SEALS", 1034)
MAX_NAMED: Final = 8
OPENS_NO_FILE: Final = frozenset({"mkdir", "rmdir", "delete", "getattr", "setattr", "access", "move"})
"""Operations in trees that work by name."""


def check(plan: Plan, places: Mapping[str, Where] | None = None, *, naming: bool = False) -> None:
    """Raise `RefusedError` naming each target that the Plan would open, and cannot.

    `places`: where each was named. `naming`: the run is about to begin, so a file of ours may have a name for
    a moment where its files will be.
    """
    written = guard.written(plan)
    direct = _DirectIo(plan, naming=naming)
    reasons: dict[str, list[str]] = {}
    hint = None
    for index, target in enumerate(plan.targets):
        if target.kind is TargetKind.VIRTUAL:
            continue
        why = obstacle(target) if index in written else _unreadable(target)
        if why is None and not (index in written and _is_forbidden(target)):
            why = direct.missing(index)
        if why is not None and why[0] not in reasons.get(target.path, ()):
            reasons.setdefault(target.path, []).append(why[0])
            hint = hint or why[1]
    first = dict(islice(reasons.items(), MAX_NAMED))
    more = say("plan.held.more", count=len(reasons) - MAX_NAMED) if len(reasons) > MAX_NAMED else ""
    guard.refuse(say("plan.held.obstacles"), first, hint, places, more)


def obstacle(target: Target) -> tuple[str, str] | None:
    """Return why a target cannot be written, and the remedy; None when nothing speaks against it."""
    path = Path(target.path)
    try:
        status = path.stat()
    except FileNotFoundError:
        return _cannot_be_new(target)
    except OSError:
        return None  # Somebody else says that it cannot be looked at.
    if target.kind is TargetKind.TREE:
        return _access(path, os.W_OK | os.X_OK)
    if stat.S_ISBLK(status.st_mode):
        return _read_only_device(status.st_rdev) or _access(path, os.W_OK)
    if stat.S_ISREG(status.st_mode):
        why = _access(path, os.W_OK) or _flagged(path) or _too_long(target)
        return why or (_access(path.parent, os.W_OK | os.X_OK) if target.unlink else None)
    return _access(path, os.W_OK)


def _cannot_be_new(target: Target) -> tuple[str, str] | None:
    if target.kind is TargetKind.TREE:
        return _cannot_make(Path(target.path))
    return (_cannot_make(Path(target.path)) or _too_long(target)) if target.create else None


def _unreadable(target: Target) -> tuple[str, str] | None:
    """Ask whether what is only read may be; its name may be all that is used of it."""
    if target.named is not None:
        return None
    how = os.R_OK | (os.X_OK if target.kind is TargetKind.TREE else 0)
    try:
        return _access(Path(target.path), how)
    except OSError:
        return None  # Not there yet, or somebody else says that it cannot be looked at.


def _is_forbidden(target: Target) -> bool:
    """Whether the guard refuses it: another job would not help, and an open may do something by itself."""
    return writable.forbidden(Path(target.path)) is not None


class _DirectIo:
    """Finds targets that take no direct I/O: their drivers or file systems have none."""

    def __init__(self, plan: Plan, *, naming: bool) -> None:
        self._plan, self._naming = plan, naming
        self._refused: dict[Path, bool] = {}
        """By the directory of new files."""
        self._opened_trees = {
            plan.trees[one.tree.tree].target
            for one in plan.streams
            if one.tree is not None and one.tree.operation.type not in OPENS_NO_FILE
        }

    def missing(self, index: int) -> tuple[str, str] | None:
        """Return why a target cannot be opened for it, and the remedy; None when it can be."""
        target = self._plan.targets[index]
        if not target.direct or not self._is_refused(target, opened=index in self._opened_trees):
            return None
        return say("plan.obstacle.not_direct"), say("plan.obstacle.not_direct_remedy")

    def _is_refused(self, target: Target, *, opened: bool) -> bool:
        path = Path(target.path)
        match target.kind:
            case TargetKind.CHAR:
                # A device that is opened may do something by that; of the kernel's own three nothing comes.
                return _is_harmless(path) and direct_io.refused(path)
            case TargetKind.FILE if path.exists() or not target.create:
                return direct_io.refused(path)
            case TargetKind.FILE:
                return self._is_refused_in(_nearest(path.parent), naming=self._naming)
            case TargetKind.TREE if opened:
                # The times of an anchor may be what tells that nobody was there.
                is_new = not path.exists()
                return self._is_refused_in(_nearest(path), naming=self._naming and is_new)
        return False

    def _is_refused_in(self, directory: Path, *, naming: bool) -> bool:
        if directory not in self._refused:
            self._refused[directory] = direct_io.refused_in(directory, naming=naming)
        return self._refused[directory]


def _nearest(directory: Path) -> Path:
    """Return a directory, or where it is not there yet the nearest above it."""
    return next(place for place in (directory, *directory.parents) if place.exists())


def _is_harmless(path: Path) -> bool:
    try:
        number = path.stat().st_rdev
    except OSError:
        return False
    return (os.major(number), os.minor(number)) in guard.HARMLESS_CHARS


def _access(path: Path, how: int) -> tuple[str, str] | None:
    """Ask the kernel without opening: permission, read-only mounts and immutable files are in its answer."""
    # `os.access` tells no reason; the errors of an open that would need it are told apart here.
    if os.access(path, how, effective_ids=True):
        return None
    status, remedy = path.stat(), say("plan.obstacle.permission_remedy")
    mode = stat.filemode(status.st_mode)
    if not how & os.W_OK:
        return say("plan.obstacle.not_readable", mode=mode, owner=status.st_uid), remedy
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return say("plan.obstacle.read_only"), say("plan.obstacle.read_only_remedy")
    if _flags(path) & FS_IMMUTABLE:
        return say("plan.obstacle.immutable"), f"chattr -i {path}"
    return say("plan.obstacle.permission", mode=mode, owner=status.st_uid), remedy


def _cannot_make(path: Path) -> tuple[str, str] | None:
    links = (place for place in (path, *path.parents) if place.is_symlink() and not place.exists())
    if (link := next(links, None)) is not None:
        real = os.path.realpath(link)
        return (
            say("plan.obstacle.dangling", link=link, real=real),
            say("plan.obstacle.dangling_remedy", link=link, real=real),
        )
    parent = _nearest(path.parent)
    why = _access(parent, os.W_OK | os.X_OK) if parent.is_dir() else None
    return (
        None if why is None else (say("plan.obstacle.not_creatable", directory=parent, reason=why[0]), why[1])
    )


def _read_only_device(number: int, sys: Path = SYS) -> tuple[str, str] | None:
    place = sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    try:
        if (place / "ro").read_text().strip() != "1":
            return None
    except OSError:
        return None
    return say("plan.obstacle.read_only_device"), f"blockdev --setrw /dev/{place.resolve().name}"


def _flagged(path: Path) -> tuple[str, str] | None:
    """Find what only an open, or a write, would meet: append-only and sealed files, by open for reading."""
    if _flags(path) & FS_APPEND:
        return say("plan.obstacle.append_only"), f"chattr -a {path}"
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        sealed = fcntl.fcntl(file, GET_SEALS) & SEALED
    except OSError:
        return None  # Only files in memory can have seals.
    finally:
        os.close(file)
    return (say("plan.obstacle.sealed"), say("plan.obstacle.sealed_remedy")) if sealed else None


def _flags(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        answer = array.array("L", [0])
        fcntl.ioctl(file, FS_IOC_GETFLAGS, answer)
    except OSError:
        return 0
    else:
        return int(answer[0]) & 0xFFFFFFFF
    finally:
        os.close(file)


def _too_long(target: Target) -> tuple[str, str] | None:
    """Find a limit on file sizes that the run would meet: a write beyond it fails."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit == resource.RLIM_INFINITY or target.size_bytes <= limit:
        return None
    reason = say("plan.obstacle.too_long", used_bytes=target.size_bytes, limit_bytes=limit)
    return reason, say("plan.obstacle.too_long_remedy")
