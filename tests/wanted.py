"""What the tests use when it is installed, and the Debian package each of it comes from.

Knows nothing of the tests: they probe for what they need and skip with a reason.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
PROGRAMS = {
    "bindfs": "bindfs",
    "btrfs": "btrfs-progs",
    "chattr": "e2fsprogs",
    "chrt": "util-linux",
    "fio": "fio",
    "fsck.f2fs": "f2fs-tools",
    "losetup": "mount",
    "lvm": "lvm2",
    "mdadm": "mdadm",
    "mergerfs": "mergerfs",
    "mkfs.exfat": "exfatprogs",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.vfat": "dosfstools",
    "mkfs.xfs": "xfsprogs",
    "mount.exfat-fuse": "exfat-fuse",
    "munged": "munge",
    "nbdfuse": "libnbd-bin",
    "nbdkit": "nbdkit",
    "qemu-storage-daemon": "qemu-system-common",
    "rsync": "rsync",
    "sfdisk": "fdisk",
    "snmpd": "snmpd",
    "sqlite3": "sqlite3",
    "srun": "slurm-wlm",
    "sshd": "openssh-server",
    "tmux": "tmux",
    "wipefs": "util-linux",
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
