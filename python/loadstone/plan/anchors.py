"""What lies below the anchor of a tree, and who made it.

Knows the names of a tree's directories and files, the mark Loadstone leaves in an anchor and the
control file of vdbench. Changes nothing. Knows no job and no consent; whether a mark is worth anything
is `tree_mark`'s.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.plan.model import FileSizes, Tree
    from loadstone.workload.trees import TreeShape

MARK: Final = ".loadstone-tree.json"
CONTROL_FILE: Final = "vdb_control.file"
DIRECTORY: Final = re.compile(r"vdb\.(\d+)_(\d+)\.dir")
FILE: Final = re.compile(r"vdb_f(\d{4,})\.file")
NEW_FIRST_FILE: Final = 0
"""Number of the first file of a tree that is made anew, as in vdbench 5.04.07."""
_MAX_HEAD_LINES: Final = 600
_MOST_HEAD_BYTES: Final = 1 << 20
_MAX_DIRECTORIES: Final = 100
_SYSTEM: Final = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr")
_MEMORY: Final = "/dev/shm"  # noqa: S108 - the name of the place, nothing is put there by it


@dataclass(frozen=True, slots=True)
class Structure:
    """What two trees must have in common to be the same. `sizes`: bytes and percent."""

    depth: int
    width: int
    files: int
    everywhere: bool
    sizes: tuple[tuple[int, Annotated[float, Field(allow_inf_nan=False)]], ...]
    around: bool

    @classmethod
    def of_shape(cls, shape: TreeShape) -> Structure:
        """Return the structure that was asked for."""
        sizes = ((shape.sizes[0][0], 100.0),) if len(shape.sizes) == 1 else shape.sizes
        return cls(shape.depth, shape.width, shape.files, shape.everywhere, sizes, shape.around)

    @classmethod
    def of_tree(cls, tree: Tree) -> Structure:
        """Return the structure of a tree of a Plan."""
        sizes, around = _sizes(tree.sizes)
        return cls(tree.depth, tree.width, tree.files, tree.everywhere, sizes, around)

    @property
    def expected_bytes(self) -> int:
        """What all of its files come to, in the mean."""
        folders = self.width**self.depth
        if self.everywhere:
            folders = sum(self.width**level for level in range(1, self.depth + 1))
        mean = sum(size * part for size, part in self.sizes) / sum(part for _, part in self.sizes)
        return int(folders * self.files * mean)

    def differences(self, other: Structure) -> list[str]:
        """Say in what another structure differs: `width was 4, is 5`."""
        differences = []
        for name in ("depth", "width", "files"):
            was, now = getattr(self, name), getattr(other, name)
            if was != now:
                differences.append(say("plan.mark.number_differs", name=name, before=str(was), now=str(now)))
        if self.everywhere != other.everywhere:
            words = ("bottom", "all")
            before, now = words[self.everywhere], words[other.everywhere]
            differences.append(say("plan.mark.distribution", before=before, now=now))
        if (self.sizes, self.around) != (other.sizes, other.around):
            differences.append(say("plan.mark.sizes"))
        return differences


@dataclass(frozen=True, slots=True)
class Found:
    """What is there. `maker`: who left a mark; None: nobody."""

    exists: bool = False
    has_directories: bool = False
    has_files: bool = False
    first_file: int | None = None
    """Number of the first file of a directory: as the mark says, else as the files look."""
    maker: Literal["Loadstone", "vdbench"] | None = None
    structure: Structure | None = None
    """As the maker wrote it down."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing with a name of a tree is there."""
        return not self.has_directories and not self.has_files


