"""May what a Plan uses be opened as it would be: found before the load, not as an I/O error in it.

Knows permissions, read-only mounts and devices, immutable and append-only files, sealed files, what
takes no direct I/O and the limit on file sizes. Opens for reading at most and changes nothing. Does
not know whether anybody would mind: that is the guard's question.
"""

from __future__ import annotations

import array
import errno
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
from loadstone.plan.safety import guard

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


def check(plan: Plan, places: Mapping[str, Where] | None = None) -> None:
    """Raise `RefusedError` naming each target that the Plan would open, and cannot.

    `places`: where each was named.
    """
    written = guard.written(plan)
    reasons: dict[str, list[str]] = {}
    hint = None
    for index, target in enumerate(plan.targets):
        if target.kind is TargetKind.VIRTUAL:
            continue
        why = (obstacle(target) if index in written else _unreadable(target)) or _without_direct(target)
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
        return _cannot_make(path) if target.create or target.kind is TargetKind.TREE else None
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


def _unreadable(target: Target) -> tuple[str, str] | None:
    """Ask whether what is only read may be; its name may be all that is used of it."""
    if target.named is not None:
        return None
    how = os.R_OK | (os.X_OK if target.kind is TargetKind.TREE else 0)
    try:
        return _access(Path(target.path), how)
    except OSError:
        return None  # Not there yet, or somebody else says that it cannot be looked at.


def _without_direct(target: Target) -> tuple[str, str] | None:
    """Find what is there and takes no direct I/O: its driver or file system has none."""
    # A device that is opened may do something by that; of the kernel's own three nothing comes.
    harmless = target.kind is TargetKind.CHAR and _is_harmless(Path(target.path))
    if not target.direct or not (harmless or target.kind is TargetKind.FILE):
        return None
    try:
        os.close(os.open(target.path, os.O_RDONLY | os.O_DIRECT | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EINVAL:
            return say("plan.obstacle.not_direct"), say("plan.obstacle.not_direct_remedy")
    return None


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
    parent = next(place for place in path.parents if place.exists())
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
