"""md, device mapper's cache and the NFS server as a real kernel tells them: `python -m lab.watched_kernel`.

A machine in QEMU rebuilds a mirror, caches a disk and serves a file over NFS to itself. It runs what a
watched host's shell is asked, before and after so many I/Os, and the reader must find just these. Needs
qemu-system-x86_64 and apt, which brings kernel and programs into a cache; installs nothing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from lab import machine
from loadstone.watch import linux

PACKAGES: Final = (
    "mdadm", "dmsetup", "libdevmapper1.02.1", "nfs-kernel-server", "nfs-common", "libtirpc3", "libwrap0",
    "libnfsidmap1", "libevent-core-2.1-7", "libkeyutils1",
)  # fmt: skip
TOOLS: Final = ("mdadm", "dmsetup", "exportfs", "rpc.nfsd", "rpc.mountd", "mount.nfs4")
MODULES: Final = ("loop", "raid1", "dm_mod", "dm_cache", "dm_cache_smq", "nfsd", "nfsv4", "nfs")
FILES: Final = {
    "etc/netconfig": "tcp tpi_cots_ord v inet tcp - -\nudp tpi_clts v inet udp - -\n",
    "etc/services": "nfs 2049/tcp\nsunrpc 111/tcp\n",
    "etc/protocols": "tcp 6 TCP\nudp 17 UDP\n",
    "etc/passwd": "root:x:0:0::/:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\n",
    "etc/exports": "/exp *(rw,no_root_squash,no_subtree_check,fsid=0,insecure)\n",
}
SCRIPT: Final = """
export PATH=/sbin:/usr/sbin:/bin:/usr/bin LD_LIBRARY_PATH=/libs
for one in /mods/*.ko; do insmod $one 2>/dev/null; done
ip link set lo up
mkdir -p /exp /mnt /ram /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs /run
mount -t tmpfs r /ram; mount -t tmpfs e /exp
for n in 0 1 2 3 4; do truncate -s 96M /ram/d$n; losetup /dev/loop$n /ram/d$n; done
mdadm --create /dev/md0 --run --metadata=1.2 --level=1 --raid-devices=2 /dev/loop0 /dev/loop1
echo 1000 > /sys/block/md0/md/sync_speed_max
dmsetup create cached --table "0 131072 cache /dev/loop2 /dev/loop3 /dev/loop4 512 1 writeback smq 0"
mount -t nfsd nfsd /proc/fs/nfsd; mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
exportfs -r; rpc.mountd -N 3; rpc.nfsd -N 3 4; echo Y > /proc/fs/nfsd/v4_end_grace
mount.nfs4 127.0.0.1:/ /mnt -o vers=4.2,rsize=65536,wsize=65536
LOOK
echo @@@; look_facts; look_sample
dd if=/dev/zero of=/mnt/f bs=64k count=32 conv=fsync
echo 3 > /proc/sys/vm/drop_caches
dd if=/mnt/f of=/dev/null bs=64k
dd if=/dev/dm-0 of=/dev/null bs=256k count=16
n=0
echo @@@; look_sample
mdadm /dev/md0 --fail /dev/loop1
n=0
echo @@@; look_sample
echo @@@
"""


def looks() -> list[list[str]]:
    """Return what the machine's shell printed at each look."""
    programs = machine.unpacked_tools(PACKAGES, TOOLS, "libs")
    with tempfile.TemporaryDirectory(prefix="loadstone-watched-kernel-") as folder:
        output = machine.run(
            SCRIPT.replace("LOOK", linux.SCRIPT),
            folder=Path(folder), programs=programs, files=FILES, devices=(), modules=MODULES,
        )  # fmt: skip
    parts = output.split("@@@\n")
    if len(parts) != 5:
        raise RuntimeError(f"the script did not come to its end: {output[-2000:]}")
    return [part.splitlines() for part in parts[1:4]]


def wrong() -> list[str]:
    """Return what the reader found and must not have, or the other way round."""
    before, after, failed = looks()
    first, second, last = (linux.counters(lines)[0] for lines in (before, after, failed))

    def grown(key: str) -> int:
        return second.growing.get(key, 0) - first.growing.get(key, 0)

    ranges = {
        "nfsd.threads": (second.levels.get("nfsd.threads"), 4, 4),
        "nfsd.write_bytes": (grown("nfsd.write_bytes"), 2 << 20, 2 << 20),
        "nfsd.read_bytes": (grown("nfsd.read_bytes"), 2 << 20, 2 << 20),
        "nfsd.writes": (grown("nfsd.writes"), 32, 33),
        "nfsd.reads": (grown("nfsd.reads"), 32, 33),
        "nfsd.calls": (grown("nfsd.calls"), 65, 200),
        "cache.cached.read_hits and misses": (
            grown("cache.cached.read_hits") + grown("cache.cached.read_misses"), 16, 64,
        ),
        "work.md0.resync": (second.levels.get("work.md0.resync"), 1, 1),
        "work.md0.degraded, before": (second.levels.get("work.md0.degraded"), 0, 0),
        "work.md0.degraded, after a disk failed": (last.levels.get("work.md0.degraded"), 1, 1),
    }  # fmt: skip
    over = {name: disk.get("over") for name, disk in linux.facts(before)["disks"].items() if disk.get("over")}
    problems = [
        f"{name} is {reading}, and must be {least} to {most}"
        for name, (reading, least, most) in ranges.items()
        if reading is None or not least <= reading <= most
    ]
    expected = {"md0": ["loop0", "loop1"], "dm-0": ["loop2", "loop3", "loop4"]}
    return problems + ([] if over == expected else [f"below devices it found {over}"])


def main() -> int:
    if (why := machine.missing()) is not None:
        print(f"not tried: {why}")
        return 0
    problems = wrong()
    print("\n".join(problems) or "all as the kernel did it")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
