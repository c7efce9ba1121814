"""Arrow IPC streams that may end in the middle of a message.

Knows the framing of the stream format, because a killed engine leaves a half-written last
message and the ordinary readers refuse the whole file then. What is damaged further in ends the
stream there. Knows no table's meaning.
Format: Arrow columnar specification, "Encapsulated message format" and `Message.fbs`.
"""

from __future__ import annotations

import contextlib
import os
import struct
from typing import IO, TYPE_CHECKING, BinaryIO, Final

import polars as pl
from polars.io.plugins import register_io_source

from loadstone import messages
from loadstone.bundle import layout, members
from loadstone.errors import BundleError, as_text, system_error_number
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

CONTINUATION: Final = 0xFFFFFFFF
END_OF_STREAM: Final = struct.pack("<II", CONTINUATION, 0)
KIND_SLOT: Final = 4 + 2 * 1
HEADER_SLOT: Final = 4 + 2 * 2
BODY_LENGTH_SLOT: Final = 4 + 2 * 3
"""Where a Message's vtable says where its fields are: the type of `header`, `header`, `bodyLength`."""
NODES_SLOT: Final = 4 + 2 * 1
BUFFERS_SLOT: Final = 4 + 2 * 2
COMPRESSION_SLOT: Final = 4 + 2 * 3
"""The same of a RecordBatch's `nodes`, `buffers` and `compression` (Arrow's Message.fbs)."""
SCHEMA: Final = 1
RECORD_BATCH: Final = 3
MOST_METADATA_BYTES: Final = 1 << 24
"""A message describes its buffers in a few thousand bytes."""
PADDING_BYTES: Final = 64
"""A body ends where its last buffer does, but for less than this."""
MOST_BODY_BYTES: Final = 1 << 28
GROUP_ROWS: Final = 4096
MORE_BYTES: Final = 1 << 18
"""More than a footer has."""
PIECE_BYTES: Final = 16 << 20
"""Convert about this much at a time, so that a table of every I/O needs no memory of its size."""


UNREADABLE: Final = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    MemoryError,
    ValueError,
)
"""What Polars raises of bytes that are no table."""


class DamagedError(Exception):
    """What comes next in a stream is nothing that the engine writes."""


def to_parquet(path: Path, out: Path, schema: pl.Schema) -> None:
    """Write the whole messages of a stream as zstd Parquet, in memory that does not grow with it.

    Groups of rows are small enough to be read one at a time: rows of histograms are long.
    """
    lists = any(isinstance(kind, pl.List) for kind in schema.values())
    counted = pl.Schema({name: kind for name, kind in layout.COUNTED.items() if lists})
    counts = [
        pl.col(f"{name.removesuffix('_samples')}_count").list.sum().cast(kind).alias(name)
        for name, kind in counted.items()
    ]
    sink(
        lambda: (piece.with_columns(counts) for piece in pieces(path, schema)),
        out,
        pl.Schema({**schema, **counted}),
        GROUP_ROWS if lists else 32 * GROUP_ROWS,
    )


def sink(tables: Callable[[], Iterable[pl.DataFrame]], out: Path, schema: pl.Schema, group_rows: int) -> None:
    """Write tables as they are made as one zstd Parquet file, with so many rows in a group."""

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch: int | None
    ) -> Iterator[pl.DataFrame]:
        left = limit
        for piece in tables():
            table = piece if predicate is None else piece.filter(predicate)
            table = table if columns is None else table.select(columns)
            if left is not None:
                table = table.head(left)
                left -= table.height
            yield table
            if left == 0:
                return

    source = register_io_source(rows, schema=schema, is_pure=True)
    with told_by_the_system(out), for_polars(out, "wb") as file:
        # Nothing is looked for by its bounds, and each of them is read before any row is.
        source.sink_parquet(file, compression="zstd", row_group_size=group_rows, statistics=False)


@contextlib.contextmanager
def for_polars(path: Path, mode: str) -> Iterator[Path | IO[bytes]]:
    """Give what Polars takes for a file: it knows no name that is not UTF-8."""
    if as_text(str(path)) == str(path):
        yield path
        return
    with path.open(mode) as file:
        yield file


@contextlib.contextmanager
def told_by_the_system(out: Path) -> Iterator[None]:
    """Let a file that cannot be written end in the system's error: Polars has no reason for a footer.

    Whoever writes a little more to the same file hears it. Raises `OSError` then.
    """
    try:
        yield
    except pl.exceptions.PolarsError as error:
        if system_error_number(error) is None:
            with out.open("ab", buffering=0) as file:
                left = MORE_BYTES
                while left:
                    left -= file.write(bytes(left)) or 0
                os.fsync(file.fileno())
        raise


