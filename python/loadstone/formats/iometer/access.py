"""Access specifications: named mixes of I/Os.

Knows the section ACCESS SPECIFICATIONS in its two forms: named, and the one before
21 May 1998, where a line of 100 % ends a specification without a name. Knows no worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, Where
from loadstone.formats.iometer.lines import number, plain
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.formats.iometer.lines import IcfLines, Pair

ASSIGNED: Final = ("NONE", "ALL", "DISK", "NET")
"""To whom a new worker's list has it; in the order of the numbers old files have."""
NAME_KEY: Final = "access specification name,default assignment"
END_KEY: Final = "end access specifications"
COLUMNS: Final = ("size", "% of size", "% reads", "% random", "delay", "burst", "align", "reply")
_OLD_COLUMNS: Final = COLUMNS[:6]
_OLD_ALIGN_BYTES: Final = 2048
"""What Iometer gives lines of the old form, which have none of their own."""
SECTOR_BYTES: Final = 512
MAX_BLOCK_BYTES: Final = 2**31 - SECTOR_BYTES
KEYS: Final = (NAME_KEY, ",".join(COLUMNS), END_KEY)


@dataclass(frozen=True, slots=True)
class AccessRow:
    """One line of a specification."""

    size_bytes: int
    percent: int
    read_percent: int
    random_percent: int
    delay_ms: int
    """Before each burst."""
    burst: int
    align_bytes: int
    """0: sectors."""
    reply_bytes: int
    """0: none."""
    where: Where

    def text(self) -> str:
        """Return the line as Iometer writes it."""
        return ",".join(
            str(value)
            for value in (
                self.size_bytes,
                self.percent,
                self.read_percent,
                self.random_percent,
                self.delay_ms,
                self.burst,
                self.align_bytes,
                self.reply_bytes,
            )
        )


@dataclass(frozen=True, slots=True)
class AccessSpec:
    """A named mix."""

    name: str
    assigned: str
    rows: tuple[AccessRow, ...]
    where: Where


def read_access(lines: IcfLines, note: Callable[[Where, str], None], *, named: bool) -> list[AccessSpec]:
    """Read the section up to its end. `note` hears of what Iometer does without a word."""
    if not named:
        return _unnamed(lines)
    specs: dict[str, AccessSpec] = {}
    while True:
        pair = lines.pair("ACCESS SPECIFICATIONS")
        if pair.key == END_KEY:
            return list(specs.values())
        if pair.key != NAME_KEY:
            raise lines.unknown(pair, "ACCESS SPECIFICATIONS", KEYS)
        spec = _named(lines, pair, note)
        if spec.name.lower() in specs:
            note(spec.where, say("formats_iometer.access.second", name=repr(spec.name)))
        specs[spec.name.lower()] = spec


def _named(lines: IcfLines, pair: Pair, note: Callable[[Where, str], None]) -> AccessSpec:
    name, comma, assigned = pair.value.rpartition(",")
    if not comma:
        name, assigned = pair.value, "NONE"
    name, assigned = name.strip(), assigned.strip().upper()
    if not name:
        raise pair.wrong("formats_iometer.expected.named_default")
    at = number(assigned)
    if at is not None and at < len(ASSIGNED):
        assigned = ASSIGNED[at]
    if assigned not in ASSIGNED:
        raise pair.wrong("formats_iometer.expected.named_assignment", assigned=", ".join(ASSIGNED))
    heading = lines.take()
    if heading is None or not heading.is_key or not plain(heading.text).startswith("size"):
        raise make_error(
            InputError,
            "formats_iometer.access.no_columns",
            where=lines.where(heading or None),
            name=f"{name!r}",
            columns=",".join(COLUMNS),
        )
    rows = []
    for text, where in lines.values(name):
        row = _row(text.removesuffix(",").split(","), where, COLUMNS)
        if row.percent:
            rows.append(row)
        else:
            note(where, say("formats_iometer.access.empty_row"))
    _check_sum(rows, name, pair.where)
    return AccessSpec(name, assigned, tuple(rows), pair.where)


