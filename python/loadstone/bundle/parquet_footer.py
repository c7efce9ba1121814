"""What a Parquet file says of itself, held against its size before a reader believes it.

Polars allocates what a footer or the header of a page promises, and ends the process when that is
more than there is. Knows their compact Thrift encoding and the few fields that promise an amount
or name a place. Knows no table of ours, and decompresses nothing.
Format: parquet-format, `parquet.thrift`; Apache Thrift, "compact protocol".
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone.messages import make_error

if TYPE_CHECKING:
    from typing import BinaryIO

MAGIC: Final = b"PAR1"
MOST_DEEP: Final = 16
"""Structures in structures; the format itself needs six."""

# Field numbers of parquet.thrift.
SCHEMA, NUM_ROWS, ROW_GROUPS = 2, 3, 4
GROUP_COLUMNS, GROUP_BYTES, GROUP_ROWS = 1, 2, 3
CHUNK_META = 3
META_VALUES, META_EXPANDED, META_BYTES, META_DATA_AT, META_DICTIONARY_AT = 5, 6, 7, 9, 11
ELEMENT_REPETITION, ELEMENT_NAME, ELEMENT_CHILDREN = 3, 4, 5
REPEATED: Final = 2
PAGE_KIND, PAGE_EXPANDED, PAGE_BYTES, PAGE_V1, PAGE_DICTIONARY, PAGE_V2 = 1, 2, 3, 5, 7, 8
PAGE_VALUES, V2_NULLS, V2_ROWS, V2_DEFINITION_BYTES, V2_REPETITION_BYTES = 1, 2, 3, 5, 6

# Types of the compact protocol; 3 to 6 are whole numbers.
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
NUMBERS: Final = (4, 5, 6)
VERSION_TYPE: Final = 5
SMALL_BYTES: Final = 1 << 20
"""A file that is copied to be looked at: most have some KiB."""
MOST_SCHEMAS: Final = 8

Bytes = bytes | mmap.mmap
_NUMBER: Final = rb"([\x80-\xff]{0,9}[\x00-\x7f])"
_PASSED: Final = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
PLAIN_PAGE: Final = re.compile(
    rb"\x15%b\x15%b\x15%b(?:\x4c\x15%b\x15%b\x00|\x2c\x15%b\x15%b\x15%b\x15%b\x00)\x00"
    % (*[_NUMBER] * 4, _PASSED, _NUMBER, *[_PASSED] * 3)
)
"""Of a dictionary or the first version, without statistics."""
CHUNK_BEGIN: Final = re.compile(rb"\x26%b\x1c\x15%b\x19(?:\x15%b|\x25%b%b|\x35%b%b%b)\x19" % ((_PASSED,) * 8))
CHUNK_END: Final = re.compile(
    rb"\x15%b\x16%b\x16%b\x16%b\x26%b(?:\x26%b)?\x00\x16%b\x15%b\x00"
    % (_PASSED, *[_NUMBER] * 5, _PASSED, _PASSED)
)
PLAIN_ELEMENT: Final = re.compile(rb"\x15[\x00-\x7f]\x25([\x00-\x7f])\x18([\x01-\x7f])")
"""Of a schema: a column of plain numbers, up to the length of its name."""
META_READ: Final = (META_VALUES, META_EXPANDED, META_BYTES, META_DATA_AT, META_DICTIONARY_AT)
"""What `CHUNK_END` finds."""

Columns = tuple[tuple[str, ...], list[bool]]
_known_schemas: dict[bytes, Columns] = {}
"""What the first bytes of footers, up to the end of their schemas, were read as."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file promises: rows, top-level columns in order, and bytes once they are decompressed."""

    rows: int
    columns: tuple[str, ...]
    expanded_bytes: int
    largest_group_bytes: int


def read(file: BinaryIO, most_values: int) -> Footer:
    """Return the footer of a file.

    Raises `ValueError` where it contradicts itself or the file's size, or where a row has on
    average more than `most_values` values in a column of lists.
    """
    size = os.fstat(file.fileno()).st_size
    if size < 12:
        raise make_error(ValueError, "bundle.parquet.short")
    if size <= SMALL_BYTES:
        # A map's bytes are slow to go through one by one.
        return _read(os.pread(file.fileno(), size, 0), most_values)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _read(data, most_values)


def _read(data: Bytes, most_values: int) -> Footer:
    length, magic = struct.unpack("<I4s", data[-8:])
    if magic != MAGIC or not 0 < length <= len(data) - 12:
        raise make_error(ValueError, "bundle.parquet.end")
    try:
        return _checked(data[len(data) - 8 - length : len(data) - 8], data, most_values)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise make_error(ValueError, "bundle.parquet.unreadable") from error


