"""File system definitions and workloads: `fsd=` and `fwd=`.

Knows their keywords, and how many files and directories a tree has. Creates none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, get_args

from loadstone.errors import InputError
from loadstone.formats.vdbench import entity_values
from loadstone.formats.vdbench.entity_values import ONE_SIZE, Sizes
from loadstone.formats.vdbench.keyword import Keyword, Table
from loadstone.formats.vdbench.values import (
    Number,
    choice,
    name,
    names,
    number,
    numbers,
    percent,
    texts,
    whole,
    yes,
)
from loadstone.messages import make_error
from loadstone.workload.trees import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.errors import Where
    from loadstone.formats.vdbench.grammar import Parameter

OPERATIONS: Final = ("read", "write", *(one for one in get_args(Operation) if one != "transfer"))
MAX_FILES: Final = 10_000_000
"""In one directory, as in vdbench."""
MAX_DIRECTORIES: Final = 100_000_000
MAX_TOTAL_FILES: Final = 1_000_000_000
MAX_STOP_PERCENT: Final = 1_000_000
MAX_LEVELS: Final = 64


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A tree of directories and files. `sizes`: bytes and percent; 0 percent: drawn around the size."""

    name: str
    where: Where
    at: Mapping[str, Where]
    anchor: str = ""
    depth: int = 1
    width: int = 1
    files: int = 10
    sizes: tuple[tuple[int, float], ...] = ((4096, 100.0),)
    totalsize: int | None = None
    workingsetsize: int | None = None
    distribution: str = "bottom"
    shared: bool = False
    openflags: tuple[str, ...] = ()
    count: tuple[int, int] | None = None

    @property
    def average(self) -> bool:
        """Whether sizes are drawn around the first."""
        return self.sizes[0][1] == 0

    @property
    def directories(self) -> int:
        """How many directories the tree has."""
        return sum(self.width**level for level in range(1, self.depth + 1))

    @property
    def total_files(self) -> int:
        """How many files: in the lowest directories only, or in all of them."""
        folders = self.directories if self.distribution == "all" else self.width**self.depth
        return folders * self.files


@dataclass(frozen=True, slots=True)
class FileWorkload:
    """What is done to the files of a tree."""

    name: str
    where: Where
    at: Mapping[str, Where]
    fsds: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("*",)
    operation: str = "read"
    rdpct: float | None = None
    fileio: tuple[str, ...] = ("sequential",)
    fileselect: tuple[str, ...] = ("sequential",)
    xfersize: Sizes = ONE_SIZE
    threads: int = 1
    skew: float | None = None
    stopafter: Number | None = None
    openflags: tuple[str, ...] | None = None
    target: str | None = None


def _sizes(parameter: Parameter) -> tuple[tuple[int, float], ...]:
    """Read `sizes=`; an average is told by a second value of 0."""
    values = [item.value for item in numbers(parameter)]
    if any(value < 0 for value in values):
        raise parameter.error("formats_vdbench.filesystem.sizes", found=repr(parameter.text[:40]))
    if len(values) == 1:
        return ((int(values[0]), 100.0),)
    if len(values) % 2:
        raise parameter.error("formats_vdbench.filesystem.size_pairs", values=len(values))
    pairs = tuple((int(size), share) for size, share in zip(values[::2], values[1::2], strict=True))
    if len(values) == 2 and values[1] == 0:
        return pairs
    total = sum(share for _, share in pairs)
    if int(total) != 100:
        raise parameter.error("formats_vdbench.entity_values.sizes_sum", total=f"{total:g}")
    return tuple((size, share) for size, share in pairs if share)


def _bytes(parameter: Parameter) -> int:
    values = numbers(parameter)
    if values[0].percent:
        raise parameter.error("formats_vdbench.filesystem.percentage")
    return entity_values.divided(parameter)


def _distribution(parameter: Parameter) -> str:
    return choice(parameter, name(parameter), ("bottom", "all"))


def operation(parameter: Parameter) -> str:
    """Read one operation; all of its letters count."""
    return operations(parameter)[0] if len(texts(parameter)) == 1 else _too_many(parameter)


def _too_many(parameter: Parameter) -> str:
    raise parameter.error("formats_vdbench.filesystem.operations", operations=len(texts(parameter)))


def operations(parameter: Parameter) -> tuple[str, ...]:
    """Read operations."""
    for word in texts(parameter):
        if word.lower() not in OPERATIONS:
            raise parameter.error(
                "formats_vdbench.filesystem.operation",
                found=repr(word[:40]),
                operations=", ".join(OPERATIONS),
            )
    return tuple(word.lower() for word in texts(parameter))


def _fileio(parameter: Parameter) -> tuple[str, ...]:
    first, *rest = texts(parameter)
    access = choice(parameter, first, ("random", "sequential", "seqnz", "sequentialnz"))
    more = ("shared",) if access == "random" else ("delete",)
    return access, *(choice(parameter, word, more) for word in rest)


def _fileselect(parameter: Parameter) -> tuple[str, ...]:
    ways = ("random", "sequential", "seqnz", "sequentialnz", "once", "poisson", "skewed")
    selection = []
    for word in texts(parameter):
        number_text = word.removeprefix("midpoint=")
        if number_text.replace(".", "", 1).isdigit():
            selection.append(number_text)
        else:
            selection.append(choice(parameter, word, ways))
    return tuple(selection)


