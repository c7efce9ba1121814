"""The mark of a tree: a file in its anchor that says that Loadstone made what is there.

It is written when a run begins to change the tree, and sealed when the run has ended. A sealed mark
vouches for every file whose name is a tree's and whose ctime is not later: whatever comes into a tree,
is written in it or gets a second name has a later ctime, which nobody can set. What came while the run
worked there is told by the engine, which knows its own files: nothing is sealed then (`leave`). The mark
is bound to its own inode and file system, so a copied tree has none. Its mtime is set to long ago: where
that shows as its ctime, programs can set the ctime of any file, and it vouches for nothing but to the
process that sealed it. `begin`, `seal` and `leave` change something, nothing else here.

vdbench trusts its control file over what it finds: where Loadstone changes which files there are,
the file goes, and the mark takes its place. vdbench looks for itself then.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone.messages import say
from loadstone.path import inode
from loadstone.path.mounts import mounts
from loadstone.plan.anchors import CONTROL_FILE, DIRECTORY, FILE, MARK, Structure, head, read_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from pathlib import Path

FORMAT: Final = 2
_TICK_NS: Final = 20_000_000
"""Timestamps of files may lag so far behind the clock: two ticks of 100 Hz."""
_SECOND_NS: Final = 10**9
_TOLD_FILES: Final = 20_000
_BEGINNINGS: Final = {MARK: re.compile(rb'\{\s*"format"'), CONTROL_FILE: re.compile(rb"when\b")}
"""Of the files that `begin` removes."""


@dataclass(frozen=True, slots=True)
class TreeSeen:
    """What the engine saw in a tree after its last operation there."""

    newest_ns: int
    """The latest ctime of a file."""
    foreign: str | None = None
    """A file that is not the run's."""


@dataclass(slots=True)
class Walked:
    """What is wrong with a tree; the first of each kind."""

    unfit: list[str] = field(default_factory=list)
    """What must not be written through, whatever the user says."""
    changed: str | None = None
    """Why the mark does not vouch for all of it."""
    files: int = 0