def _check_sum(rows: list[AccessRow], name: str, where: Where) -> None:
    total = sum(row.percent for row in rows)
    if total != 100:
        raise make_error(
            InputError, "formats_iometer.access.shares", where=where, name=f"{name!r}", total=total
        )


def _row(words: list[str], where: Where, columns: tuple[str, ...]) -> AccessRow:
    values = [number(word.strip()) for word in words]
    if len(words) != len(columns) or None in values:
        raise make_error(
            InputError,
            "formats_iometer.access.numbers",
            where=where,
            names=f"{','.join(word.strip() for word in words)[:80]!r}",
            count=len(columns),
            columns=", ".join(columns),
        )
    by_name = dict(zip(columns, (value or 0 for value in values), strict=True))
    for name in ("% of size", "% reads", "% random"):
        if by_name[name] > 100:
            raise make_error(
                InputError, "formats_iometer.access.over_100", where=where, name=name, given=by_name[name]
            )
    for name in ("delay", "burst", "align", "reply"):
        if by_name.get(name, 0) > MAX_BLOCK_BYTES:
            raise make_error(
                InputError,
                "formats_iometer.access.over_limit",
                where=where,
                name=name,
                given=by_name[name],
                max_block=MAX_BLOCK_BYTES,
            )
    size_bytes = by_name["size"]
    if not 0 < size_bytes <= MAX_BLOCK_BYTES or size_bytes % SECTOR_BYTES:
        raise make_error(
            InputError, "formats_iometer.access.size", where=where, size=size_bytes, sector=SECTOR_BYTES
        )
    align_bytes = by_name.get("align", _OLD_ALIGN_BYTES)
    if align_bytes % SECTOR_BYTES:
        raise make_error(
            InputError, "formats_iometer.access.align", where=where, align=align_bytes, sector=SECTOR_BYTES
        )
    return AccessRow(
        size_bytes=size_bytes,
        percent=by_name["% of size"],
        read_percent=by_name["% reads"],
        random_percent=by_name["% random"],
        delay_ms=by_name["delay"],
        burst=max(by_name["burst"], 1),
        align_bytes=align_bytes,
        reply_bytes=by_name.get("reply", 0),
        where=where,
    )


def _unnamed(lines: IcfLines) -> list[AccessSpec]:
    """Read the old form: lines of six numbers; each 100 % of them are a specification."""
    specs: list[AccessSpec] = []
    rows: list[AccessRow] = []
    _past_headings(lines)
    for text, where in lines.values("ACCESS SPECIFICATIONS"):
        row = _row(text.replace(",", " ").split(), where, _OLD_COLUMNS)
        rows += [row] if row.percent else []
        total = sum(one.percent for one in rows)
        if total > 100:
            raise make_error(InputError, "formats_iometer.access.shares_so_far", where=where, total=total)
        if total == 100:
            name = _free_name(smart_name(rows), {spec.name.lower() for spec in specs})
            specs.append(AccessSpec(name, "ALL", tuple(rows), rows[0].where))
            rows = []
    if rows:
        _check_sum(rows, "the last specification", rows[0].where)
    line = lines.peek()
    if line is not None and line.is_key and plain(line.text) == END_KEY:
        lines.take()
    return specs


def _past_headings(lines: IcfLines) -> None:
    while (line := lines.peek()) is not None and line.is_key and plain(line.text).startswith("size"):
        lines.take()


def smart_name(rows: list[AccessRow]) -> str:
    """Return the name Iometer gives to a specification of one line that has none."""
    if len(rows) != 1:
        return "Untitled 1"
    row = rows[0]
    size = f"{row.size_bytes} B"
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if row.size_bytes % unit == 0:
            size = f"{row.size_bytes // unit} {name}"
            break
    order = {0: "sequential", 100: "random"}.get(row.random_percent, f"{row.random_percent}% random")
    direction = {0: "writes", 100: "reads"}.get(row.read_percent, f"{row.read_percent}% reads")
    return f"{size} {order} {direction}"


def _free_name(name: str, taken: set[str]) -> str:
    base = name.removesuffix(" 1") if name.startswith("Untitled") else name
    count = 1
    while name.lower() in taken:
        count += 1
        name = f"{base} {count}"
    return name