def pieces(path: Path, schema: pl.Schema, say: Callable[[str], None] | None = None) -> Iterator[pl.DataFrame]:
    """Yield tables of about `PIECE_BYTES` each, with exactly the columns of `schema`.

    `say` is told, in words, where a stream is damaged and not only cut off. Raises `BundleError`
    when a column of `schema` is missing or has another type.
    """
    if not members.exists(path.parent, path.name):
        return
    with members.open_member(path.parent, path.name) as file:
        lost = 0
        try:
            stream = _messages(file, os.fstat(file.fileno()).st_size)
            header = next(stream, None)
            for together in _together(stream):
                # The schema is there: it comes first.
                tables, unreadable = _salvaged(header or b"", together, schema, path)
                lost += unreadable
                yield from tables
        except DamagedError as error:
            if say is not None:
                say(messages.say("bundle.fault.damaged_from", file=path.name, byte=str(error)))
        if lost and say is not None:
            say(messages.say("bundle.fault.intervals", file=path.name, count=lost))


def _together(messages: Iterable[bytes]) -> Iterator[list[bytes]]:
    waiting: list[bytes] = []
    waiting_bytes = 0
    try:
        for message in messages:
            waiting.append(message)
            waiting_bytes += len(message)
            if waiting_bytes >= PIECE_BYTES:
                yield waiting
                waiting, waiting_bytes = [], 0
    except DamagedError:
        if waiting:  # What is whole before it is read.
            yield waiting
        raise
    if waiting:
        yield waiting


class Follower:
    """Reads a stream while it is written: each time what is whole and was not read before."""

    def __init__(self, path: Path, schema: pl.Schema) -> None:
        self._path = path
        self._schema = schema
        self._header = b""
        self._at = 0

    def new(self) -> pl.DataFrame:
        """Return the rows written since the last call, possibly none."""
        if not self._path.exists():
            return self._schema.to_frame()
        messages: list[bytes] = []
        # What is damaged is told when the run is over.
        with self._path.open("rb") as file, contextlib.suppress(DamagedError):
            messages.extend(_messages(file, os.fstat(file.fileno()).st_size, self._at))
        if not self._header and messages:
            self._header = messages[0]
            self._at += len(messages.pop(0))
        self._at += sum(map(len, messages))
        return (
            _table(self._header, messages, self._schema, self._path) if messages else self._schema.to_frame()
        )


def _salvaged(
    header: bytes, messages: list[bytes], schema: pl.Schema, path: Path
) -> tuple[list[pl.DataFrame], int]:
    """Return the rows of the messages that can be read, and how many cannot."""
    try:
        return [_table(header, messages, schema, path)], 0
    except DamagedError:
        tables = []
        for message in messages:
            with contextlib.suppress(DamagedError):
                tables.append(_table(header, [message], schema, path))
        return tables, len(messages) - len(tables)


def _table(header: bytes, messages: list[bytes], schema: pl.Schema, path: Path) -> pl.DataFrame:
    """Return the rows of whole messages. Raises `DamagedError` when any of them cannot be read."""
    try:
        table = pl.read_ipc_stream(b"".join([header, *messages, END_OF_STREAM]))
    except UNREADABLE as error:
        if members.is_shortage(error):
            raise
        raise DamagedError(str(error)) from error
    return exactly(table, schema, path)


def exactly(table: pl.DataFrame, schema: pl.Schema, path: Path) -> pl.DataFrame:
    """Return the columns of a schema. Raises `BundleError` when one is missing or has another type."""
    types = table.schema
    for name, kind in schema.items():
        column_type = types.get(name)
        if column_type != kind:
            difference = (
                say("bundle.samples.missing")
                if column_type is None
                else say("bundle.samples.type", found=str(column_type))
            )
            raise make_error(
                BundleError,
                "bundle.samples.column",
                path=path,
                name=repr(name),
                found=difference,
                expected=str(kind),
            )
    return table if table.columns == schema.names() else table.select(schema.names())