def look(
    anchor: Path, tell: Callable[[int], None] | None = None, *, known: Container[tuple[int, int]] = ()
) -> Walked:
    """Look at every file of a tree that exists. Raises OSError when it cannot be looked at.

    `known`: marks that this process sealed, by `st_dev` and `st_ino`.
    """
    walked = Walked()
    walked.unfit += [
        f"{point} is mounted below it: a tree stays on one file system" for point in _mounted(anchor)
    ]
    sealed_ns, walked.changed = sealed_until(anchor, known)
    moved: str | None = None
    top = os.open(anchor, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        device = os.fstat(top).st_dev
        for place, directories, files, directory in os.fwalk(".", dir_fd=top, onerror=_raise):
            entered = []
            for name in (*directories, *files):
                is_directory = DIRECTORY.fullmatch(name) is not None
                if not is_directory and FILE.fullmatch(name) is None:
                    continue
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if is_directory and stat.S_ISDIR(status.st_mode) and status.st_dev == device:
                    if sealed_ns is not None and status.st_ctime_ns > sealed_ns:
                        # What is in a directory that was moved here keeps its ctime.
                        moved = moved or _came(anchor / place / name)
                    entered.append(name)
                    continue
                path = str(anchor / place / name)
                _judge(walked, path, status, is_directory=is_directory, sealed_ns=sealed_ns)
                walked.files += 1
                if tell is not None and walked.files % _TOLD_FILES == 0:
                    tell(walked.files)
            directories[:] = entered
    finally:
        os.close(top)
    walked.changed = walked.changed or moved
    return walked


def _came(path: Path | str) -> str:
    return say("plan.tree.came_later", path=path)


def _raise(error: OSError) -> None:
    raise error


def _judge(
    walked: Walked, path: str, status: os.stat_result, *, is_directory: bool, sealed_ns: int | None
) -> None:
    """Judge one file of a tree, or what stands where a directory should."""
    unfit = None
    if stat.S_ISLNK(status.st_mode):
        unfit = say("plan.tree.symbolic_link", path=path)
    elif is_directory or not stat.S_ISREG(status.st_mode):
        unfit = say("plan.tree.no_directory" if is_directory else "plan.tree.no_file", path=path)
    elif status.st_nlink != 1:
        unfit = say("plan.tree.hard_links", path=path)
    if unfit is not None and not walked.unfit:
        walked.unfit.append(unfit)
    if sealed_ns is not None and walked.changed is None and status.st_ctime_ns > sealed_ns:
        walked.changed = _came(path)


def name_sharers(anchor: Path) -> list[str]:
    """Return the files that `begin` would remove and that are no marks: they only have the name of one."""
    sharers = []
    for name, beginning in _BEGINNINGS.items():
        with contextlib.suppress(OSError, ValueError):
            content = head(anchor / name).strip(b"\0 \n")  # Of a crash nothing or zeros may be left.
            if content and beginning.match(content) is None:
                sharers.append(str(anchor / name))
    return sharers


def begin(anchor: Path, structure: Structure, first_file: int, *, shared: bool = False) -> None:
    """Mark a tree as one that is being changed. `shared`: not all of it is Loadstone's. Raises OSError."""
    mark = {"format": FORMAT, "first_file": first_file, "structure": asdict(structure), "shared": shared}
    (anchor / MARK).unlink(missing_ok=True)
    descriptor = os.open(
        anchor / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
    )
    _write(descriptor, mark)
    (anchor / CONTROL_FILE).unlink(missing_ok=True)


def seal(anchor: Path, until_ns: int | None = None) -> tuple[int, int]:
    """Vouch for what is there and has no later ctime; None: for all that is there now. Raises OSError.

    Returns by which numbers this process knows the mark (`known`).
    """
    descriptor = os.open(anchor / MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    mark = asdict(read_mark(anchor / MARK))
    if until_ns is None:
        # The file system's own clock: nothing a run has done is later than this.
        os.utime(descriptor)
    status = os.fstat(descriptor)
    sealed = {
        "inode": status.st_ino,
        "file_system": os.fstatvfs(descriptor).f_fsid,
        "ctime_ns": status.st_ctime_ns if until_ns is None else until_ns,
    }
    _write(descriptor, {**mark, "sealed": sealed}, mtime_ns=inode.LONG_AGO_NS)
    numbers = (status.st_dev, status.st_ino)
    if until_ns is not None:
        return numbers
    coarse = status.st_ctime_ns % _SECOND_NS == 0
    left_ns = status.st_ctime_ns + _TICK_NS + (_SECOND_NS if coarse else 0) - time.time_ns()
    if left_ns > 0:
        time.sleep(min(left_ns, 2 * _SECOND_NS) / 1e9)
    return numbers


def leave(anchor: Path, foreign: str) -> None:
    """Vouch for nothing, and note which file came that the run did not make. Raises OSError."""
    descriptor = os.open(anchor / MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    _write(descriptor, {**asdict(read_mark(anchor / MARK)), "foreign": foreign})


def _write(descriptor: int, document: dict[str, Any], mtime_ns: int | None = None) -> None:
    """Write a mark and close it."""
    with os.fdopen(descriptor, "w") as file:
        file.seek(0)
        file.truncate()
        file.write(json.dumps(document, indent=2) + "\n")
        file.flush()
        if mtime_ns is not None:
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))


def sealed_until(anchor: Path, known: Container[tuple[int, int]] = ()) -> tuple[int | None, str | None]:
    """Return the ctime up to which the mark vouches, or why it does not."""
    path = anchor / MARK
    try:
        mark = read_mark(path)
        status = path.lstat()
        if mark.foreign is not None:
            flaw = say("plan.mark.foreign", path=anchor / mark.foreign)
        elif mark.sealed is None and mark.shared:
            flaw = say("plan.mark.shared")
        elif mark.sealed is None:
            flaw = say("plan.mark.open_tree")
        elif (mark.sealed.inode, mark.sealed.file_system) != (status.st_ino, os.statvfs(path).f_fsid):
            flaw = say("plan.mark.copied_tree")
        elif (status.st_dev, status.st_ino) not in known and not _keeps_ctime(path, status):
            flaw = say("plan.mark.no_ctime")
        elif mark.sealed.ctime_ns > time.time_ns() + _SECOND_NS:
            flaw = say("plan.mark.future")
        else:
            return mark.sealed.ctime_ns, None
    except FileNotFoundError:
        flaw = say("plan.mark.none")
    except (OSError, ValueError):
        flaw = say("plan.mark.unreadable")
    return None, flaw


def _mounted(anchor: Path) -> list[str]:
    """Return the mount points below an anchor."""
    inside = os.path.realpath(anchor).rstrip("/") + "/"
    return [mount.point for mount in mounts() if mount.point.startswith(inside)]


def _keeps_ctime(mark: Path, status: os.stat_result) -> bool:
    """Whether programs cannot set ctime: that of a sealed mark would be what its mtime was set to."""
    return status.st_ctime_ns != inode.LONG_AGO_NS and inode.has_place_for_ctime(str(mark))