def _checked(footer: bytes, data: Bytes, most_values: int) -> Footer:
    fields, (columns, leaves) = _fields(footer)
    rows = expanded = largest = 0
    for group in fields.get(ROW_GROUPS, ()):
        chunks = [chunk[CHUNK_META] for chunk in group[GROUP_COLUMNS]]
        if len(chunks) != len(leaves):
            raise make_error(ValueError, "bundle.parquet.columns", found=len(chunks), columns=len(leaves))
        count = _amount(group[GROUP_ROWS])
        rows += count
        bytes_ = max(_amount(group[GROUP_BYTES]), sum(_amount(meta[META_EXPANDED]) for meta in chunks))
        expanded, largest = expanded + bytes_, max(largest, bytes_)
        for meta, lists in zip(chunks, leaves, strict=True):
            if not count <= meta[META_VALUES] <= count * (most_values if lists else 1):
                raise make_error(ValueError, "bundle.parquet.values", rows=count, values=meta[META_VALUES])
            _check_pages(meta, data)
    if rows != fields[NUM_ROWS]:
        raise make_error(ValueError, "bundle.parquet.rows", rows=rows, expected=fields[NUM_ROWS])
    return Footer(rows, columns, expanded, largest)


def _fields(footer: bytes) -> tuple[dict[int, Any], Columns]:
    """Return the fields of a footer and what `_columns` makes of its schema.

    Tables of one kind begin with the same bytes, their schema, which is half of the work: it is kept.
    """
    for begin, columns in _known_schemas.items():
        if footer.startswith(begin):
            return _struct(footer, len(begin), number=SCHEMA)[0], columns
    fields, _ = _struct(footer, 0)
    columns = _columns(fields[SCHEMA])
    end = _end_of_schema(footer)
    if end:
        if len(_known_schemas) == MOST_SCHEMAS:
            del _known_schemas[next(iter(_known_schemas))]
        _known_schemas[footer[:end]] = columns
    return fields, columns


def _end_of_schema(footer: bytes) -> int:
    """Return where the schema of a footer ends that can be read; 0 where it is not the second field."""
    if footer[0] != 1 << 4 | VERSION_TYPE:
        return 0
    _, at = _zigzag(footer, 1)
    if footer[at] != 1 << 4 | LIST:
        return 0
    return _list(footer, at + 1, 1)[1]


def _check_pages(meta: dict[int, Any], data: Bytes) -> None:
    """Hold the pages of one column of a row group against what the footer says of them."""
    at = min(meta[META_DATA_AT], meta.get(META_DICTIONARY_AT) or meta[META_DATA_AT])
    end = at + _amount(meta[META_BYTES])
    if not 4 <= at <= end <= len(data):
        raise make_error(ValueError, "bundle.parquet.column_outside")
    values, expanded = meta[META_VALUES], meta[META_EXPANDED]
    while at < end:
        page, at = _page(data, at)
        at += _amount(page[PAGE_BYTES])
        expanded -= _amount(page[PAGE_EXPANDED])
        if PAGE_DICTIONARY in page:
            if not 0 <= page[PAGE_DICTIONARY][PAGE_VALUES] <= meta[META_VALUES]:
                raise make_error(ValueError, "bundle.parquet.dictionary")
            continue
        head = page[PAGE_V2] if PAGE_V2 in page else page[PAGE_V1]
        values -= _amount(head[PAGE_VALUES])
        if PAGE_V2 in page:
            levels = _amount(head[V2_DEFINITION_BYTES]) + _amount(head[V2_REPETITION_BYTES])
            counts = (head[V2_NULLS], head[V2_ROWS])
            if levels > page[PAGE_BYTES] or not all(0 <= one <= head[PAGE_VALUES] for one in counts):
                raise make_error(ValueError, "bundle.parquet.page_header")
    if at != end or values or expanded < 0:
        raise make_error(ValueError, "bundle.parquet.pages")


def _columns(elements: list[dict[int, Any]]) -> Columns:
    """Return the names of the top-level columns and, of every leaf, whether it is in a list.

    The schema is a tree, each element before its children.
    """
    names: list[str] = []
    leaves: list[bool] = []
    # Of each element we are below: how many children are to come, and whether they are in a list.
    open_: list[tuple[int, bool]] = [(elements[0][ELEMENT_CHILDREN], False)]
    for element in elements[1:]:
        while not open_[-1][0]:
            open_.pop()
        left, lists = open_[-1]
        open_[-1] = (left - 1, lists)
        if len(open_) == 1:
            names.append(element[ELEMENT_NAME].decode())
        lists = lists or element.get(ELEMENT_REPETITION) == REPEATED
        if element.get(ELEMENT_CHILDREN):
            open_.append((element[ELEMENT_CHILDREN], lists))
        else:
            leaves.append(lists)
    if any(left for left, _ in open_):
        raise make_error(ValueError, "bundle.parquet.schema")
    return tuple(names), leaves


def _amount(value: int) -> int:
    if value < 0:
        raise make_error(ValueError, "bundle.parquet.below_zero")
    return value


