"""What a target is, whoever looks: the same words from every host that sees the same storage.

Knows WWNs, NGUIDs and serial numbers of devices, LVM's own of a volume, server, file and handle of a
network mount, and, where a device has no name of its own, the kernel it belongs to: two hosts with
one kernel (containers, network namespaces) see the same device under the same number.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Final

from loadstone.path import inode
from loadstone.path.block import BlockDevice
from loadstone.path.mounts import Mount, mount_of

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.glusterfs", "9p", "lustre"}
)
NFS: Final = frozenset({"nfs", "nfs4"})
_PART: Final = " from sector "
_VOLUMES: Final = ("mpath-", "LVM-")
"""How names begin that device mapper keeps, and that are the same on every host."""
_EMPTY: Final = re.compile(r"^(?:(?:eui|nguid|uuid|wwn|naa)[.:-]?)?[0.\-:]*$", re.IGNORECASE)


def identity(path: str, *, sys: Path = Path("/sys")) -> str | None:
    """Return what stands behind a path, in words that do not depend on the host; None: nobody can tell."""
    try:
        status = os.stat(path)  # noqa: PTH116 # a device's path is followed as the engine follows it
    except FileNotFoundError:
        return _of_name(path)
    except OSError:
        return None
    if stat.S_ISBLK(status.st_mode):
        return _of_device(status.st_rdev, sys)
    if stat.S_ISCHR(status.st_mode):
        return None
    return _of_file(path, status)


def whole_device(words: str) -> str:
    """Return by which words the device of a partition is known; those of anything else as they are."""
    return words.partition(_PART)[0]


def first_sector(words: str | None) -> str:
    """Return where a partition begins; nothing for what is no partition."""
    return "" if words is None else words.partition(_PART)[2]


def file_handle(path: str, kinds: frozenset[str] = NFS) -> str | None:
    """Return the server's own name of an NFS file, which is one by whatever address and export it is mounted.

    None where it is not on a file system of `kinds`, or the kernel does not tell.
    """
    place = Path(os.path.realpath(path))
    try:
        known = next(one for one in (place, *place.parents) if one.exists())
        mount = mount_of(known)
        handle = inode.handle(known) if mount is not None and mount.kind in kinds else None
    except OSError:
        return None
    if handle is None:
        return None
    words = f"NFS file handle {hashlib.sha256(handle).hexdigest()[:16]}"
    return words if known == place else f"{place.relative_to(known)} in {words}"


def own_name(device: BlockDevice) -> str | None:
    """Return the name that a device keeps on every host and over a reboot; None: it has none."""
    at = device.sys
    part = ""
    if (at / "partition").exists():
        start = _text(at / "start")
        part, at = f"{_PART}{start}", at.resolve().parent
    for name in ("nguid", "wwid", "device/wwid", "uuid", "eui", "device/vpd_pg83_naa"):
        identifier = _text(at / name)
        if identifier and not _EMPTY.match(identifier) and "nvme.0000" not in identifier:
            return f"{identifier}{part}"
    uuid = _text(at / "dm" / "uuid")
    if uuid and uuid.startswith(_VOLUMES):
        return f"{uuid.removeprefix('mpath-')}{part}"
    serial = _text(at / "serial") or _text(at / "device" / "serial")
    return f"serial {serial}{part}" if serial else None


def _of_device(number: int, sys: Path) -> str | None:
    device = BlockDevice.of_number(number, sys)
    if device is None:
        return None
    return own_name(device) or f"device {os.major(number)}:{os.minor(number)} of kernel {_boot()}"


def _of_file(path: str, status: os.stat_result) -> str | None:
    mount = mount_of(Path(path))
    if mount is not None and mount.kind in NETWORK:
        return f"{server(mount)} file {status.st_ino}"
    return f"file {status.st_ino} on {os.major(status.st_dev)}:{os.minor(status.st_dev)} of kernel {_boot()}"


def _of_name(path: str) -> str | None:
    """Return what a file that is not there yet will be: its name in the directory that is there."""
    place = Path(os.path.realpath(path))
    folder = next((one for one in place.parents if one.is_dir()), place)
    try:
        return f"{place.relative_to(folder)} in {_of_file(str(folder), folder.stat())}"
    except (OSError, ValueError):
        return None


def server(mount: Mount) -> str:
    """Return what is mounted, by its server's address: a host may know the server by another name."""
    options = dict(one.partition("=")[::2] for one in mount.super_options.split(","))
    address, source = options.get("addr"), mount.source
    if not address:
        return source
    if source.startswith("//"):
        return f"//{address}/{source[2:].partition('/')[2]}"
    host, mark, path = source.partition(":/")
    return f"{address}:/{path}" if host and mark else source


def _boot() -> str:
    return _text(BOOT_ID) or "unknown"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None
