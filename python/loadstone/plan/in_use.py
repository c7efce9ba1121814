"""Evidence that a device or file is in use, as sentences.

Knows mounts, swap, holders, loop devices, btrfs members, other processes that have it open
for writing, and the kernel's own claim (`O_EXCL`). Judges nothing else: signatures and
consent are elsewhere. An empty list means that no use was found.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from loadstone.path.block import SYS, BlockDevice, above, loops
from loadstone.path.mounts import Mount, mounts, swaps

PROC = Path("/proc")

Key = tuple[int, int]
"""What a file is by: (0, `st_rdev`) for a block device, else (`st_dev`, `st_ino`)."""


@dataclass(frozen=True)
class Snapshot:
    """What the host uses, looked up once for all targets of a Plan, and only when asked for."""

    sys: Path = SYS

    @cached_property
    def mounts(self) -> list[Mount]:
        """Mounts of this namespace."""
        return mounts()

    @cached_property
    def mounted_devices(self) -> list[tuple[int, Mount]]:
        """Device numbers that are mounted: by `st_dev`, and by source for those that differ (btrfs)."""
        found = [(mount.device, mount) for mount in self.mounts]
        named = [(_rdev(mount.source), mount) for mount in self.mounts if mount.source.startswith("/dev/")]
        return found + [(number, mount) for number, mount in named if number and number != mount.device]

    @cached_property
    def swaps(self) -> list[tuple[Key, str]]:
        """Swap devices and files."""
        return [(key, name) for name in swaps() if (key := _key(Path(name))) is not None]

    @cached_property
    def loops(self) -> list[tuple[Key | None, BlockDevice]]:
        """Loop devices that are set up, by what backs them."""
        return [(_key(Path(loop.backing_file() or "")), loop) for loop in loops(self.sys)]

    @cached_property
    def writers(self) -> dict[Key, list[str]]:
        """What other processes have open for writing: a virtual machine on a raw volume claims no more."""
        found: dict[Key, list[str]] = {}
        for process in PROC.iterdir():
            if process.name.isdecimal() and int(process.name) != os.getpid():
                for key in _open_for_writing(process):
                    found.setdefault(key, []).append(_process(process))
        return found


def device_uses(path: Path, host: Snapshot) -> list[str]:
    """Evidence that the block device at `path`, anything on it or its whole disk is in use."""
    number = path.stat().st_rdev
    evidence: list[str] = []
    device = BlockDevice.of_number(number, host.sys)
    if device is not None:
        family = [device, *above(device), *_same_backing(device, host)]
        if device.disk() != device:
            family.append(device.disk())
        for member in family:
            evidence += _member_uses(member, host)
    evidence += [f"{process} has it open for writing" for process in host.writers.get((0, number), [])]
    return evidence or _claimed(path)


def file_uses(path: Path, host: Snapshot) -> list[str]:
    """Evidence that the regular file at `path` backs a loop device, is swapped to or is being written."""
    key = _key(path)
    evidence = [f"it backs {loop.name}" for backing, loop in host.loops if backing == key]
    evidence += [f"it is used as swap ({name})" for swap, name in host.swaps if swap == key]
    writers = host.writers.get(key, []) if key is not None else []
    return evidence + [f"{process} has it open for writing" for process in writers]


def _member_uses(device: BlockDevice, host: Snapshot) -> list[str]:
    number = device.number
    name = device.name
    mounted = [mount for mounted, mount in host.mounted_devices if mounted == number]
    evidence = [f"{name} is mounted at {mount.point} ({mount.kind})" for mount in mounted]
    evidence += [f"{name} is used as swap" for key, _ in host.swaps if key == (0, number)]
    evidence += [f"{name} belongs to the mounted btrfs {volume}" for volume in _btrfs(device, host.sys)]
    evidence += [f"{name} is held by {_describe(holder)}" for holder in device.holders()]
    return evidence + [f"{name} backs {loop.name}" for backing, loop in host.loops if backing == (0, number)]


def _btrfs(device: BlockDevice, sys: Path) -> list[str]:
    """Only one member of a mounted btrfs is in mountinfo; all of them are in sysfs."""
    links = (sys / "fs" / "btrfs").glob("*/devices/*")
    return [link.parent.parent.name for link in links if link.name == device.name]


def _same_backing(device: BlockDevice, host: Snapshot) -> list[BlockDevice]:
    """Other loop devices over the same file: writing here is writing there."""
    disk = device.disk()
    mine = [key for key, loop in host.loops if loop == disk and key is not None]
    others = [loop for key, loop in host.loops if key in mine and loop != disk]
    return [one for loop in others for one in (loop, *above(loop))]


def _describe(device: BlockDevice) -> str:
    name = device.attribute("dm/name")
    level = device.attribute("md/level")
    return device.name + (f" ({name})" if name else f" (md {level})" if level else "")


def _open_for_writing(process: Path) -> set[Key]:
    found: set[Key] = set()
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                key = _key(link)
                if key is not None and key not in found and _writable(process / "fdinfo" / link.name):
                    found.add(key)
    return found


def _writable(fdinfo: Path) -> bool:
    match = re.search(r"^flags:\s*([0-7]+)", fdinfo.read_text(), re.MULTILINE)
    return match is not None and int(match.group(1), 8) & os.O_ACCMODE != os.O_RDONLY


def _process(directory: Path) -> str:
    try:
        name = (directory / "comm").read_text(errors="replace").strip()
    except OSError:
        name = "already gone"
    return f"process {directory.name} ({name})"


def _claimed(path: Path) -> list[str]:
    """Ask the kernel: opening a block device with O_EXCL fails while anything claims it."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return ["the kernel says it is in use (opening it exclusively gives EBUSY)"]
    return []


def _key(path: Path) -> Key | None:
    """Key of a block device or regular file; `None` for anything else, or nothing."""
    try:
        status = path.stat()
    except OSError:
        return None
    if stat.S_ISBLK(status.st_mode):
        return (0, status.st_rdev)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _rdev(path: str) -> int:
    """Device number of a block device by path, 0 when it is none."""
    key = _key(Path(path))
    return key[1] if key is not None and key[0] == 0 else 0
