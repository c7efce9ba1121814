"""The file operations of a bundle that is written, in one place, and what to do when one fails.

Knows system calls and errors. Does not know what is written. A test puts its own in place of
`Disk` to let each of them fail.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import system_error_number
from loadstone.messages import say, templates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def remedy(error: BaseException) -> str:
    """Return what to do about an error of a bundle's files."""
    number = errno.ENOMEM if isinstance(error, MemoryError) else system_error_number(error)
    key = f"bundle.remedy.{errno.errorcode.get(number or 0, 'other').lower()}"
    return say(key if key in templates() else "bundle.remedy.other")


def reason(error: BaseException) -> str:
    """Return an error in words, with the file it is about."""
    if isinstance(error, MemoryError):
        return say("bundle.file.no_memory")
    if isinstance(error, OSError) and error.strerror:
        name = f" ({Path(os.fsdecode(error.filename)).name})" if error.filename else ""
        return f"{error.strerror}{name}"
    if (number := system_error_number(error)) is not None:
        return os.strerror(number)
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def not_there(path: Path) -> list[Path]:
    """Return a directory and those above it that are not there yet, itself first."""
    return [one for one in (path, *path.parents) if not os.path.lexists(one)]


class Disk:
    """What is done to files."""

    def mkdir(self, path: Path, *, above: bool = True) -> None:
        """Make a directory, for nobody else to read, and those above it; one that is there will do."""
        path.mkdir(mode=0o700, parents=above, exist_ok=True)

    def open(self, path: Path, flags: int) -> int:
        """Open a file; a new one is for nobody else to read."""
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def write(self, file: int, content: bytes) -> int:
        """Write some of it, and return how much."""
        return os.write(file, content)

    def fsync(self, file: int) -> None:
        """Bring it to disk."""
        os.fsync(file)

    def replace(self, old: Path, new: Path) -> None:
        """Rename a file over another."""
        old.replace(new)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def take_back(self, files: Iterable[Path], directories: Iterable[Path]) -> None:
        """Remove what was begun, as far as it can be, and directories that are then empty."""
        for file in files:
            with contextlib.suppress(OSError):
                self.unlink(file)
        for directory in directories:
            with contextlib.suppress(OSError):
                directory.rmdir()

    def make(self, path: Path, how: Callable[[Path], None]) -> None:
        """Let a library write a file by itself."""
        how(path)
        path.chmod(0o600)

    def write_all(self, file: int, content: bytes) -> None:
        """Write all of it."""
        rest = memoryview(content)
        while rest:
            rest = rest[self.write(file, bytes(rest)) :]

    def write_over(self, file: int, content: bytes) -> None:
        """Write a file's new content in place of the old one, which was not longer."""
        os.pwrite(file, content, 0)

    def put(self, path: Path, content: bytes, *, durable: bool = False) -> None:
        """Write a file; `durable`: it is on disk afterwards."""
        file = self.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self.write_all(file, content)
            if durable:
                self.fsync(file)
        finally:
            os.close(file)

    def put_whole(self, path: Path, content: bytes) -> None:
        """Write a file whole or not at all, and bring it to disk."""
        part = path.with_name(path.name + ".part")
        self.put(part, content, durable=True)
        self.replace(part, path)
        self.sync(path.parent)

    def sync(self, path: Path) -> None:
        """Bring a file, or a directory's entries, to disk."""
        file = self.open(path, os.O_RDONLY)
        try:
            self.fsync(file)
        finally:
            os.close(file)