def formats(parameter: Parameter) -> tuple[str, ...]:
    """Read `format=` of a run definition; a `no` among others wins."""
    exact = ("restart", "only", "once", "clean", "limited", "complete")
    words = []
    for word in texts(parameter):
        lower = word.lower()
        words.append(
            lower if lower in exact else choice(parameter, lower, ("no", "yes", "directories", *exact))
        )
    if "no" in words:
        return ("no",)
    if "complete" in words and len(words) > 1:
        raise parameter.error("formats_vdbench.filesystem.format_complete")
    if "limited" in words and "only" not in words:
        raise parameter.error("formats_vdbench.filesystem.format_limited")
    return tuple(words)


def _files(parameter: Parameter) -> int:
    count = whole(parameter, least=1)
    if count > MAX_FILES:
        raise parameter.error("formats_vdbench.filesystem.files", count=count, most=MAX_FILES)
    return count


def _level(parameter: Parameter) -> int:
    return whole(parameter, least=1, most=MAX_LEVELS)


def _width(parameter: Parameter) -> int:
    return whole(parameter, least=1)


def _stopafter(parameter: Parameter) -> Number:
    limit = number(parameter)
    most = MAX_STOP_PERCENT if limit.percent else 2**63
    if not 1 <= limit.value < most or limit.value != int(limit.value):
        raise parameter.error("formats_vdbench.filesystem.stopafter", found=repr(parameter.text))
    return limit


def _transfer_sizes(parameter: Parameter) -> Sizes:
    sizes = entity_values.sizes(parameter)
    if sizes.step_bytes:
        raise parameter.error("formats_vdbench.filesystem.transfer_sizes")
    return sizes


FSD: Final = Table(
    "file system definition (fsd=)",
    [
        Keyword("anchor", name),
        Keyword("journal", harmless="changes nothing: it is where a journal would be, and there is none"),
        Keyword("host", refused="stands in the file system workload (fwd=)"),
        Keyword("hd", exact=True, refused="stands in the file system workload (fwd=)"),
        Keyword("width", _width),
        Keyword("depth", _level),
        Keyword("sizes", _sizes),
        Keyword("shared", yes),
        Keyword("wss", _bytes, "workingsetsize"),
        Keyword("workingsetsize", _bytes),
        Keyword("total_size", _bytes, "totalsize"),
        Keyword("totalsize", _bytes),
        Keyword("files", _files),
        Keyword("distribution", _distribution),
        Keyword("cleanup", refused="is obsolete, as in vdbench"),
        Keyword("openflags", entity_values.flags),
        Keyword("log", exact=True, refused="is not supported"),
        Keyword("count", entity_values.start_and_count),
        Keyword(
            "dedupratio",
            exact=True,
            refused="is for all file systems: it stands in the general section, as vdbench has it",
        ),
    ],
)

FWD: Final = Table(
    "file system workload (fwd=)",
    [
        Keyword("fsd", names, "fsds", exact=True),
        Keyword("readpct", percent, "rdpct"),
        Keyword("rdpct", percent),
        Keyword("stopafter", _stopafter),
        Keyword("operations", operation, "operation"),
        Keyword("fileselect", _fileselect),
        Keyword("fileio", _fileio, exact=True),
        Keyword("xfersizes", _transfer_sizes, "xfersize"),
        Keyword("skew", percent),
        Keyword("threads", entity_values.threads),
        Keyword("target", name),
        Keyword("host", names, "hosts"),
        Keyword("hd", names, "hosts", exact=True),
        Keyword("openflags", entity_values.flags),
    ],
)


def numbered(systems: list[FileSystem]) -> list[FileSystem]:
    """Repeat FSDs with `count=`. Raises InputError for a missing anchor or a name given twice."""
    plain = [one for one in systems if one.count is None]
    for one in systems:
        if one.count is not None:
            first, count = one.count
            plain += [
                replace(one, name=f"{one.name}{n}", anchor=f"{one.anchor}{n}", count=None)
                for n in range(first, first + count)
            ]
    earlier_names: set[str] = set()
    for one in plain:
        if not one.anchor:
            raise make_error(
                InputError, "formats_vdbench.filesystem.no_anchor", where=one.where, one=one.name
            )
        if one.name in earlier_names:
            raise make_error(
                InputError, "formats_vdbench.filesystem.twice", where=one.where, one=f"{one.name!r}"
            )
        earlier_names.add(one.name)
    return apart(plain)


def apart(systems: list[FileSystem]) -> list[FileSystem]:
    """Return FSDs as they are. Raises InputError for an anchor inside another one, as vdbench does."""
    for one in systems:
        for other in systems:
            if one.anchor.startswith(other.anchor.rstrip("/") + "/") and one.anchor != other.anchor:
                raise make_error(
                    InputError,
                    "formats_vdbench.filesystem.anchor_inside",
                    where=one.at.get("anchor", one.where),
                    one=one.name,
                    other=other.name,
                )
    return systems
