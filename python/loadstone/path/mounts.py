"""What is mounted, and what is swapped to.

Knows /proc/self/mountinfo and /proc/swaps (formats: proc(5)). Does not follow devices.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROC = Path("/proc")


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo."""

    device: int
    """`st_dev` of the files in it."""
    root: str
    point: str
    kind: str
    source: str
    options: str
    super_options: str


def mounts(proc: Path = PROC) -> list[Mount]:
    """Mounts of this mount namespace, in the order they were made."""
    return list(_parsed((proc / "self" / "mountinfo").read_text(errors="surrogateescape")))


def elsewhere(part: str, proc: Path = PROC) -> list[int]:
    """Return a process of each other mount namespace in which something is mounted at a path with `part`.

    A namespace that is made copies all mounts, and keeps its own of them when they end here.
    """
    return [
        int(process.name)
        for process, text in _other_namespaces(proc)
        if any(part in line.split(" ", 5)[4] for line in text.splitlines())
    ]


def mounted_files(proc: Path = PROC) -> list[tuple[Path, Mount, bool]]:
    """Return the way to what each mount names as its source by a path, and whether it is mounted here.

    An erofs is mounted from a file without a loop device, also in other mount namespaces.
    """
    spaces = [(Path("/"), mounts(proc), True)]
    for process, text in _other_namespaces(proc):
        spaces.append((process / "root", list(_parsed(text)), False))
    return [
        (root / mount.source[1:], mount, own)
        for root, of_space, own in spaces
        for mount in of_space
        if mount.source.startswith("/") and not mount.source.startswith(("/dev/", "//"))
    ]


def is_image_mounted_by_itself(proc: Path = PROC) -> bool:
    """Return whether a file system of some mount namespace may stand on a file without a loop device.

    An erofs with no block device does. The name of its source may be old, and those of further files
    (`device=`) are told nowhere.
    """
    spaces = [tuple(mounts(proc)), *(_parsed(text) for _, text in _other_namespaces(proc))]
    return any(
        mount.kind == "erofs" and not os.major(mount.device) for of_space in spaces for mount in of_space
    )


def _other_namespaces(proc: Path) -> Iterator[tuple[Path, str]]:
    """Yield a process of each other mount namespace, with what is mounted there."""
    try:
        known = {os.readlink(f"{proc}/self/ns/mnt")}  # noqa: PTH115 # thousands of processes
    except OSError:
        return
    for process in sorted(proc.glob("[0-9]*"), key=lambda one: int(one.name)):
        with contextlib.suppress(OSError):
            space = os.readlink(f"{process}/ns/mnt")  # noqa: PTH115 # as above
            if space not in known:
                text = (process / "mountinfo").read_text(errors="surrogateescape")
                known.add(space)
                yield process, text


@lru_cache(maxsize=2)
def _parsed(text: str) -> tuple[Mount, ...]:
    """Hosts of containers have thousands of mounts, and every target asks for them."""
    return tuple(_mount(line) for line in text.splitlines())


def mount_of(path: Path, proc: Path = PROC) -> Mount | None:
    """Return the mount that `path`, or its nearest existing parent, is on."""
    real = path.resolve()
    while not real.exists() and real != real.parent:
        real = real.parent
    try:
        number = real.stat().st_dev
    except OSError:
        return None
    best: Mount | None = None
    places = {str(place) for place in (real, *real.parents)}
    for mount in mounts(proc):
        if mount.point in places and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    if best is not None:
        return best
    return next((mount for mount in mounts(proc) if mount.device == number), None)


def swaps(proc: Path = PROC) -> list[str]:
    """Paths of the swap devices and files in use."""
    try:
        lines = (proc / "swaps").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    return [unescape(line.split()[0]) for line in lines if line.strip()]


def _mount(line: str) -> Mount:
    left, _, right = line.partition(" - ")
    fields, after = left.split(" "), right.split(" ")
    major, minor = fields[2].split(":")
    return Mount(
        device=os.makedev(int(major), int(minor)),
        root=unescape(fields[3]),
        point=unescape(fields[4]),
        kind=after[0],
        source=unescape(after[1]),
        options=fields[5],
        super_options=after[2] if len(after) > 2 else "",
    )


def unescape(text: str) -> str:
    """Undo the kernel's octal escapes of space, tab, line end and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)