def _struct(data: Bytes, at: int, deep: int = 0, number: int = 0) -> tuple[dict[int, Any], int]:
    """Read a structure of Thrift's compact protocol: its fields by number, and where it ends.

    `number` is that of the field before `at`. Written out where calls would do, and without an object: a
    table has hundreds of these, a study hundreds of tables.
    """
    if deep > MOST_DEEP:
        raise make_error(ValueError, "bundle.parquet.too_deep")
    fields: dict[int, Any] = {}
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        kind = head & 15
        if kind in NUMBERS:
            byte = data[at]
            if byte < 128:
                at += 1
                fields[number] = (byte >> 1) ^ -(byte & 1)
            else:
                fields[number], at = _zigzag(data, at)
        elif kind == STRUCT:
            fields[number], at = _struct(data, at, deep + 1)
        elif kind in (TRUE, FALSE):
            fields[number] = kind == TRUE
        else:
            fields[number], at = _value(data, at, kind, deep)
    return fields, at + 1


def _value(data: Bytes, at: int, kind: int, deep: int) -> tuple[Any, int]:
    if kind == BINARY:
        count, at = _varint(data, at)
        return _part(data, at, count), at + count
    if kind in (LIST, SET):
        return _list(data, at, deep + 1)
    if kind in NUMBERS:
        return _zigzag(data, at)
    if kind == STRUCT:
        return _struct(data, at, deep + 1)
    if kind in (TRUE, FALSE, BYTE):
        return data[at], at + 1
    if kind == DOUBLE:
        return struct.unpack("<d", _part(data, at, 8))[0], at + 8
    raise make_error(ValueError, "bundle.parquet.field_type", found=kind)


def _list(data: Bytes, at: int, deep: int) -> tuple[list[Any], int]:
    head = data[at]
    at += 1
    count, kind = head >> 4, head & 15
    if count == 15:
        count, at = _varint(data, at)
    # Each takes a byte at least, so a list of more cannot be there.
    if count > len(data) - at:
        raise make_error(ValueError, "bundle.parquet.list_length")
    values: list[Any] = []
    for _ in range(count):
        value, at = _in_list(data, at, deep) if kind == STRUCT else _value(data, at, kind, deep)
        values.append(value)
    return values, at


def _page(data: Bytes, at: int) -> tuple[dict[int, Any], int]:
    """Read the header of a page: as Polars writes it at once, any other field by field."""
    usual = PLAIN_PAGE.match(data, at)
    if usual is None:
        return _struct(data, at)
    kind, expanded, size, dictionary, values = map(_number, usual.groups())
    head = {PAGE_VALUES: dictionary if values is None else values}
    return {
        PAGE_KIND: kind, PAGE_EXPANDED: expanded, PAGE_BYTES: size,
        PAGE_DICTIONARY if values is None else PAGE_V1: head,
    }, usual.end()  # fmt: skip


def _in_list(data: Bytes, at: int, deep: int) -> tuple[dict[int, Any], int]:
    """Read a structure of a list: at once what Polars writes of a column, or of one in a group of rows.

    Only the fields that are looked at are there then.
    """
    plain = PLAIN_ELEMENT.match(data, at)
    if plain is not None:
        # A table of monitors has a hundred of them, and each engine has threads of other names.
        after = plain.end() + plain[2][0]
        if data[after] == 0:
            column = {ELEMENT_REPETITION: _number(plain[1]), ELEMENT_NAME: data[plain.end() : after]}
            return column, after + 1
    begin = CHUNK_BEGIN.match(data, at)
    if begin is None:
        return _struct(data, at, deep + 1)
    # The names on the way to the column: as many as the list's head says, each behind its length.
    names, after = data[begin.end()] >> 4, begin.end() + 1
    for _ in range(names):
        after += 1 + data[after]
    end = CHUNK_END.match(data, after)
    if end is None or data[begin.end()] & 15 != BINARY or not 0 < names < 15:
        return _struct(data, at, deep + 1)
    meta = {
        number: value
        for number, raw in zip(META_READ, end.groups(), strict=True)
        if (value := _number(raw)) is not None
    }
    return {CHUNK_META: meta}, end.end()


def _number(raw: bytes | None) -> int | None:
    """Return what a whole number of some bytes says; None for a field that is not there."""
    if raw is None:
        return None
    if len(raw) == 1:
        return (raw[0] >> 1) ^ -(raw[0] & 1)
    value = 0
    for byte in reversed(raw):
        value = value << 7 | byte & 127
    return (value >> 1) ^ -(value & 1)


def _part(data: Bytes, at: int, count: int) -> bytes:
    if count > len(data) - at:
        raise make_error(ValueError, "bundle.parquet.text_length")
    return data[at : at + count]


def _varint(data: Bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) >= 128:
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if shift > 63:
            raise make_error(ValueError, "bundle.parquet.number_length")
    return value | byte << shift, at + 1


def _zigzag(data: Bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at
