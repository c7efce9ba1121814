"""Where on a device structures stand that are worth a look, whatever a sample hits.

Knows, from the formats' documentation, where copies of superblocks and headers are kept. Knows no
magic number: anything there that is not zero is somebody's. Beginning and end are read as a whole
besides (`HEAD_BYTES`, `TAIL_BYTES`): labels of ZFS, LVM and md, partition tables and their backups,
second headers of LUKS and superblocks of NTFS, exFAT, HFS+, NILFS and UDF are all there.
"""

from __future__ import annotations

from typing import Final

from loadstone.path.superblock_places import BTRFS_OFFSETS, ext_groups

HEAD_BYTES: Final = 32 << 20
TAIL_BYTES: Final = 32 << 20
MIB: Final = 1 << 20
GIB: Final = 1 << 30
_OCFS2: Final = tuple(GIB << shift for shift in (0, 2, 4, 6, 8, 10))
"""Backup superblocks of OCFS2 (ocfs2_fs.h, OCFS2_BACKUP_SB_START)."""
_SMALLEST_GROUP: Final = 20
_XFS_BLOCKS: Final = (1 << 12, 1 << 9, 1 << 10, 1 << 11, 1 << 13, 1 << 14, 1 << 15, 1 << 16)
_XFS_COUNTS: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32, 64)
_XFS_LARGEST: Final = 1 << 40
_XFS_FIRST: Final = 4
ROUND: Final = 64


def places(size_bytes: int) -> list[int]:
    """Return the offsets, ascending, each once."""
    offsets = {*BTRFS_OFFSETS, *_OCFS2, *_ext(size_bytes), *_xfs(size_bytes), *_round(size_bytes)}
    return sorted(offset for offset in offsets if 0 <= offset < size_bytes)


def _ext(size_bytes: int) -> set[int]:
    """Return where ext2, ext3 and ext4 keep copies of the superblock: the starts of block groups.

    A group has eight blocks for each byte of a block unless somebody chose otherwise, and with
    bigalloc a power of two times as many: so its length is a power of two. With sparse_super2 copies are in
    the first and the last, without any sparseness in every group, the first among them.
    """
    offsets = set()
    for bits in range(_SMALLEST_GROUP, size_bytes.bit_length()):
        last = (size_bytes - 1) >> bits
        groups = {*ext_groups(last), 1, last, last - 1}
        offsets |= {group << bits for group in groups if group > 0}
    return offsets


def _xfs(size_bytes: int) -> set[int]:
    """Return where XFS keeps copies of the superblock: the starts of its allocation groups.

    mkfs.xfs makes them equal, the last one shorter (calc_default_ag_geometry): 4 up to 4 TiB, of
    1 TiB each beyond, more on arrays. Of a geometry that was chosen the first groups suffice.
    """
    offsets = set()
    for block in _XFS_BLOCKS:
        blocks = size_bytes // block
        for count in _XFS_COUNTS[1:]:
            length = -(-blocks // count) * block
            offsets |= {length * group for group in range(1, min(count, _XFS_FIRST))}
    offsets |= {_XFS_LARGEST * group for group in range(1, _XFS_FIRST)}
    return offsets


def _round(size_bytes: int) -> set[int]:
    """Return where people put things: powers of two, parts of the whole, partitions beside them."""
    offsets = {1 << bits for bits in range(12, size_bytes.bit_length())}
    offsets |= {size_bytes * part // ROUND for part in range(ROUND)}
    offsets |= {GIB * count for count in range(1, min(ROUND, size_bytes // GIB) + 1)}
    return offsets | {offset + MIB for offset in offsets}