def look(anchor: Path) -> Found:
    """Say what is below an anchor. Raises OSError when it cannot be looked at.

    Stops after a few directories: how many files there are is the engine's business.
    """
    try:
        with os.scandir(anchor) as entries:
            names = {entry.name for entry in entries}
    except FileNotFoundError:
        return Found()
    maker: Literal["Loadstone", "vdbench"] | None = None
    structure, first = None, None
    if MARK in names:
        maker, (structure, first) = "Loadstone", _read_mark(anchor / MARK)
    elif CONTROL_FILE in names:
        maker, structure = "vdbench", _read_control(anchor / CONTROL_FILE)
    folders = any(DIRECTORY.fullmatch(name) for name in names)
    # The first file of a directory may be gone: several are looked at.
    first_files = list(itertools.islice(_first_files(anchor), 1 if first is not None else _MAX_DIRECTORIES))
    if first is None and first_files:
        first = min(first_files)
    return Found(True, folders, bool(first_files), first, maker, structure)


def forbidden(anchor: str) -> str | None:
    """Say why no tree may be in a place, None when one may."""
    real = os.path.realpath(anchor)
    if real == "/":
        return say("plan.target.root_directory")
    if real == _MEMORY or real.startswith(_MEMORY + "/"):
        return None
    inside = next((place for place in _SYSTEM if real == place or real.startswith(place + "/")), None)
    return None if inside is None else say("plan.target.system_directory", directory=inside)


def _first_files(directory: Path) -> Iterator[int]:
    """Yield the number of the first file of each directory that has files, the anchor's own last."""
    with contextlib.suppress(OSError), os.scandir(directory) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
        numbers = [int(match[1]) for entry in entries if (match := FILE.fullmatch(entry.name))]
        if numbers:
            yield 0 if 0 in numbers else 1
        for entry in entries:
            if DIRECTORY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                yield from _first_files(Path(entry.path))


@dataclass(frozen=True, slots=True)
class TreeSeal:
    """To what a mark is bound, and until when it vouches."""

    inode: int
    file_system: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class TreeMark:
    """What the mark of a tree says."""

    format: Literal[2]
    first_file: Annotated[int, Field(ge=0, lt=2**32)]
    structure: Structure
    shared: bool
    sealed: TreeSeal | None = None
    foreign: str | None = None
    """A file below the anchor that came during the last run and is not that run's."""


_MARK_SHAPE: Final = TypeAdapter(TreeMark)


def read_mark(path: Path) -> TreeMark:
    """Read the mark of a tree, which anybody may have written. Raises OSError and ValueError."""
    return _MARK_SHAPE.validate_json(head(path), strict=True)


def _read_mark(path: Path) -> tuple[Structure | None, int | None]:
    """Read our own mark; what cannot be read says nothing."""
    with contextlib.suppress(OSError, ValueError):
        mark = read_mark(path)
        return mark.structure, mark.first_file
    return None, None


def head(path: Path) -> bytes:
    """Return the beginning of a regular file: nobody is waited for, and no link is followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise make_error(ValueError, "plan.tree.not_regular")
        return file.read(_MOST_HEAD_BYTES)


def _read_control(path: Path) -> Structure | None:
    """Read the head of vdbench's control file: what stands before the state of each directory."""
    words: dict[str, str] = {}
    values: list[float] = []
    with contextlib.suppress(OSError, ValueError, KeyError, OverflowError):
        lines = head(path).decode(errors="replace").splitlines()
        for line in lines[:_MAX_HEAD_LINES]:
            word, _, rest = line.strip().partition(" ")
            if word == "directory":
                break
            if word == "size":
                values.append(float(rest))
            words[word] = rest.strip()
        around = len(values) == 2 and values[1] == 0
        pairs = [(int(values[0]), 100.0)] if len(values) == 1 or around else []
        pairs = pairs or [(int(size), part) for size, part in zip(values[::2], values[1::2], strict=True)]
        return Structure(
            int(words["depth"]),
            int(words["width"]),
            int(words["files"]),
            words["dist"] == "all",
            tuple(pairs),
            around,
        )
    return None


def _sizes(sizes: FileSizes) -> tuple[tuple[tuple[int, float], ...], bool]:
    if sizes.type == "around":
        return ((sizes.mean_bytes, 100.0),), True
    if len(sizes.table) == 1:
        return ((sizes.table[0].bytes, 100.0),), False
    return tuple((entry.bytes, entry.weight) for entry in sizes.table), False
