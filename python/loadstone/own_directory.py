"""Directories that Loadstone keeps its own files in, where somebody may have put something before.

Knows that such a name may be a link to elsewhere, or a directory that another user made or may write to.
No link is followed, and what was looked at is held open, so that it is what is used. What is refused stays
as it is. Does not know what is in them.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from typing import TYPE_CHECKING, Final

from loadstone import file_kind
from loadstone.errors import RefusedError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOR_ALL: Final = 0o1777
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(path: Path, remedy: str) -> None:
    """Make a directory for this user alone, or see that the one there is one. Raises RefusedError.

    `remedy`: what else can be done than to move away what has the name.
    """
    with opened(path, remedy):
        pass


def is_there(path: Path, remedy: str) -> bool:
    """Tell whether there is one. Raises RefusedError for anything else of that name."""
    if not os.path.lexists(path):
        return False
    make(path, remedy)
    return True


@contextlib.contextmanager
def opened(path: Path, remedy: str, *, for_all: bool = False) -> Iterator[int]:
    """Give a descriptor of one, made where it is missing; `for_all`: every user may write to it."""
    try:
        is_new = _make(path, 0o777 if for_all else 0o700)
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        raise _refusal(path, remedy, _why_not_opened(path, error)) from error
    try:
        if is_new and for_all:
            os.fchmod(descriptor, _FOR_ALL)
        if (reason := _why_not_ours(os.fstat(descriptor), for_all=for_all)) is not None:
            raise _refusal(path, remedy, reason)
        yield descriptor
    finally:
        os.close(descriptor)


def _make(path: Path, mode: int) -> bool:
    """Make a directory, and tell whether it was not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        return False
    return True


def _why_not_opened(path: Path, error: OSError) -> str:
    with contextlib.suppress(OSError):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return say("program.own_directory.link", real=os.path.realpath(path))
        if not stat.S_ISDIR(status.st_mode):
            return say("program.own_directory.kind", kind=file_kind.words(status.st_mode))
        owner = _owner(status.st_uid)
        return say("program.own_directory.not_opened", owner=owner, reason=error.strerror)
    return say("program.own_directory.not_made", place=str(error.filename or path), reason=error.strerror)


def _why_not_ours(status: os.stat_result, *, for_all: bool) -> str | None:
    user, mode = os.geteuid(), f"{stat.S_IMODE(status.st_mode):04o}"
    owner = _owner(status.st_uid)
    if for_all:
        if user in (0, status.st_uid) or status.st_mode & stat.S_IWOTH:
            return None
        return say("program.own_directory.not_for_all", owner=owner, mode=mode)
    if status.st_uid != user:
        return say("program.own_directory.owner", owner=owner, user=_owner(user))
    if status.st_mode & _OTHERS_WRITE:
        return say("program.own_directory.others_write", mode=mode)
    return None


def _owner(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} (uid {user})"
    except KeyError:
        return f"uid {user}"


def _refusal(path: Path, remedy: str, reason: str) -> RefusedError:
    return make_error(RefusedError, "program.own_directory.refusal", path=path, reason=reason, remedy=remedy)
