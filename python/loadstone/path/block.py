"""Block devices and how they stand on each other.

Knows /sys/dev/block, /sys/block and loop devices; reads only. Does not know mounts, file
systems or what is on a device. Reference: Linux Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

SYS = Path("/sys")
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO64_BYTES = 232
"""`struct loop_info64` (Linux include/uapi/linux/loop.h); it begins with device, inode and rdevice."""
SECTOR_BYTES = 512
"""Sizes in sysfs are in units of 512 bytes whatever the device's block size."""


@dataclass(frozen=True, order=True)
class BlockDevice:
    """A disk, partition or virtual block device; `sys` is its directory in sysfs."""

    name: str
    sys: Path

    @classmethod
    def of_number(cls, number: int, sys: Path = SYS) -> BlockDevice | None:
        """Return the device with this `st_rdev` or `st_dev`, `None` when it is no block device."""
        link = sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
        return cls._at(link)

    @classmethod
    def of_name(cls, name: str, sys: Path = SYS) -> BlockDevice | None:
        """Return the device with this kernel name (`sda1`, `dm-0`)."""
        return cls._at(sys / "class" / "block" / name)

    @classmethod
    def _at(cls, link: Path) -> BlockDevice | None:
        try:
            real = link.resolve(strict=True)
        except OSError:
            return None
        return cls(real.name, real)

    @property
    def number(self) -> int:
        """Device number, as `st_rdev`."""
        major, minor = (self.sys / "dev").read_text().strip().split(":")
        return os.makedev(int(major), int(minor))

    @property
    def node(self) -> Path:
        """Where its node usually stands; a slash in a name is an exclamation mark in sysfs."""
        return Path("/dev") / self.name.replace("!", "/")

    @property
    def size_bytes(self) -> int:
        """Size in bytes."""
        return int(self.attribute("size") or 0) * SECTOR_BYTES

    def attribute(self, name: str) -> str | None:
        """Return a file of its sysfs directory without the line end, `None` when there is none."""
        try:
            return (self.sys / name).read_text(errors="replace").strip()
        except OSError:
            return None

    def disk(self) -> BlockDevice:
        """Return the whole disk of a partition, itself for anything else."""
        if (self.sys / "partition").exists():
            return BlockDevice(self.sys.parent.name, self.sys.parent)
        return self

    def partitions(self) -> list[BlockDevice]:
        """Partitions of a disk."""
        try:
            entries = sorted(self.sys.iterdir())
        except OSError:
            return []
        return [BlockDevice(entry.name, entry) for entry in entries if (entry / "partition").exists()]

    def holders(self) -> list[BlockDevice]:
        """Devices built on this one: device mapper, md, bcache."""
        return self._linked("holders")

    def slaves(self) -> list[BlockDevice]:
        """Devices this one is built on."""
        return self._linked("slaves")

    def backing_file(self) -> str | None:
        """Path of a loop device's backing file, as the kernel knows it."""
        return self.attribute("loop/backing_file")

    def backing(self) -> tuple[int, int] | None:
        """Return what a loop device stands on: a file's device and inode, or 0 and a device's number.

        As the driver knows it: the name in sysfs may be gone, or be another file's by now. None when it
        cannot be asked.
        """
        if not self.sys.is_relative_to(SYS):
            return None
        loop_info = bytearray(_LOOP_INFO64_BYTES)
        with contextlib.suppress(OSError):
            node = os.open(f"/dev/{self.name}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if os.fstat(node).st_rdev != self.number:
                    return None
                fcntl.ioctl(node, _LOOP_GET_STATUS64, loop_info)
            finally:
                os.close(node)
            device, inode, special = struct.unpack_from("QQQ", loop_info)
            # Of a file older kernels say the same device twice, newer ones no second.
            return (device, inode) if special in (0, device) else (0, special)
        return None

    def _linked(self, name: str) -> list[BlockDevice]:
        try:
            links = sorted((self.sys / name).iterdir())
        except OSError:
            return []
        return [device for device in (self._at(link) for link in links) if device is not None]


def loops(sys: Path = SYS) -> list[BlockDevice]:
    """Loop devices that are set up."""
    devices = [BlockDevice.of_name(entry.name, sys) for entry in sorted((sys / "block").glob("loop*"))]
    return [device for device in devices if device is not None and device.backing_file() is not None]


def above(device: BlockDevice) -> list[BlockDevice]:
    """Everything that stands on `device`: its partitions and holders, and theirs."""
    devices: dict[str, BlockDevice] = {}
    waiting = [*device.partitions(), *device.holders()]
    while waiting:
        one = waiting.pop(0)
        if one.name not in devices:
            devices[one.name] = one
            waiting += [*one.partitions(), *one.holders()]
    return list(devices.values())