def _messages(file: BinaryIO, size: int, at: int = 0) -> Iterator[bytes]:
    """Yield each message that is there in full, the schema's first.

    Raises `DamagedError` for what cannot be a message, among it zeros that stand for what never
    reached the disk. One that is cut off is none: a killed engine leaves it.
    """
    batch_metadata_bytes: int | None = None
    while at + 8 <= size:
        file.seek(at)
        head = file.read(8)
        if head == END_OF_STREAM:
            return
        mark, metadata_bytes = struct.unpack("<II", head)
        if mark != CONTINUATION:
            raise make_error(DamagedError, "bundle.samples.no_message", at=at)
        # Batches of one schema are described in equally many bytes.
        if metadata_bytes > MOST_METADATA_BYTES or batch_metadata_bytes not in (None, metadata_bytes):
            raise make_error(DamagedError, "bundle.samples.metadata", at=at, length=metadata_bytes)
        if at + 8 + metadata_bytes > size:
            return
        metadata = file.read(metadata_bytes)
        try:
            body_bytes = _body_bytes(metadata)
        except (struct.error, IndexError) as error:
            raise make_error(DamagedError, "bundle.samples.no_length", at=at) from error
        length = 8 + metadata_bytes + body_bytes
        if not 0 <= body_bytes <= MOST_BODY_BYTES:
            raise make_error(DamagedError, "bundle.samples.length", at=at, length=body_bytes)
        if at + length > size:
            return
        yield head + metadata + file.read(body_bytes)
        if at:  # The schema comes first.
            batch_metadata_bytes = metadata_bytes
        at += length


def _body_bytes(metadata: bytes) -> int:
    """Read `bodyLength` of the flatbuffer table `Message`; a field left out is 0.

    Raises `IndexError` or `struct.error` for what is no message, or none that the engine writes:
    compressed bodies may be a thousand times their size.
    """
    table_at = _number("<I", metadata, 0)
    kind_at = _field_at(metadata, table_at, KIND_SLOT)
    kind = _number("<B", metadata, kind_at) if kind_at else 0
    if kind not in (SCHEMA, RECORD_BATCH):
        raise IndexError(kind)
    header_at = _field_at(metadata, table_at, HEADER_SLOT)
    batch_at = header_at + _number("<I", metadata, header_at) if header_at else 0
    if kind == RECORD_BATCH and _field_at(metadata, batch_at, COMPRESSION_SLOT):
        raise IndexError(COMPRESSION_SLOT)
    length_at = _field_at(metadata, table_at, BODY_LENGTH_SLOT)
    body_bytes = _number("<q", metadata, length_at) if length_at else 0
    if kind == RECORD_BATCH:
        _check_lengths(metadata, batch_at, body_bytes)
    return body_bytes


def _check_lengths(metadata: bytes, batch_at: int, body_bytes: int) -> None:
    """Raise `IndexError` for columns or buffers of a `RecordBatch` that do not fill its body, or not fit.

    A reader takes memory for what is said, and a library that gets none breaks the program off. A
    body that is longer than what is in it would hide the messages after it.
    """
    for rows, nulls in _pairs(metadata, _field_at(metadata, batch_at, NODES_SLOT)):
        if not 0 <= nulls <= rows <= 8 * body_bytes:
            raise IndexError(rows)
    end = 0
    for offset, length in _pairs(metadata, _field_at(metadata, batch_at, BUFFERS_SLOT)):
        if offset < 0 or length < 0 or offset + length > body_bytes:
            raise IndexError(length)
        end = max(end, offset + length)
    if body_bytes - end >= PADDING_BYTES:
        raise IndexError(body_bytes)


def _pairs(metadata: bytes, field_at: int) -> Iterator[tuple[int, int]]:
    """Yield the structs of two 64-bit numbers of a vector; none where the field is left out."""
    if not field_at:
        return
    at = field_at + _number("<I", metadata, field_at)
    for number in range(_number("<I", metadata, at)):
        yield _number("<q", metadata, at + 4 + 16 * number), _number("<q", metadata, at + 12 + 16 * number)


def _field_at(data: bytes, table_at: int, slot: int) -> int:
    """Return where a field of a flatbuffer table is; 0 when it is left out."""
    vtable_at = table_at - _number("<i", data, table_at)
    if _number("<H", data, vtable_at) <= slot:
        return 0
    offset = _number("<H", data, vtable_at + slot)
    return table_at + offset if offset else 0


def _number(form: str, data: bytes, at: int) -> int:
    """Read a number; raises `IndexError` before the beginning, where `struct` counts from the end."""
    if at < 0:
        raise IndexError(at)
    return int(struct.unpack_from(form, data, at)[0])
