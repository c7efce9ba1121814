"""Directories for the time of a run, of which none stays behind, however the program ends.

Knows that whoever made one holds a lock in it for as long as it lives: a directory that nobody has
locked is left from a program that was killed, and goes when the next one is made. Others may have
directories there with names that begin so: one in which anything else lies is not ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import stat
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "loadstone-run-"
LOCK: Final = "lock"
INSIDE: Final = "d"
_NAME: Final = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")
"""As `tempfile.mkdtemp` gives them."""
_JUST_NOW_S: Final = 60.0
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """Make a directory for nobody else to read, and remove it in the end, also when asked to die."""
    place = Path(tempfile.gettempdir())
    remove_abandoned(place)
    with _unwinding():
        folder, lock = _make_folder(place)
        try:
            yield folder / INSIDE
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def holds(path: Path) -> bool:
    """Tell whether a path lies in such a directory."""
    return any(_NAME.fullmatch(folder) and inside == INSIDE for folder, inside in pairwise(path.parts))


def _make_folder(place: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            (folder / INSIDE).mkdir(mode=0o700)
        except FileNotFoundError:
            os.close(lock)  # Somebody took it for abandoned just before it was locked.
        else:
            return folder, lock


def remove_abandoned(place: Path) -> None:
    """Remove our own directories that nobody has locked; what cannot be removed stays."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove(Path(entry.path))


def _remove(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        # It was made this moment, or by a program that was killed in the same moment.
        if time.time() - status.st_mtime > _JUST_NOW_S:
            path.rmdir()
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_ours(path, lock):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _is_ours(path: Path, lock: int) -> bool:
    """Tell whether a directory holds an empty lock and one directory, and nothing else."""
    status = os.fstat(lock)
    if not stat.S_ISREG(status.st_mode) or status.st_size:
        return False
    with os.scandir(path) as entries:
        return all(one.name == LOCK or _is_inside(one) for one in entries)


def _is_inside(entry: os.DirEntry[str]) -> bool:
    return entry.name == INSIDE and entry.is_dir(follow_symlinks=False)


@contextlib.contextmanager
def _unwinding() -> Iterator[None]:
    """Let what ends the program at once by default raise KeyboardInterrupt, so that blocks are left."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
