"""What names a file system over a reboot: its UUID, or where it comes from.

Knows ioctl(2) FS_IOC_GETFSUUID (Linux 6.9) and FS_IOC_GETFSLABEL, the links of udev(7), and mountinfo.
Does not know what a file system is used for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from loadstone.path.mounts import mount_of

_GET_UUID: Final = 0x80111500
_GET_LABEL: Final = 0x81009431
_UUID_BYTES: Final = 17
"""Of `struct fsuuid2`: the length, then the UUID."""
_LABEL_BYTES: Final = 256
BY_UUID: Final = Path("/dev/disk/by-uuid")
IN_MEMORY: Final = ("tmpfs", "ramfs")


def stable_name(folder: str) -> str:
    """Return what the file system of a directory is called over a reboot; empty: it does not outlive one."""
    mount = mount_of(Path(folder))
    if mount is None or mount.kind in IN_MEMORY:
        return ""
    return _uuid(folder) or _linked(mount.source) or mount.source


def label(folder: str) -> str:
    """Return the label of a directory's file system; empty where it has none, or does not tell."""
    answer = _ioctl_answer(folder, _GET_LABEL, _LABEL_BYTES)
    return answer.partition(b"\0")[0].decode(errors="replace")


def _uuid(folder: str) -> str:
    answer = _ioctl_answer(folder, _GET_UUID, _UUID_BYTES)
    # Some file systems answer with zeros.
    return f"UUID={answer[1 : 1 + answer[0]].hex()}" if any(answer[1:]) else ""


def _linked(source: str) -> str:
    with contextlib.suppress(OSError):
        for link in BY_UUID.iterdir():
            if os.path.realpath(link) == os.path.realpath(source):
                return f"UUID={link.name}"
    return ""


def _ioctl_answer(folder: str, what: int, size: int) -> bytes:
    """Return what the file system answers; zeros where it does not know the question."""
    answer = bytearray(size)
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.ioctl(file, what, answer)
    finally:
        os.close(file)
    return bytes(answer)
