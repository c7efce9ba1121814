"""What a Parquet file says of itself, held against its size before a reader believes it.

Polars allocates what a footer or the header of a page promises, and ends the process when that is
more than there is. Knows their compact Thrift encoding and the few fields that promise an amount
or name a place. Knows no table of ours, and decompresses nothing.
Format: parquet-format, `parquet.thrift`; Apache Thrift, "compact protocol".
"""

from __future__ import annotations

import mmap
import os
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
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        length, magic = struct.unpack("<I4s", data[-8:])
        if magic != MAGIC or not 0 < length <= size - 12:
            raise make_error(ValueError, "bundle.parquet.end")
        try:
            # A copy: its bytes are gone through one by one, and those of a map are slow.
            return _checked(_Compact(data[size - 8 - length : size - 8]).struct(), data, most_values)
        except (IndexError, KeyError, TypeError, AttributeError) as error:
            raise make_error(ValueError, "bundle.parquet.unreadable") from error


def _checked(fields: dict[int, Any], data: mmap.mmap, most_values: int) -> Footer:
    columns, leaves = _columns(fields[SCHEMA])
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


def _check_pages(meta: dict[int, Any], data: mmap.mmap) -> None:
    """Hold the pages of one column of a row group against what the footer says of them."""
    at = min(meta[META_DATA_AT], meta.get(META_DICTIONARY_AT) or meta[META_DATA_AT])
    end = at + _amount(meta[META_BYTES])
    if not 4 <= at <= end <= len(data):
        raise make_error(ValueError, "bundle.parquet.column_outside")
    values, expanded = meta[META_VALUES], meta[META_EXPANDED]
    while at < end:
        reader = _Compact(data, at)
        page = reader.struct()
        at = reader.at + _amount(page[PAGE_BYTES])
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


def _columns(elements: list[dict[int, Any]]) -> tuple[tuple[str, ...], list[bool]]:
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


class _Compact:
    """Reads one structure of Thrift's compact protocol as a dictionary of field numbers."""

    def __init__(self, data: mmap.mmap | bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def struct(self, deep: int = 0) -> dict[int, Any]:
        if deep > MOST_DEEP:
            raise make_error(ValueError, "bundle.parquet.too_deep")
        # Written out where a call would do: a table has thousands of these, a study hundreds of tables.
        data, number = self._data, 0
        fields: dict[int, Any] = {}
        while head := data[self.at]:
            self.at += 1
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            if kind in NUMBERS:
                byte = data[self.at]
                if byte < 128:
                    self.at += 1
                    fields[number] = (byte >> 1) ^ -(byte & 1)
                else:
                    fields[number] = self._zigzag()
            else:
                fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, deep)
        self.at += 1
        return fields

    def _value(self, kind: int, deep: int) -> Any:
        if kind == STRUCT:
            return self.struct(deep + 1)
        if kind in (LIST, SET):
            return self._list(deep + 1)
        if kind == BINARY:
            return self._take(self._varint())
        if kind in NUMBERS:
            return self._zigzag()
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind == DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        raise make_error(ValueError, "bundle.parquet.field_type", found=kind)

    def _list(self, deep: int) -> list[Any]:
        head = self._byte()
        count = head >> 4
        if count == 15:
            count = self._varint()
        # Each takes a byte at least, so a list of more cannot be there.
        if count > len(self._data) - self.at:
            raise make_error(ValueError, "bundle.parquet.list_length")
        kind = head & 15
        return [self.struct(deep + 1) if kind == STRUCT else self._value(kind, deep) for _ in range(count)]

    def _byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise make_error(ValueError, "bundle.parquet.text_length")
        self.at += count
        return self._data[self.at - count : self.at]

    def _varint(self) -> int:
        data, at = self._data, self.at
        value = shift = 0
        while (byte := data[at]) >= 128:
            value |= (byte & 127) << shift
            at += 1
            shift += 7
            if shift > 63:
                raise make_error(ValueError, "bundle.parquet.number_length")
        self.at = at + 1
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
