"""Files of an NFS server as a real client's kernel tells them: `python -m lab.hosts.nfs_handles`.

A machine in QEMU exports two file systems, and mounts them by two addresses, in part and in three
versions of NFS 4, as several hosts would. Two paths to one file must be recognised, and two files must not,
also where they have one file number. What a program asks of the kernel is asked there. Needs
qemu-system-x86_64 and apt, which brings kernel and programs into a cache; installs nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from lab.watched_kernel import FILES, PACKAGES

from lab import machine
from loadstone.path.identity import file_handle, identity

MODULES: Final = ("nfsd", "nfsv4", "nfs")
TOOLS: Final = ("exportfs", "rpc.nfsd", "rpc.mountd", "mount.nfs4")
EXPORTS: Final = "/exp *(rw,no_root_squash,no_subtree_check,fsid=0,insecure)\n" + "".join(
    f"/exp/{name} *(rw,no_root_squash,no_subtree_check,fsid={number},insecure)\n"
    for number, name in enumerate(("one", "two"), start=1)
)
MOUNTS: Final = {
    "a": "127.0.0.1:/one vers=4.2",
    "b": "127.0.0.2:/one vers=4.1",
    "c": "127.0.0.1:/one/sub vers=4.2",
    "d": "127.0.0.1:/two vers=4.2",
    "e": "127.0.0.1:/ vers=4.2",
    "f": "127.0.0.1:/one vers=4.0",
    "g": "127.0.0.2:/one vers=4.0",
}
CASES: Final = (
    ("one file by two addresses", "/m/a/f", "/m/b/f", True),
    ("one file below an export and at its root", "/m/a/sub/g", "/m/c/g", True),
    ("one file from the pseudo file system's root", "/m/a/f", "/m/e/one/f", True),
    ("a hard link", "/m/a/f", "/m/b/link", True),
    ("a symbolic link", "/m/a/f", "/m/b/symbolic", True),
    ("two files of a directory", "/m/a/f", "/m/b/other", False),
    ("two file systems, one file number", "/m/a/f", "/m/d/f", False),
    ("a file that is not there yet, by two addresses", "/m/a/new", "/m/b/new", True),
    ("a file that is not there yet, below an export and at its root", "/m/a/sub/new", "/m/c/new", True),
    ("two files that are not there yet", "/m/a/new", "/m/b/newer", False),
    ("a file that is not there yet on two file systems", "/m/a/new", "/m/d/new", False),
    ("NFS 4.0: one file by one address", "/m/a/f", "/m/f/f", True),
    ("NFS 4.0, whose client tells no handle: one file by two addresses", "/m/f/f", "/m/g/f", False),
    ("a file and what replaced it under its name", "/m/a/replaced", "/kept/replaced", False),
)
"""What is held against each other: two paths, and whether they are one file."""
SCRIPT: Final = """
export PATH=/sbin:/usr/sbin:/bin:/usr/bin LC_ALL=C.UTF-8 HOME=/root LD_LIBRARY_PATH=/usr/lib
for one in /mods/*.ko; do insmod $one 2>/dev/null; done
ip link set lo up; ip addr add 127.0.0.2/8 dev lo 2>/dev/null
mkdir -p /exp /dev/shm /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs /run
mount -t tmpfs e /exp; mkdir /exp/one /exp/two
for one in one two; do
  mount -t tmpfs $one /exp/$one; mkdir /exp/$one/sub; echo $one > /exp/$one/f
  echo g > /exp/$one/sub/g; echo other > /exp/$one/other; echo old > /exp/$one/replaced
done
ln /exp/one/f /exp/one/link; ln -s f /exp/one/symbolic
mount -t nfsd nfsd /proc/fs/nfsd; mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
exportfs -r; rpc.mountd -N 3; rpc.nfsd -N 3 -V 4.0 -V 4.1 -V 4.2 4; echo Y > /proc/fs/nfsd/v4_end_grace
MOUNTS
export PYTHONHOME=/python PYTHONPATH=/lab:/lab/python:/site PYTHONDONTWRITEBYTECODE=1
grep nfs4 /proc/mounts
echo @@@
python3 -m lab.hosts.nfs_handles --inside
"""


def names(path: str) -> list[str]:
    """Return the words by which a target is known again on another host, of which one is enough."""
    return [one for one in (identity(path), file_handle(path)) if one is not None]


def inside() -> int:
    """Ask the kernel of every path; print the words of each."""
    known = {path: names(path) for case in CASES for path in case[1:3] if not path.startswith("/kept")}
    before = names("/m/a/replaced")
    replacement = Path("/m/b/replacement")
    replacement.write_text("new")
    replacement.replace("/m/b/replaced")
    known["/kept/replaced"], known["/m/a/replaced"] = before, names("/m/b/replaced")
    print("@@@ " + json.dumps(known))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().inside:
        return inside()
    if (why := machine.missing()) is not None:
        print(f"no machine can be had here: {why}", file=sys.stderr)
        return 2
    known = _booted()
    wrong = 0
    for name, one, other, is_same in CASES:
        shared = sorted(set(known[one]) & set(known[other]))
        apart = [" and ".join(known[path]) for path in (one, other)]
        right = bool(shared) is is_same and bool(known[one]) and bool(known[other])
        wrong += not right
        words = "; ".join(shared or apart)
        print(f"{'ok   ' if right else 'WRONG'} {name}: {'one' if shared else 'two'} ({words})")
    print(f"{len(CASES)} pairs, {wrong} not as they should be")
    return 1 if wrong else 0


def _booted() -> dict[str, list[str]]:
    tools = machine.unpacked_tools(PACKAGES, TOOLS, "usr/lib")
    trees = machine.python_trees(lambda name: name.startswith(NEEDED), ("python", "lab"))
    programs = tools | machine.python_programs(trees)
    mounts = "\n".join(
        f"mkdir -p /m/{name}; mount.nfs4 {words.split()[0]} /m/{name} -o {words.split()[1]},nosharecache"
        for name, words in MOUNTS.items()
    )
    with tempfile.TemporaryDirectory(prefix="loadstone-nfs-handles-") as folder:
        output = machine.run(
            SCRIPT.replace("MOUNTS", mounts), folder=Path(folder), programs=programs, trees=trees, devices=(),
            files={**FILES, "etc/exports": EXPORTS}, modules=MODULES, memory_mib=2048, patience_s=400,
        )  # fmt: skip
    answer = output.rpartition("@@@ ")[2]
    if not answer.startswith("{"):
        raise RuntimeError(f"the script did not come to its end: {output[-3000:]}")
    print(output.partition("@@@")[0], end="", file=sys.stderr)
    known: dict[str, list[str]] = json.loads(answer)
    return known


NEEDED: Final = ("pydantic", "annotated_types", "typing_")
"""Packages that the look at a path imports."""


if __name__ == "__main__":
    sys.exit(main())
