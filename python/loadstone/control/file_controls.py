"""Controls that are one file of sysfs or procfs for each subject.

Knows how such files are read and written, and that some list all values with the chosen one in
brackets. Does not know which files there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from loadstone.control.control_kind import BEFORE_LIMIT, Control

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def text(path: Path) -> str | None:
    """Return a small file's text without its last line end; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(BEFORE_LIMIT).decode("utf-8", "surrogateescape").strip()
    except (OSError, ValueError):
        return None


def put(path: Path, value: str) -> None:
    """Write a value with one system call, as such files want it; OSError says what the kernel said."""
    with path.open("wb", buffering=0) as file:
        file.write(value.encode("utf-8", "surrogateescape"))


class FileControl(Control):
    """A setting that is one file for each subject."""

    folder: ClassVar[str] = ""
    """Where it is below the root; `{}` stands for the subject."""
    file: ClassVar[str]

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, subject: str) -> Path:
        """Return its file."""
        return self.root / self.folder.format(subject) / self.file

    def read(self, subject: str) -> str | None:
        """Return the value now."""
        return text(self.path(subject))

    def write(self, subject: str, value: str) -> None:
        """Set it."""
        put(self.path(subject), value)


class HostFile(FileControl):
    """A setting of the whole host."""

    def subjects(self) -> list[str]:
        """Return the host, where it has the file."""
        return [""] if self.path("").exists() else []


def in_bytes(value: str) -> str:
    """Return a size without its suffix, as the kernel reads `64m`; anything else as it is."""
    power = "kmgt".find(value[-1:].lower()) + 1
    return str(int(value[:-1]) << 10 * power) if power and value[:-1].isdigit() else value


def bracketed(value: str | None) -> str | None:
    """Return the chosen word of `none [mq-deadline] bfq`; None where none is."""
    return next((word[1:-1] for word in (value or "").split() if word.startswith("[")), None)


def words(value: str | None) -> tuple[str, ...]:
    """Return all words of a list, brackets removed."""
    return tuple(word.strip("[]") for word in (value or "").split())


def numbered(folder: Path, prefix: str, needs: Sequence[str]) -> list[str]:
    """Return the directories PREFIXn of a folder that have the files, in the order of their numbers."""
    every = [path for path in folder.glob(f"{prefix}[0-9]*") if path.name.removeprefix(prefix).isdigit()]
    every.sort(key=lambda path: int(path.name.removeprefix(prefix)))
    return [path.name for path in every if all((path / need).exists() for need in needs)]
