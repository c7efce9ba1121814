"""Which parts of a file are written, allocated but unwritten, or holes.

Knows FIEMAP (Linux Documentation/filesystems/fiemap.rst) and SEEK_DATA (lseek(2)). Asks and never
synchronises: what was written and is still in the page cache counts as written, by cachestat(2). Does not
know what a read of such a part costs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from loadstone.path.resident_pages import cached_bytes, unsaved_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

FS_IOC_FIEMAP: Final = 0xC020660B
HEADER: Final = struct.Struct("=QQIIII")
EXTENT: Final = struct.Struct("=QQQQQIIII")
LAST, DELALLOC, ENCODED, UNWRITTEN, SHARED = 0x1, 0x4, 0x8, 0x800, 0x2000
EXTENTS_PER_CALL: Final = 512
MAX_EXTENTS: Final = 1 << 16
"""A file in more pieces is looked at up to there: asking must not take seconds."""
BLOCK_BYTES: Final = 512
"""`st_blocks` is in these whatever the file system's block size."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Bytes of a file by what they are; `None` where the file system does not say.

    `written`, `unwritten` and `hole` cover `looked_at_bytes` from the start.
    """

    size_bytes: int
    allocated_bytes: int
    method: Literal["fiemap", "seek", "none"]
    looked_at_bytes: int = 0
    written_bytes: int | None = None
    unwritten_bytes: int | None = None
    hole_bytes: int | None = None
    encoded_bytes: int | None = None
    """Of the written: compressed or encrypted on the medium."""
    shared_bytes: int | None = None
    """Of the written: with another file, or a snapshot of this one."""
    extents: int | None = None
    cached_bytes: int | None = None
    """Of the file in the page cache of this host."""

    @property
    def complete(self) -> bool:
        """Whether the whole file was looked at."""
        return self.looked_at_bytes >= self.size_bytes


def allocation(path: str) -> Allocation | None:
    """Return how a regular file lies on its file system, `None` when it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        size, allocated = status.st_size, status.st_blocks * BLOCK_BYTES
        return replace(_parts(descriptor, size, allocated), cached_bytes=cached_bytes(descriptor))
    finally:
        os.close(descriptor)


def _parts(descriptor: int, size: int, allocated: int) -> Allocation:
    for method in (_by_fiemap, _by_seek):
        try:
            return method(descriptor, size, allocated)
        except OSError:
            continue
    return Allocation(size, allocated, "none")


def _by_fiemap(descriptor: int, size: int, allocated: int) -> Allocation:
    written = unwritten = encoded = shared = count = end = 0
    for start, length, flags in _extents(descriptor, size):
        inside = min(start + length, size) - start
        count += 1
        end = start + inside
        if flags & UNWRITTEN:
            # It stays so until its data leave the page cache, of which reads are answered.
            unsaved = min(unsaved_bytes(descriptor, start, inside), inside)
            written, unwritten = written + unsaved, unwritten + inside - unsaved
            continue
        written += inside
        encoded += inside if flags & ENCODED and not flags & DELALLOC else 0
        shared += inside if flags & SHARED else 0
    looked_at = end if count >= MAX_EXTENTS else size
    hole = looked_at - written - unwritten
    return Allocation(
        size, allocated, "fiemap", looked_at, written, unwritten, hole, encoded, shared, extents=count
    )


def _extents(descriptor: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, length and flags of the extents below `size`, ascending, at most `MAX_EXTENTS`."""
    at = count = 0
    while at < size and count < MAX_EXTENTS:
        request = bytearray(HEADER.size + EXTENTS_PER_CALL * EXTENT.size)
        HEADER.pack_into(request, 0, at, size - at, 0, 0, EXTENTS_PER_CALL, 0)
        fcntl.ioctl(descriptor, FS_IOC_FIEMAP, request)
        mapped = HEADER.unpack_from(request)[3]
        for index in range(mapped):
            start, _, length, _, _, flags, *_ = EXTENT.unpack_from(request, HEADER.size + index * EXTENT.size)
            if start >= size:
                return
            yield start, length, flags
            count += 1
            at = start + length
            if flags & LAST:
                return
        if mapped == 0:
            return


def _by_seek(descriptor: int, size: int, allocated: int) -> Allocation:
    """Unwritten extents count as holes or data here, as the file system likes."""
    data = at = pieces = 0
    while at < size and pieces < MAX_EXTENTS:
        try:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                at = size
                break
            raise
        at = os.lseek(descriptor, start, os.SEEK_HOLE)
        data += min(at, size) - start
        pieces += 1
    looked_at = min(at, size)
    return Allocation(size, allocated, "seek", looked_at, data, hole_bytes=looked_at - data, extents=pieces)
