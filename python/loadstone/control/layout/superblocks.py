"""Superblocks of a layout's file systems with all copies, removed when the layout is taken down.

Knows from the formats where btrfs, ext4 and XFS keep them. wipefs(8) clears the magic number of the first
one alone: a copy would be taken later for somebody's data, and tools that repair file systems would find
it. Only what carries the label of the layout is cleared. The first superblock says where the copies are: so
they go before it does, and what a kill leaves goes the next time.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.path.superblock_places import BTRFS_OFFSETS, ext_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FIRST_BYTES: Final = 68 << 10
"""Where the first superblock of each of them ends."""
_EXT_FIRST: Final = 1024
_SPARSE_SUPER: Final = 0x1
"""Of the features in s_feature_ro_compat (Documentation/filesystems/ext4/super.rst)."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A superblock. `starts`: of the copies, from the first one and the size of a device."""

    first: int
    size_bytes: int
    magic_at: int
    magic: bytes
    label_at: int
    label_bytes: int
    starts: Callable[[bytes, int], Iterable[int]]

    def carries(self, superblock: bytes, label: str) -> bool:
        """Return whether that is a superblock of a file system with this label."""
        named = superblock[self.label_at : self.label_at + self.label_bytes].rstrip(b"\0")
        return superblock[self.magic_at :].startswith(self.magic) and named == label.encode()


def _ext_starts(superblock: bytes, size_bytes: int) -> set[int]:
    """Return the starts of the block groups that have a copy."""
    first_block, log_size = struct.unpack_from("<II", superblock, 20)
    (blocks_per_group,) = struct.unpack_from("<I", superblock, 32)
    (features,) = struct.unpack_from("<I", superblock, 100)
    block_bytes = 1024 << min(log_size, 6)
    last = (size_bytes // block_bytes - first_block - 1) // max(blocks_per_group, 1)
    groups = {*ext_groups(last), last, *struct.unpack_from("<II", superblock, 0x24C)}
    within = groups if features & _SPARSE_SUPER else range(1, last + 1)
    return {(first_block + group * blocks_per_group) * block_bytes for group in within if 0 < group <= last}


def _xfs_starts(superblock: bytes, size_bytes: int) -> range:
    """Return the starts of the allocation groups."""
    (block_bytes,) = struct.unpack_from(">I", superblock, 4)
    (blocks,) = struct.unpack_from(">I", superblock, 84)
    each = max(blocks * block_bytes, 1 << 20)
    return range(each, size_bytes, each)


_FORMATS: Final = (
    _Format(BTRFS_OFFSETS[0], 4096, 64, b"_BHRfS_M", 0x12B, 256, lambda *_: BTRFS_OFFSETS[1:]),
    _Format(_EXT_FIRST, 1024, 56, b"\x53\xef", 120, 16, _ext_starts),
    _Format(0, 512, 0, b"XFSB", 108, 12, _xfs_starts),
)


def clear(device: str, label: str) -> None:
    """Clear the superblocks of a device whose first one has this label. Raises OSError."""
    at = os.open(device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    try:
        head, size_bytes = os.pread(at, FIRST_BYTES, 0), os.lseek(at, 0, os.SEEK_END)
        for one in _FORMATS:
            first = head[one.first : one.first + one.size_bytes]
            if len(first) == one.size_bytes and one.carries(first, label):
                for start in one.starts(first, size_bytes):
                    _clear_copy(at, start, one, label)
                os.fsync(at)
                os.pwrite(at, bytes(one.size_bytes), one.first)
        os.fsync(at)
    finally:
        os.close(at)


def _clear_copy(device: int, start: int, kind: _Format, label: str) -> None:
    copy = os.pread(device, kind.size_bytes, start)
    if len(copy) == kind.size_bytes and kind.carries(copy, label):
        os.pwrite(device, bytes(kind.size_bytes), start)
