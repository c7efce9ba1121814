"""The options of fio that give I/Os a priority.

Knows fio's notation of them. Knows nothing of what becomes of a priority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.formats.fio import numbers
from loadstone.formats.fio.option import Fields, Option, honoured, number
from loadstone.formats.fio.values import MAX_SPLITS, block_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.formats.fio.numbers import Reading

MAX_CLASS: Final = 3
MAX_LEVEL: Final = 7
MAX_HINT: Final = 1023
_ENGINES: Final = "For io_uring and libaio"


def _pair(name: str, field: str, low: int, high: int, why: str) -> Option:
    """Return the row of an option with a number for reads and one for writes."""

    def read(value: str | None, reading: Reading, fields: Mapping[str, Any]) -> Fields:
        parts = [part.strip() for part in (value or "").split(",")]
        if len(parts) > 2:
            raise reading.error("formats_fio.priorities.values", values=len(parts), found=repr(value))
        before = fields.get(field, (None, None))
        values = [numbers.integer(part, reading, low, high) if part else None for part in parts]
        values = values * 2 if len(values) == 1 else values
        return {field: tuple(old if new is None else new for new, old in zip(values, before, strict=True))}

    return honoured(name, read, why=why)


def _by_size(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
    sides = (value or "").split(",")
    if len(sides) > 3:
        raise reading.error("formats_fio.priorities.lists", sides=len(sides), found=repr(value))
    both = [_shares(side, reading) for side in sides[:2]]
    if not any(both):
        raise reading.error("formats_fio.priorities.no_entries", found=repr(value))
    return {"priorities.by_size": (both[0], both[-1])}


def _shares(text: str, reading: Reading) -> tuple[dict[str, object], ...]:
    entries = [entry.strip() for entry in text.split(":") if entry.strip()]
    if len(entries) > MAX_SPLITS:
        raise reading.error("formats_fio.priorities.entries", entries=len(entries), most=MAX_SPLITS)
    return tuple(_share(entry, reading) for entry in entries)


def _share(entry: str, reading: Reading) -> dict[str, object]:
    size, *rest = (part.strip() for part in entry.split("/"))
    if len(rest) not in (1, 3, 4):
        raise reading.error("formats_fio.priorities.entry", found=repr(entry))
    limits = (100, MAX_CLASS, MAX_LEVEL, MAX_HINT)
    percent, *priority = (
        numbers.integer(part, reading, 0, high) if part else 0
        for part, high in zip(rest, limits, strict=False)
    )
    return {
        "block_bytes": block_bytes(size, reading),
        "percent": percent,
        "priority": (*priority, 0)[:3] if priority else None,
    }


PRIORITIES: Final = (
    number(
        "prio", "priorities.job_level", high=MAX_LEVEL, why="0 is the highest. Best effort without prioclass."
    ),
    number(
        "prioclass",
        "priorities.job_class",
        high=MAX_CLASS,
        why="1 real time (needs the right to it), 2 best effort, 3 idle.",
    ),
    number("priohint", "priorities.job_hint", high=MAX_HINT, why="Needs Linux 6.5."),
    _pair("cmdprio_percentage", "priorities.percent", 0, 100, f"{_ENGINES}; of reads and of writes."),
    _pair("cmdprio_class", "priorities.classes", 1, MAX_CLASS, "Unset it is 1, real time, as in fio."),
    _pair("cmdprio", "priorities.levels", 0, MAX_LEVEL, ""),
    _pair("cmdprio_hint", "priorities.hints", 0, MAX_HINT, "Needs Linux 6.5."),
    honoured(
        "cmdprio_bssplit",
        _by_size,
        why=f"{_ENGINES}; shares of I/Os by size, as size/percent/class/level/hint.",
    ),
)
