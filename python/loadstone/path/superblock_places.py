"""Where file systems keep superblocks and their copies, by their formats' documentation.

Knows places and no magic number. Who looks for them, or removes them, is somewhere else.
"""

from __future__ import annotations

from typing import Final

BTRFS_OFFSETS: Final = (64 << 10, 64 << 20, 256 << 30)
"""The first and its copies (fs/btrfs/disk-io.h, btrfs_sb_offset)."""


def ext_groups(last: int) -> set[int]:
    """Return the block groups of ext2, ext3 and ext4 that have a copy: group 1 and the powers of 3, 5 and 7.

    So it is unless every group has one, or but two (Documentation/filesystems/ext4/blockgroup.rst).
    """
    groups = {1} if last > 0 else set()
    for base in (3, 5, 7):
        power = base
        while power <= last:
            groups.add(power)
            power *= base
    return groups
