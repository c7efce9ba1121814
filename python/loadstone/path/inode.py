"""What the kernel tells of a file beyond `stat(2)`: its birth, generation and handle, its file system.

Knows statx(2), FS_IOC_GETVERSION, name_to_handle_at(2) and statfs(2). What a file system does not tell is
None.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_GETVERSION: Final = 0x80087601
"""`_IOR('v', 1, long)` of linux/fs.h. Changes when an inode's number is used again."""
_HANDLE: Final = struct.Struct("=Ii")
_HANDLE_BYTES: Final = 128
"""Most bytes of a handle (MAX_HANDLE_SZ of linux/exportfs.h)."""
_HERE: Final = -100
"""AT_FDCWD"""
_FOLLOW, _TO_COMPARE = 0x400, 0x200
"""AT_SYMLINK_FOLLOW, and AT_HANDLE_FID: also where no file can be opened by its handle."""
_BTIME: Final = 0x800
_EMPTY_PATH: Final = 0x1000
_STATX_BYTES: Final = 256
_STATX_MASK_AT: Final = 0
_STATX_BTIME_AT: Final = 80
_STATX_MODE_AT: Final = 28
_STATX_DEVICES_AT: Final = 128
_STATX_MOUNT_AT: Final = 144
_MOUNT: Final = 0x1000
_UNIQUE_MOUNT: Final = 0x4000
"""Since Linux 6.8; the other number is given to another mount when it is free again."""
_AT_FDCWD: Final = -100
_DONT_SYNC: Final = 0x4000
_TYPE_MODE_INODE: Final = 0x103
_STATFS_BYTES: Final = 512
_OVERLAY: Final = 0x794C7630
LONG_AGO_NS: Final = 10**18
"""September 2001: before anything here was made."""
_WITHOUT_CTIME: Final = frozenset(
    (
        0x4D44,  # FAT
        0x2011BAB0,  # exFAT
        0x4244,  # HFS
        0x137F,  # Minix
        0x138F,
        0x2468,
        0x2478,
        0x4D5A,
    )
)
"""File systems that have no place for ctime: read again from the disk, a file has its mtime there."""


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def handle(path: Path) -> bytes | None:
    """Return the file system's own name of a file, its kind first; None where it has none."""
    ask = getattr(_libc(), "name_to_handle_at", None)
    answer = ctypes.create_string_buffer(_HANDLE.size + _HANDLE_BYTES)
    for flags in (_FOLLOW, _FOLLOW | _TO_COMPARE):
        _HANDLE.pack_into(answer, 0, _HANDLE_BYTES, 0)
        if (
            ask is not None
            and ask(_HERE, os.fsencode(path), answer, ctypes.byref(ctypes.c_int()), flags) == 0
        ):
            length, kind = _HANDLE.unpack_from(answer, 0)
            return struct.pack("=i", kind) + answer.raw[_HANDLE.size : _HANDLE.size + length]
    return None


def generation(descriptor: int) -> int | None:
    """Return the generation of an open file."""
    buffer = bytearray(8)
    try:
        fcntl.ioctl(descriptor, _GETVERSION, buffer)
    except OSError:
        return None
    return int.from_bytes(buffer[:4], "little")


def born_ns(descriptor: int) -> int | None:
    """Return when an open file was made."""
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        done = _libc().statx(descriptor, b"", _EMPTY_PATH, _BTIME, buffer)
    except AttributeError:  # A C library without it.
        return None
    if done != 0 or not struct.unpack_from("=I", buffer, _STATX_MASK_AT)[0] & _BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, _STATX_BTIME_AT)
    return int(seconds) * 10**9 + int(nanoseconds)


def type_and_numbers(path: str) -> tuple[int, int, int, int] | None:
    """Return mode, device, inode and the device that a file is, as the kernel has them at hand.

    Asks no server and no FUSE daemon (AT_STATX_DONT_SYNC), so that one which does not answer holds nobody
    up. None where statx(2) is missing. Raises OSError.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    try:
        done = _libc().statx(_AT_FDCWD, os.fsencode(path), _DONT_SYNC, _TYPE_MODE_INODE, buffer)
    except AttributeError:
        return None
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    mode, inode = struct.unpack_from("=H2xQ", buffer, _STATX_MODE_AT)
    major, minor, dev_major, dev_minor = struct.unpack_from("=4I", buffer, _STATX_DEVICES_AT)
    return mode, os.makedev(dev_major, dev_minor), inode, os.makedev(major, minor)


def mount_number(path: str) -> int | None:
    """Return the number of the mount that a path is on; None where the kernel does not tell it."""
    for mask in (_UNIQUE_MOUNT, _MOUNT):
        buffer = ctypes.create_string_buffer(_STATX_BYTES)
        try:
            done = _libc().statx(_AT_FDCWD, os.fsencode(path), _DONT_SYNC, mask, buffer)
        except AttributeError:
            return None
        if done == 0 and struct.unpack_from("=I", buffer, _STATX_MASK_AT)[0] & mask:
            return int(struct.unpack_from("=Q", buffer, _STATX_MOUNT_AT)[0])
    return None


def steady_birth_ns(descriptor: int) -> int | None:
    """Return when an open file was made; None where opening it for writing makes it anew (overlayfs)."""
    if file_system_magic(f"/proc/self/fd/{descriptor}") == _OVERLAY:
        return None
    return born_ns(descriptor)


def steady_birth_of(path: str) -> int | None:
    """Return the same of a file by its name, in ns; it is not opened."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return steady_birth_ns(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def has_place_for_ctime(path: str) -> bool:
    """Whether a file's file system is not one of those known to have none. Raises OSError."""
    return file_system_magic(path) not in _WITHOUT_CTIME


def keeps_ctime(descriptor: int) -> bool:
    """Whether no program can set ctime where an open file lies: sets its mtime back to find out.

    File systems in user space may tell mtime in its place, as exfat-fuse, sshfs and rclone do.
    """
    if not has_place_for_ctime(f"/proc/self/fd/{descriptor}"):
        return False
    before = os.fstat(descriptor)
    os.utime(descriptor, ns=(before.st_atime_ns, LONG_AGO_NS))
    is_kept = os.fstat(descriptor).st_ctime_ns != LONG_AGO_NS
    os.utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns))
    return is_kept


def file_system_magic(path: str) -> int:
    """Return `f_type` of statfs(2). Raises OSError."""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc().statfs(os.fsencode(path), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(struct.unpack_from("@l", buffer)[0]) & 0xFFFFFFFF
