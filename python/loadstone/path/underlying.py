"""What carries a file or a device: the block devices under it, down to the last.

Knows how devices stand on each other, mounts and loop devices' backing files. Tells nothing about
them: `facts` and `discover` do.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.path import btrfs, fuse
from loadstone.path.block import SYS, BlockDevice
from loadstone.path.mounts import PROC, mount_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def carriers(path: Path, sys: Path = SYS, proc: Path = PROC) -> list[BlockDevice]:
    """Return the devices that carry `path` itself: the device it is, or those of its file system."""
    try:
        status = path.stat()
    except OSError:
        return []
    if status.st_rdev and path.is_block_device():
        return _known([BlockDevice.of_number(status.st_rdev, sys)])
    device = BlockDevice.of_number(status.st_dev, sys)
    if device is not None:
        return [device]
    return _sources_of_mount(path, sys, proc)


def below(device: BlockDevice, sys: Path = SYS, proc: Path = PROC) -> list[BlockDevice]:
    """Everything `device` stands on: its disk, its slaves, a loop's backing devices, and theirs."""
    devices: dict[str, BlockDevice] = {}
    waiting = [device]
    while waiting:
        one = waiting.pop(0)
        under = [*one.slaves(), *([one.disk()] if one.disk() != one else [])]
        backing = one.backing_file()
        if backing is not None:
            under += carriers(Path(backing), sys, proc)
        for next_one in under:
            if next_one.name not in devices and next_one.name != device.name:
                devices[next_one.name] = next_one
                waiting.append(next_one)
    return list(devices.values())


def under_path(path: Path) -> list[BlockDevice]:
    """Devices that carry `path` (a device or a file), nearest first; empty when none are known."""
    nearest = carriers(path)
    every = [*nearest, *(lower for device in nearest for lower in below(device))]
    return list(dict.fromkeys(every))


def _sources_of_mount(path: Path, sys: Path, proc: Path) -> list[BlockDevice]:
    """Find the devices of a file system whose device number is none of them, as with btrfs.

    By where it is mounted: the number of a btrfs file is that of its subvolume, which no mount has.
    """
    mount = mount_of(path, proc)
    if mount is not None and mount.kind.startswith("fuse"):
        return [one for lower in fuse.stands_on(mount, path, proc) for one in carriers(lower, sys, proc)]
    if mount is None or not mount.source.startswith("/dev/"):
        return []
    try:
        source = BlockDevice.of_number(Path(mount.source).stat().st_rdev, sys)
    except OSError:
        return []
    spans = btrfs.of_device(source, sys) if source is not None and mount.kind == "btrfs" else None
    return _known([source]) if spans is None else list(spans.devices)


def _known(devices: Iterable[BlockDevice | None]) -> list[BlockDevice]:
    return [device for device in devices if device is not None]
