"""Where test data may be written at all: files of file systems that keep files, and block devices.

Files of the kernel's own file systems look empty and are not files: a write there is an order. Which
is which is told by the type statfs(2) gives (numbers: linux/magic.h, statfs(2), and the projects'
own headers for those that are not in the kernel). Knows no content and no user of anything.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from loadstone.messages import say
from loadstone.path import inode

_PROC: Final = 0x9FA0

KERNEL: Final[dict[int, str]] = {
    _PROC: "proc",
    0x62656572: "sysfs",
    0x27E0EB: "cgroup",
    0x63677270: "cgroup2",
    0x64626720: "debugfs",
    0x74726163: "tracefs",
    0x73636673: "securityfs",
    0x62656570: "configfs",
    0xCAFE4A11: "bpf",
    0xDE5E81E4: "efivarfs",
    0x6165676C: "pstore",
    0x1CD1: "devpts",
    0x19800202: "mqueue",
    0xF97CFF8C: "selinuxfs",
    0x43415D53: "smackfs",
    0x5A3C69F0: "apparmorfs",
    0x65735543: "fusectl",
    0x42494E4D: "binfmt_misc",
    0x958458F6: "hugetlbfs",
    0x7655821: "resctrl",
    0x6E667364: "nfsd",
    0x67596969: "rpc_pipefs",
    0x6E736673: "nsfs",
    0x50494446: "pidfs",
    0x50495045: "pipefs",
    0x534F434B: "sockfs",
    0x9041934: "anon_inodefs",
    0x5345434D: "secretmem",
    0x444D4142: "dma-buf",
    0x6C6F6F70: "binderfs",
    0xABBA1974: "xenfs",
    0x9FA1: "openpromfs",
    0x9FA2: "usbdevfs",
    0x23: "spufs",
    0x7687: "hypfs",
    0x62646576: "bdev",
}
"""File systems without files of anybody's: nothing is ever written there."""

FILES: Final[frozenset[int]] = frozenset(
    (
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # btrfs
        0xCA451A4E,  # bcachefs
        0xF2F52010,  # f2fs
        0x1021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
        0x6969,  # NFS
        0xFF534D42,  # CIFS
        0xFE534D42,  # SMB2
        0x517B,  # SMB
        0x65735546,  # FUSE, virtiofs
        0x1021997,  # 9p
        0xC36400,  # Ceph
        0x2FC12FC1,  # ZFS
        0xF15F,  # eCryptfs
        0x4D44,  # FAT
        0x2011BAB0,  # exFAT
        0x7366746E,  # ntfs3
        0x5346544E,  # NTFS
        0x4244,  # HFS
        0x482B,  # HFS+
        0x3153464A,  # JFS
        0x52654973,  # ReiserFS
        0x3434,  # NILFS
        0x7461636F,  # OCFS2
        0x1161970,  # GFS2
        0x15013346,  # UDF
        0x72B6,  # JFFS2
        0x24051905,  # UBIFS
        0x137F,  # Minix
        0x138F,
        0x2468,
        0x2478,
        0x4D5A,
        0x5A4F4653,  # zonefs
        0x5346414F,  # AFS
        0x6B414653,  # kAFS
        0x786F4256,  # vboxsf
        0xBD00BD0,  # Lustre
        0x47504653,  # Spectrum Scale (GPFS)
        0x19830326,  # BeeGFS
        0x20030528,  # OrangeFS
        0xAAD7AAEA,  # PanFS
        0xBACBACBC,  # VMware's shared folders
        0x61636673,  # ACFS
    )
)
"""File systems that keep files."""


def forbidden(path: Path, pinned: Path | None = None) -> str | None:
    """Say why nothing may be written at a path, whatever the user says; None when it may.

    `pinned` leads to what is looked at, whatever stands at the path by then.
    """
    if _through_proc(path):
        return say("plan.target.through_proc")
    place = pinned or _existing(path)
    try:
        magic = inode.file_system_magic(str(place))
    except OSError:
        return None
    name = KERNEL.get(magic)
    if name is None and magic not in FILES and not os.statvfs(place).f_blocks:
        name = f"of type {magic:#x}"
    return None if name is None else say("plan.target.kernel_file_system", name=name)


def doubtful(path: Path) -> str | None:
    """Say that nobody knows whether files are kept at a path, None when they are."""
    place = _existing(path)
    try:
        magic = inode.file_system_magic(str(place))
        on_device = os.major(place.stat().st_dev) != 0
    except OSError as error:
        return say("plan.target.unreadable_file_system", reason=error.strerror)
    if magic in FILES or on_device:
        return None
    return say("plan.target.unknown_file_system", type=f"{magic:#x}")


def _existing(path: Path) -> Path:
    """Return a path, or what exists nearest above it."""
    return next((one for one in (path, *path.parents) if os.path.lexists(one) and one.exists()), Path("/"))


def _through_proc(path: Path) -> bool:
    """Whether a symbolic link in procfs is on the way: it leads to what no name need lead to."""
    left = list(reversed(path.absolute().parts[1:]))
    directory, links = Path("/"), 0
    while left and links < 64:
        name = left.pop()
        if name == "..":
            directory = directory.parent
            continue
        entry = directory / name
        try:
            target = str(entry.readlink())
        except OSError:
            directory = entry
            continue
        links += 1
        if _is_proc(directory):
            return True
        if target.startswith("/"):
            directory = Path("/")
        left += [part for part in reversed(target.split("/")) if part not in ("", ".")]
    return False


def _is_proc(directory: Path) -> bool:
    try:
        return inode.file_system_magic(str(directory)) == _PROC
    except OSError:
        return False
