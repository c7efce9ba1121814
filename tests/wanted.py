"""What the tests use when it is installed, and the Debian package each of it comes from.

Knows nothing of the tests: they probe for what they need and skip with a reason.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
PROGRAMS = {
    "bash": "bash",
    "bindfs": "bindfs",
    "blkdiscard": "util-linux",
    "btrfs": "btrfs-progs",
    "cc": "gcc",
    "chattr": "e2fsprogs",
    "chrt": "util-linux",
    "cryptsetup": "cryptsetup-bin",
    "fio": "fio",
    "fsck.f2fs": "f2fs-tools",
    "fuse2fs": "fuse2fs",
    "losetup": "mount",
    "lvm": "lvm2",
    "mdadm": "mdadm",
    "mergerfs": "mergerfs",
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.erofs": "erofs-utils",
    "mkfs.exfat": "exfatprogs",
    "mkfs.ext2": "e2fsprogs",
    "mkfs.ext3": "e2fsprogs",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.f2fs": "f2fs-tools",
    "mkfs.vfat": "dosfstools",
    "mkfs.xfs": "xfsprogs",
    "mkswap": "util-linux",
    "mount": "mount",
    "mount.exfat-fuse": "exfat-fuse",
    "munged": "munge",
    "nbdfuse": "libnbd-bin",
    "nbdkit": "nbdkit",
    "openssl": "openssl",
    "pdftotext": "poppler-utils",
    "qemu-img": "qemu-utils",
    "qemu-storage-daemon": "qemu-system-common",
    "rsync": "rsync",
    "setpriv": "util-linux",
    "sfdisk": "fdisk",
    "snmpd": "snmpd",
    "sqlite3": "sqlite3",
    "srun": "slurm-wlm",
    "sshd": "openssh-server",
    "tar": "tar",
    "tc": "iproute2",
    "tmux": "tmux",
    "vgcreate": "lvm2",
    "wipefs": "util-linux",
    "zfs-fuse": "zfs-fuse",
    "zstd": "zstd",
}
FILES = {
    "/usr/share/doc/fio/examples": "fio-examples",
    "/usr/lib/*/nbdkit/plugins/nbdkit-python-plugin.so": "nbdkit-plugin-python",
}


def missing_packages() -> list[str]:
    """Names of the packages that are not installed, sorted."""
    packages = {package for name, package in PROGRAMS.items() if shutil.which(name, path=PATH) is None}
    packages |= {package for name, package in FILES.items() if not any(Path("/").glob(name[1:]))}
    return sorted(packages)
