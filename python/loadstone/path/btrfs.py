"""Btrfs: which devices a file system spans, how it lays data out, and whether a file is copied on write.

Knows /sys/fs/btrfs (Linux Documentation/ABI/testing/sysfs-fs-btrfs), mount options and inode flags
(btrfs(5), ioctl_iflags(2)).
"""

from __future__ import annotations

import fcntl
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.path.block import SYS, BlockDevice

if TYPE_CHECKING:
    from pathlib import Path

FS_IOC_GETFLAGS: Final = 0x80086601
COMPRESSED_FLAG: Final = 0x4
NOT_COPIED_FLAG: Final = 0x800000


@dataclass(frozen=True, slots=True)
class Btrfs:
    """One file system. `profiles`: kind of content to how it is laid out (`data`: `raid10`).

    `missing`: members that are not there.
    """

    uuid: str
    label: str
    devices: tuple[BlockDevice, ...]
    profiles: dict[str, tuple[str, ...]]
    missing: int = 0


def of_device(device: BlockDevice, sys: Path = SYS) -> Btrfs | None:
    """Return the file system that this device is part of, mounted now."""
    for directory in sorted((sys / "fs" / "btrfs").glob("*-*-*-*-*")):
        names = sorted(link.name for link in (directory / "devices").glob("*"))
        if device.name in names:
            devices = [BlockDevice.of_name(name, sys) for name in names]
            members = tuple(member for member in devices if member is not None)
            label = directory / "label"
            name = label.read_text(errors="replace").strip() if label.exists() else ""
            return Btrfs(directory.name, name, members, _profiles(directory), _missing(directory))
    return None


def copies_on_write(path: str, options: str) -> bool | None:
    """Tell whether writes to a file go elsewhere; `None` when its flags cannot be read."""
    flags = _flags(path)
    if flags is None:
        return False if "nodatacow" in options.split(",") else None
    return not flags & NOT_COPIED_FLAG


def compression(path: str, options: str) -> str | None:
    """Return what a file's new data is compressed with, as far as mount options and flags say."""
    flags = _flags(path)
    if flags is not None and flags & NOT_COPIED_FLAG:
        return None
    for word in options.split(","):
        name, _, value = word.partition("=")
        if name in {"compress", "compress-force"} and value not in {"no", "none"}:
            return value or "zlib"
    if flags is not None and flags & COMPRESSED_FLAG:
        return say("path.compression.on_file")
    return None


def _missing(directory: Path) -> int:
    flags = (file.read_text().strip() for file in (directory / "devinfo").glob("*/missing"))
    return sum(one == "1" for one in flags)


def _profiles(directory: Path) -> dict[str, tuple[str, ...]]:
    """Return the layouts of each kind of content; a balance that was broken off leaves two."""
    profiles: dict[str, tuple[str, ...]] = {}
    for kind in ("data", "metadata", "system"):
        place = directory / "allocation" / kind
        # Every profile is a directory; everything else there is a number in a file.
        names = tuple(sorted(entry.name for entry in place.glob("*") if entry.is_dir()))
        if names:
            profiles[kind] = names
    return profiles


def _flags(path: str) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, struct.pack("l", 0))
        return int(struct.unpack("l", answer)[0])
    except OSError:
        return None
    finally:
        os.close(descriptor)
