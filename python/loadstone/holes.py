"""Which parts of a file, or of a loop device, hold data: the rest are holes and read as zeros.

Knows SEEK_DATA and LOOP_GET_STATUS64. A file system that knows no holes has one part: all of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from pathlib import Path
from typing import Final

Part = tuple[int, int]
"""Offset and length in bytes."""
_GET_STATUS64: Final = 0x4C05
_INFO_BYTES: Final = 232
_LOOP_MAJOR: Final = 7
MAX_PARTS: Final = 1 << 20
"""Beyond so many the rest of a file counts as one part."""


def data(descriptor: int, size_bytes: int) -> list[Part]:
    """Return the parts of an open file that are no holes, ascending."""
    parts: list[Part] = []
    at = 0
    while at < size_bytes:
        try:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
            end = os.lseek(descriptor, at, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # No data from here on.
                return parts
            end = size_bytes
        if end <= at or len(parts) >= MAX_PARTS:
            end = size_bytes
        parts.append((at, min(end, size_bytes) - at))
        at = end
    return parts


def below(descriptor: int, size_bytes: int) -> list[Part] | None:
    """Return the parts of an open loop device that its file has data for; None when nobody knows."""
    status = os.fstat(descriptor)
    if not stat.S_ISBLK(status.st_mode) or os.major(status.st_rdev) != _LOOP_MAJOR:
        return None
    loop_info = bytearray(_INFO_BYTES)
    sysfs = Path(f"/sys/dev/block/{_LOOP_MAJOR}:{os.minor(status.st_rdev)}/loop/backing_file")
    try:
        fcntl.ioctl(descriptor, _GET_STATUS64, loop_info)
        device, inode, _, offset, _ = struct.unpack_from("=5Q", loop_info)
        # What is on its way to the file has to be there before holes are told from data.
        os.fsync(descriptor)
        file = os.open(sysfs.read_text().rstrip("\n"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:  # A partition of one, or its file has no name any more.
        return None
    try:
        backing = os.fstat(file)
        if not stat.S_ISREG(backing.st_mode) or (backing.st_dev, backing.st_ino) != (device, inode):
            return None
        return _shifted(data(file, backing.st_size), offset, size_bytes)
    finally:
        os.close(file)


def _shifted(parts: list[Part], offset: int, size_bytes: int) -> list[Part]:
    """Return what a window of so many bytes from an offset on shows of parts."""
    visible_parts = []
    for start, length in parts:
        first, last = max(0, start - offset), min(size_bytes, start + length - offset)
        if last > first:
            visible_parts.append((first, last - first))
    return visible_parts
