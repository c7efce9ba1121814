"""Storage definitions: `sd=`.

Knows the keywords and the numbering of `count=`. Looks at no path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.formats.vdbench import entity_values
from loadstone.formats.vdbench.keyword import Keyword, Table
from loadstone.formats.vdbench.values import name, names
from loadstone.messages import make_error, say
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.errors import Where
    from loadstone.formats.vdbench.entity_values import Span
    from loadstone.formats.vdbench.grammar import Parameter

DEFAULT_THREADS: Final = 8
DEFAULT_HITAREA_BYTES: Final = 1 << 20
_OF_WINDOWS: Final = re.compile(r"\\\\|[A-Za-z]:")
_MASK: Final = re.compile(r"%(0?\d{0,2})d")


@dataclass(frozen=True, slots=True)
class Storage:
    """A file or device. `size` None: what is there."""

    name: str
    where: Where
    at: Mapping[str, Where]
    lun: str = ""
    luns: tuple[str, ...] = ()
    """All that `lun=` says, where it says several."""
    hosts: tuple[str, ...] = ("*",)
    places: tuple[tuple[str, str], ...] = ()
    """Of an SD that is another lun on each host: host and lun."""
    count: tuple[int, int] | None = None
    size: int | None = None
    threads: int = DEFAULT_THREADS
    hitarea: int = DEFAULT_HITAREA_BYTES
    offset: int = 0
    align: int = 0
    openflags: tuple[str, ...] = ()
    range: Span | None = None
    dedupratio: float | None = None
    joined: tuple[Storage, ...] = ()
    """The SDs that are one here."""

    @property
    def is_raw(self) -> bool:
        """Whether vdbench takes it for a raw device, whose first block is never touched."""
        return self.lun.startswith("/dev")

    @property
    def is_of_windows(self) -> bool:
        """Whether it is a path as Windows has them."""
        return _OF_WINDOWS.match(self.lun) is not None


def _luns(parameter: Parameter) -> tuple[str, ...]:
    return names(parameter) if parameter.listed else (name(parameter),)


def here(storage: Storage) -> tuple[Storage, Note | None]:
    """Return an SD with the lun it has on its first host.

    Several luns belong to as many hosts, one to each. Without hosts vdbench uses the first and no other.
    """
    at = storage.at.get("luns", storage.where)
    one = replace(storage, lun=storage.luns[0] if storage.luns else "", luns=(), at={**storage.at, "lun": at})
    if len(storage.luns) < 2:
        return one, None
    if storage.hosts == ("*",):
        text = say("formats_vdbench.storage.first_lun", luns=len(storage.luns), storage=storage.name)
        return one, Note(where=at, text=text, kind="trap")
    if len(storage.hosts) != len(storage.luns):
        raise make_error(
            InputError,
            "formats_vdbench.storage.luns_of_hosts",
            where=at,
            storage=storage.name,
            luns=len(storage.luns),
            hosts=len(storage.hosts),
        )
    return replace(one, places=tuple(zip(storage.hosts, storage.luns, strict=True))), None


def _size(parameter: Parameter) -> int:
    size_bytes = entity_values.divided(parameter)
    if size_bytes < entity_values.SECTOR_BYTES:
        raise parameter.error("formats_vdbench.storage.below_sector", size=size_bytes)
    return size_bytes


SD: Final = Table(
    "storage definition (sd=)",
    [
        Keyword("host", names, "hosts"),
        Keyword("hd", names, "hosts", exact=True),
        Keyword("lun", _luns, "luns"),
        Keyword("count", entity_values.start_and_count),
        Keyword("size", _size),
        Keyword("threads", entity_values.threads),
        Keyword("hitarea", entity_values.sectors),
        Keyword("offset", entity_values.sectors),
        Keyword("align", entity_values.sectors),
        Keyword("kstat", harmless="changes nothing: it is for Solaris"),
        Keyword("instance", harmless="changes nothing: it is for Solaris"),
        Keyword(
            "replay", exact=True, refused="is not supported: traces are not replayed from parameter files"
        ),
        Keyword("journal", harmless="changes nothing: a journal is kept in the bundle of its run"),
        Keyword("resetlun", refused="is not supported: no SCSI resets are sent"),
        Keyword("resetbus", refused="is not supported: no SCSI resets are sent"),
        Keyword("openflags", entity_values.flags),
        Keyword("range", entity_values.span),
        Keyword("dedupratio", entity_values.positive, exact=True),
        Keyword("dedupsets", exact=True, harmless="changes nothing: repeats are drawn, not kept in sets"),
        Keyword("deduphotsets", exact=True, refused="is not supported: there are no sets of equal blocks"),
        Keyword("dedupflipflop", exact=True, refused="is not supported: there are no sets of equal blocks"),
        Keyword("streams", refused="belongs to a workload definition (wd=)"),
    ],
)


def numbered(storages: list[Storage]) -> list[Storage]:
    """Repeat SDs with `count=`, at the end as vdbench does. Raises InputError for a name given twice."""
    plain = [storage for storage in storages if storage.count is None]
    for storage in storages:
        if storage.count is not None:
            first, count = storage.count
            plain += [
                replace(
                    storage,
                    name=counted(storage.name, number),
                    lun=counted(storage.lun, number),
                    count=None,
                )
                for number in range(first, first + count)
            ]
    earlier_names: set[str] = set()
    for storage in plain:
        if storage.name in earlier_names:
            raise make_error(
                InputError, "formats_vdbench.storage.twice", where=storage.where, storage=f"{storage.name!r}"
            )
        earlier_names.add(storage.name)
    return plain


def counted(text: str, number: int) -> str:
    """Put a number into a name: for `%d`, `%03d` or `*`, else behind it."""
    match = _MASK.search(text)
    if match:
        return text[: match.start()] + f"{number:{match[1]}d}" + text[match.end() :]
    return text.replace("*", str(number)) if "*" in text else f"{text}{number}"
