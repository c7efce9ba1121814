"""Arrow IPC streams that may end in the middle of a message.

Knows the framing of the stream format, because a killed engine leaves a half-written last
message and the ordinary readers refuse the whole file then. Knows no table's meaning.
Format: Arrow columnar specification, "Encapsulated message format" and `Message.fbs`.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

import polars as pl
from polars.io.plugins import register_io_source

from loadstone.bundle import older
from loadstone.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTINUATION: Final = 0xFFFFFFFF
END_OF_STREAM: Final = struct.pack("<II", CONTINUATION, 0)
BODY_LENGTH_SLOT: Final = 4 + 2 * 3
"""Where a Message's vtable says where `bodyLength` (its fourth field) is."""
PIECE_BYTES: Final = 16 << 20
"""Convert about this much at a time, so that a table of every I/O needs no memory of its size."""


def read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    """Return the whole messages of a stream; no file or no message is an empty table.

    Raises `BundleError` when a column of `schema` is missing or has another type.
    """
    found = list(pieces(path, schema))
    return pl.concat(found) if found else schema.to_frame()


def to_parquet(path: Path, out: Path, schema: pl.Schema) -> None:
    """Write the whole messages of a stream as zstd Parquet, in memory that does not grow with it."""

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch: int | None
    ) -> Iterator[pl.DataFrame]:
        left = limit
        for piece in pieces(path, schema):
            table = piece if predicate is None else piece.filter(predicate)
            table = table if columns is None else table.select(columns)
            if left is not None:
                table = table.head(left)
                left -= table.height
            yield table
            if left == 0:
                return

    register_io_source(rows, schema=schema, is_pure=True).sink_parquet(out, compression="zstd")


def pieces(path: Path, schema: pl.Schema) -> Iterator[pl.DataFrame]:
    """Yield tables of about `PIECE_BYTES` each, with exactly the columns of `schema`."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        ends = _message_ends(data)
        header_end = next(ends, 0)
        if not header_end:
            return
        header, begin, end = data[:header_end], header_end, header_end
        for end in ends:
            if end - begin >= PIECE_BYTES:
                yield _table(header + data[begin:end], schema, path)
                begin = end
        if end > begin:
            yield _table(header + data[begin:end], schema, path)


class Follower:
    """Reads a stream while it is written: each time what is whole and was not read before."""

    def __init__(self, path: Path, schema: pl.Schema) -> None:
        self._path = path
        self._schema = schema
        self._header = b""
        self._at = 0

    def new(self) -> pl.DataFrame:
        """Return the rows that came since the last time; none when there are none."""
        if not self._path.exists():
            return self._schema.to_frame()
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        ends = list(_message_ends(data))
        begin = 0
        if not self._header and ends:
            begin = ends.pop(0)
            self._header = data[:begin]
        end = ends[-1] if ends else begin
        self._at += end
        if end == begin:
            return self._schema.to_frame()
        return _table(self._header + data[begin:end], self._schema, self._path)


def _table(messages: bytes, schema: pl.Schema, path: Path) -> pl.DataFrame:
    table = older.filled(pl.read_ipc_stream(messages + END_OF_STREAM))
    for name, kind in schema.items():
        found = table.schema.get(name)
        if found != kind:
            what = "is missing" if found is None else f"has type {found}"
            raise BundleError(f"{path}: column {name!r} {what}, expected {kind}")
    return table.select(schema.names())


def _message_ends(data: mmap.mmap | bytes) -> Iterator[int]:
    """Offsets just after each message that is there in full, the schema's first."""
    at, size = 0, len(data)
    while at + 8 <= size:
        mark, metadata_bytes = struct.unpack_from("<II", data, at)
        # Anything else here is the end mark, or bytes that never reached the disk.
        if mark != CONTINUATION or metadata_bytes == 0 or at + 8 + metadata_bytes > size:
            return
        at += 8 + metadata_bytes + _body_bytes(data, at + 8)
        if at > size:
            return
        yield at


def _body_bytes(data: mmap.mmap | bytes, root_at: int) -> int:
    """Read `bodyLength` of the flatbuffer table `Message`; a field left out is 0."""
    table_at = root_at + int(struct.unpack_from("<I", data, root_at)[0])
    vtable_at = table_at - int(struct.unpack_from("<i", data, table_at)[0])
    if int(struct.unpack_from("<H", data, vtable_at)[0]) <= BODY_LENGTH_SLOT:
        return 0
    field = int(struct.unpack_from("<H", data, vtable_at + BODY_LENGTH_SLOT)[0])
    return int(struct.unpack_from("<q", data, table_at + field)[0]) if field else 0
