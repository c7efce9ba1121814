"""The control groups of a process, and the I/O limits that they put on a device.

Knows /proc/PID/cgroup, where the hierarchies are mounted, and the files of `blkio` (version 1) and
`io` (version 2). Formats: Linux Documentation/admin-guide/cgroup-v1/blkio-controller.rst and
cgroup-v2.rst. Does not know what a limit does to a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from loadstone import engine_groups
from loadstone.path.mounts import PROC, mounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Quantity = Literal["bytes_per_s", "iops"]
Op = Literal["read", "write"]

V1_FILES: Final[tuple[tuple[str, Op, Quantity], ...]] = (
    ("blkio.throttle.read_bps_device", "read", "bytes_per_s"),
    ("blkio.throttle.write_bps_device", "write", "bytes_per_s"),
    ("blkio.throttle.read_iops_device", "read", "iops"),
    ("blkio.throttle.write_iops_device", "write", "iops"),
)
V2_KEYS: Final[dict[str, tuple[Op, Quantity]]] = {
    "rbps": ("read", "bytes_per_s"),
    "wbps": ("write", "bytes_per_s"),
    "riops": ("read", "iops"),
    "wiops": ("write", "iops"),
}
UNLIMITED: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class IoGroup:
    """A group and its directory in the hierarchy that controls I/O."""

    name: str
    directory: Path
    version: Literal[1, 2]
    own: bool
    """False: version 1's root group, which holds only what the kernel does in nobody's name."""


@dataclass(frozen=True, slots=True)
class IoLimit:
    """The most a group may do on one device (`major:minor`)."""

    group: IoGroup
    device: str
    op: Op
    quantity: Quantity
    per_s: int


def directories(controller: str, pid: int | str = "self", proc: Path = PROC) -> list[tuple[str, Path]]:
    """Return the process's group of a version 1 controller and its directory; `""` asks for version 2.

    `self`: the group that an engine of ours will be in.

    Version 2 groups come with their ancestors, nearest first: the limits of all of them hold.
    """
    group = _group(controller, pid, proc)
    if group is None:
        return []
    for mount in mounts(proc):
        wanted = mount.kind == "cgroup2" if not controller else mount.kind == "cgroup"
        if not wanted or (controller and controller not in mount.super_options.split(",")):
            continue
        inside = _inside(group, mount.root)
        groups = [(group, Path(mount.point) / inside)]
        if not controller:
            above = PurePosixPath(group).parents
            groups += [
                (str(one), Path(mount.point) / _inside(str(one), mount.root))
                for one in above
                if mount.root == "/" or str(one).startswith(mount.root)
            ]
        return groups
    return []


def io_groups(pid: int | str = "self", proc: Path = PROC) -> list[IoGroup]:
    """Return the groups whose limits on I/O hold for a process, and version 1's root group."""
    groups = [IoGroup(name, directory, 1, own=True) for name, directory in directories("blkio", pid, proc)]
    if groups and groups[0].name != "/":
        groups += [IoGroup("/", mount, 1, own=False) for mount in _roots(proc)]
    return groups + [IoGroup(name, directory, 2, own=True) for name, directory in directories("", pid, proc)]


def io_limits(groups: Iterable[IoGroup]) -> list[IoLimit]:
    """Return the limits that are set now."""
    return [limit for group in groups for limit in (_v1(group) if group.version == 1 else _v2(group))]


def _roots(proc: Path) -> list[Path]:
    return [
        Path(mount.point)
        for mount in mounts(proc)
        if mount.kind == "cgroup" and "blkio" in mount.super_options.split(",") and mount.root == "/"
    ][:1]


def _group(controller: str, pid: int | str, proc: Path) -> str | None:
    lines = engine_groups.lines(proc) if pid == "self" else _lines(proc / str(pid) / "cgroup")
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == controller or (controller and controller in controllers.split(",")):
            return group
    return None


def _inside(group: str, root: str) -> str:
    """Return a group's path below the mount, which in a container shows only part of the hierarchy."""
    if root != "/" and (group == root or group.startswith(root + "/")):
        return group[len(root) :].lstrip("/")
    return group.lstrip("/") if root == "/" else ""


def _v1(group: IoGroup) -> Iterator[IoLimit]:
    for file, op, quantity in V1_FILES:
        for line in _lines(group.directory / file):
            device, _, value = line.partition(" ")
            if value.isdecimal() and 0 < int(value) < UNLIMITED:
                yield IoLimit(group, device, op, quantity, int(value))


def _v2(group: IoGroup) -> Iterator[IoLimit]:
    for line in _lines(group.directory / "io.max"):
        device, *settings = line.split()
        for setting in settings:
            key, _, value = setting.partition("=")
            if key in V2_KEYS and value.isdecimal():
                op, quantity = V2_KEYS[key]
                yield IoLimit(group, device, op, quantity, int(value))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
