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
from pathlib import Path

from loadstone.path.block import SYS, BlockDevice, above, loops
from loadstone.path.mounts import mounts, swaps

PROC = Path("/proc")


def device_uses(path: Path, sys: Path = SYS) -> list[str]:
    """Evidence that the block device at `path`, anything on it or its whole disk is in use."""
    number = path.stat().st_rdev
    device = BlockDevice.of_number(number, sys)
    if device is None:
        return [*_writers(path), *_claimed(path)]
    family = [device, *above(device)]
    if device.disk() != device:
        family.append(device.disk())
    family += _same_backing(device, sys)
    evidence: list[str] = []
    for member in family:
        evidence += _mounted(member) + _swapped(member) + _btrfs_member(member, sys)
        evidence += [f"{member.name} is held by {_describe(holder)}" for holder in member.holders()]
        evidence += [f"{member.name} backs {loop}" for loop in _loops_on(member, sys)]
    evidence += _writers(path)
    return evidence or _claimed(path)


def file_uses(path: Path, sys: Path = SYS) -> list[str]:
    """Evidence that the regular file at `path` backs a loop device, is swapped to or is being written."""
    status = path.stat()
    evidence = [
        f"it backs {loop.name}" for loop in loops(sys) if _same_file(Path(loop.backing_file() or ""), status)
    ]
    evidence += [f"it is used as swap ({name})" for name in swaps() if _same_file(Path(name), status)]
    return evidence + _writers(path)


def _mounted(device: BlockDevice) -> list[str]:
    number = device.number
    found = []
    for mount in mounts():
        by_name = mount.source.startswith("/dev/") and _rdev(mount.source) == number
        if mount.device == number or by_name:
            found.append(f"{device.name} is mounted at {mount.point} ({mount.kind})")
    return found


def _swapped(device: BlockDevice) -> list[str]:
    return [f"{device.name} is used as swap" for name in swaps() if _rdev(name) == device.number]


def _btrfs_member(device: BlockDevice, sys: Path) -> list[str]:
    """Only one member of a mounted btrfs is in mountinfo; all of them are in sysfs."""
    links = (sys / "fs" / "btrfs").glob("*/devices/*")
    return [
        f"{device.name} belongs to the mounted btrfs {link.parent.parent.name}"
        for link in links
        if link.name == device.name
    ]


def _same_backing(device: BlockDevice, sys: Path) -> list[BlockDevice]:
    """Other loop devices over the same file: writing here is writing there."""
    backing = device.disk().backing_file()
    if backing is None:
        return []
    others = [loop for loop in loops(sys) if loop.backing_file() == backing and loop != device.disk()]
    return [one for loop in others for one in (loop, *above(loop))]


def _loops_on(device: BlockDevice, sys: Path) -> list[str]:
    number = device.number
    return [loop.name for loop in loops(sys) if _rdev(loop.backing_file() or "") == number]


def _describe(device: BlockDevice) -> str:
    name = device.attribute("dm/name")
    level = device.attribute("md/level")
    return device.name + (f" ({name})" if name else f" (md {level})" if level else "")


def _writers(path: Path) -> list[str]:
    """Other processes that have it open for writing: a virtual machine on a raw volume claims no more."""
    status = path.stat()
    found = []
    for process in PROC.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                if _same_file(link, status) and _opened_for_writing(process / "fdinfo" / link.name):
                    name = (process / "comm").read_text(errors="replace").strip()
                    found.append(f"process {process.name} ({name}) has it open for writing")
                    break
    return found


def _opened_for_writing(fdinfo: Path) -> bool:
    match = re.search(r"^flags:\s*([0-7]+)", fdinfo.read_text(), re.MULTILINE)
    return match is not None and int(match.group(1), 8) & os.O_ACCMODE != os.O_RDONLY


def _claimed(path: Path) -> list[str]:
    """Ask the kernel: opening a block device with O_EXCL fails while anything claims it."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return ["the kernel says it is in use (opening it exclusively gives EBUSY)"]
    return []


def _same_file(path: Path, status: os.stat_result) -> bool:
    try:
        other = path.stat()
    except OSError:
        return False
    if status.st_rdev:
        return other.st_rdev == status.st_rdev and path.is_block_device()
    return (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino)


def _rdev(path: str) -> int:
    """Device number of a block device by path, 0 when it is none."""
    try:
        return Path(path).stat().st_rdev if Path(path).is_block_device() else 0
    except OSError:
        return 0
