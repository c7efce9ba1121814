"""What planning has to know of the host: CPUs, memory, and what a path is.

Knows `stat(2)`, sysfs and the mount table; opens no target and writes nothing. Facts can
be given instead of looked up (`known`), so that planning for another host or for a test
is the same code.
"""

from __future__ import annotations

import os
import re
import resource
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone import cpu_list, engine_groups
from loadstone.errors import InputError, Where, as_text
from loadstone.messages import make_error, say
from loadstone.path import nvme
from loadstone.path.mounts import mount_of
from loadstone.plan import anchors
from loadstone.plan.model import Identity, Namesake, TargetKind
from loadstone.plan.safety import marker
from loadstone.plan.safety.seen import look

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.path.block import BlockDevice

DEVICES: Final = frozenset((TargetKind.BLOCK, TargetKind.NVME))
"""What is as long as it is: a disk, by one of its names."""
SECTOR_BYTES: Final = 512
"""Unit of `size` in sysfs, whatever the device's block size."""
_MEMORY_FILE_SYSTEMS: Final = frozenset(("tmpfs", "ramfs"))
_MEMORY_DEVICE: Final = re.compile(r"zram\d+\Z")
_AT_ONCE: Final = frozenset(os.makedev(1, minor) for minor in (3, 5, 7))
"""null, zero and full (Documentation/admin-guide/devices.txt): nothing is ever waited for."""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What stands at a path."""

    kind: TargetKind
    exists: bool = True
    size_bytes: int = 0
    """0 for character devices, which have none."""
    allocated_bytes: int | None = None
    """Of a file; less than its size when it has holes."""
    logical_block_bytes: int = SECTOR_BYTES
    """Unit of direct I/O."""
    punts: bool = False
    """In memory and without non-blocking I/O: a ring would hand all to kernel threads."""
    at_once: bool = False
    """Every I/O is over when the call returns, whatever makes it: no depth ever comes about."""
    identity: Identity | None = None
    free_bytes: int | None = None
    """Free on the file system of a file."""
    namesake: Namesake | None = None
    """Of an NVMe namespace's character device."""

    @property
    def is_device(self) -> bool:
        """Whether it is as long as it is: a disk, by one of its names."""
        return self.kind in DEVICES


@dataclass(frozen=True, slots=True)
class AnchorFacts:
    """What is below the anchor of a tree, and how much room there is. None: not known."""

    found: anchors.Found
    identity: Identity | None = None
    free_bytes: int | None = None
    free_files: int | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The host a Plan is for. Look it up with `HostFacts.here()`."""

    cpus: tuple[int, ...]
    """CPUs that an engine may use."""
    memory_bytes: int
    known: Mapping[str, TargetFacts] = field(default_factory=dict)
    """Facts by absolute path, instead of looking."""
    nodes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """CPUs of each NUMA node."""
    nice: int = 0
    """The nice value of this process."""
    least_nice: int = -20
    """The lowest nice value this process may take."""
    known_anchors: Mapping[str, AnchorFacts] = field(default_factory=dict)
    """Facts of anchors by absolute path, instead of looking."""
    _seen: dict[str, TargetFacts] = field(default_factory=dict, repr=False, compare=False)
    _places: dict[str, tuple[bool, int]] = field(default_factory=dict, repr=False, compare=False)
    """Facts and file systems already looked up: clones share them."""

    @classmethod
    def here(cls) -> HostFacts:
        """Return the facts of this host."""
        cpus = tuple(sorted(engine_groups.cpus()))
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        return cls(cpus, memory, nodes=_nodes(), nice=nice, least_nice=_least_nice(nice))

    def target(self, path: str, where: Where | None) -> TargetFacts:
        """Say what stands at an absolute path; a missing file is a file that does not exist.

        Raises InputError when no file can be there.
        """
        self.check_name(path, where)
        known = self.known.get(path) or self._seen.get(path)
        if known is None:
            known = self._seen[path] = _look(path, where, self._places)
        return known

    def check_name(self, path: str, where: Where | None) -> None:
        """Refuse a name that no Plan can hold, with an `InputError`."""
        if as_text(path) != path:
            raise make_error(InputError, "plan.target.no_text", where=where, path=path)

    def anchor(self, path: str, where: Where | None) -> AnchorFacts:
        """Say what is below an absolute path. Raises InputError when no tree can be there."""
        self.check_name(path, where)
        return self.known_anchors.get(path) or _look_below(path, where)


def _look_below(path: str, where: Where | None) -> AnchorFacts:
    place = Path(path)
    try:
        tree = anchors.look(place)
        existing = next(one for one in (place, *place.parents) if one.exists())
        room = os.statvfs(existing)
        identity = look(place)[1] if tree.exists else None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise make_error(
            InputError, "plan.target.unreadable", where=where, path=path, reason=reason
        ) from None
    return AnchorFacts(
        tree,
        identity,
        _free_bytes(room),
        _free_inodes(room, existing),
    )


def _free_bytes(room: os.statvfs_result) -> int | None:
    """How much room there is; None where the file system does not count it, as ramfs."""
    return room.f_bavail * room.f_frsize if room.f_blocks else None


def _free_inodes(room: os.statvfs_result, place: Path) -> int | None:
    """How many files and directories there is room for; None where the file system does not count them.

    One in user space that has none left may count none: rclone tells of 10^9 and 0 free.
    """
    if room.f_favail or not room.f_files:
        return room.f_favail if room.f_files else None
    mount = mount_of(place)
    return None if mount is not None and mount.kind.startswith("fuse") else 0


_Places = dict[str, tuple[bool, int]]


_CAP_SYS_NICE: Final = 23
"""linux/capability.h"""


def _least_nice(nice: int) -> int:
    """Return the lowest nice value a process with this one may take (setpriority(2))."""
    status = Path("/proc/self/status").read_text().splitlines()
    capabilities = next((int(line.split()[1], 16) for line in status if line.startswith("CapEff:")), 0)
    if capabilities >> _CAP_SYS_NICE & 1:
        return -20
    soft, _ = resource.getrlimit(resource.RLIMIT_NICE)
    return min(nice, 20 - soft)


def _nodes() -> dict[int, tuple[int, ...]]:
    """Return the CPUs of each NUMA node as the kernel tells them."""
    nodes = {}
    for place in sorted(Path("/sys/devices/system/node").glob("node[0-9]*")):
        try:
            listed = (place / "cpulist").read_text()
        except OSError:
            continue
        nodes[int(place.name.removeprefix("node"))] = cpu_list.numbers(listed)
    return nodes


def _look(path: str, where: Where | None, places: _Places) -> TargetFacts:
    try:
        status, identity = look(path)
    except FileNotFoundError:
        return _missing(path, where, places)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise make_error(
            InputError, "plan.target.unreadable", where=where, path=path, reason=reason
        ) from None
    if stat.S_ISBLK(status.st_mode):
        return _block(status.st_rdev, identity)
    if stat.S_ISCHR(status.st_mode):
        if nvme.is_generic(status.st_rdev):
            return _namespace(path, where, identity)
        return TargetFacts(TargetKind.CHAR, at_once=status.st_rdev in _AT_ONCE, identity=identity)
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISDIR(status.st_mode):
            raise make_error(InputError, "plan.target.is_directory", where=where, path=path)
        raise make_error(InputError, "plan.target.no_file", where=where, path=path)
    mark = marker.read(Path(path))
    if mark is not None and not mark.laid_out:
        return _missing(path, where, places)
    return _file(path, status, identity, places)


def _missing(path: str, where: Where | None, places: _Places) -> TargetFacts:
    # Directories that are missing are made; what is there decides about the place.
    parent = next(place for place in Path(path).parents if place.exists())
    if not parent.is_dir() or (path.startswith(("/dev/", "/proc/", "/sys/")) and parent != Path(path).parent):
        wanted = Path(path).parent
        raise make_error(InputError, "plan.target.no_directory", where=where, path=path, directory=wanted)
    if path.startswith("/dev/") and parent == Path("/dev"):
        near = sorted(entry.name for entry in parent.iterdir() if entry.name[:2] == Path(path).name[:2])[:8]
        hint = say("plan.target.near", names=", ".join(near)) if near else say("plan.target.lsblk")
        raise make_error(InputError, "plan.target.no_device", where=where, hint=hint, path=path)
    medium, block = _file_system(str(parent), parent.stat().st_dev, places)
    return TargetFacts(
        TargetKind.FILE,
        exists=False,
        allocated_bytes=0,
        logical_block_bytes=block,
        punts=medium,
        free_bytes=_free(str(parent)),
    )


def _file(path: str, status: os.stat_result, identity: Identity, places: _Places) -> TargetFacts:
    real = Path(os.path.realpath(path))
    medium, block = _file_system(str(real.parent), status.st_dev, places)
    return TargetFacts(
        TargetKind.FILE,
        size_bytes=status.st_size,
        allocated_bytes=status.st_blocks * 512,
        logical_block_bytes=block,
        punts=medium,
        identity=identity,
        free_bytes=_free(path),
    )


def _free(path: str) -> int | None:
    try:
        return _free_bytes(os.statvfs(path))
    except OSError:
        return None


def _block(device: int, identity: Identity) -> TargetFacts:
    entry = _sysfs(device)
    sectors = _number(entry / "size") or 0
    name = entry.resolve().name
    return TargetFacts(
        TargetKind.BLOCK,
        size_bytes=sectors * SECTOR_BYTES,
        logical_block_bytes=_logical_block(entry),
        punts=bool(_MEMORY_DEVICE.match(name)),
        identity=identity,
    )


def _namespace(path: str, where: Where | None, identity: Identity) -> TargetFacts:
    """Facts of a namespace by its character device: those of the block device beside it."""
    block = nvme.namesake(identity.special)
    beside = None if block is None else namesake_of(block)
    if block is None or beside is None:
        raise make_error(InputError, "plan.target.no_namesake", where=where, path=path)
    if not block.size_bytes:
        raise make_error(InputError, "plan.target.no_capacity", where=where, path=path, device=beside.path)
    return replace(_block(block.number, identity), kind=TargetKind.NVME, namesake=beside)


def namesake_of(block: BlockDevice) -> Namesake | None:
    """Return the node of a block device in /dev; None when it is not that device's."""
    path = Path("/dev") / block.name
    try:
        status, identity = look(path)
    except OSError:
        return None
    if not stat.S_ISBLK(status.st_mode) or status.st_rdev != block.number:
        return None
    return Namesake(path=str(path), identity=identity)


def _sysfs(device: int) -> Path:
    return Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")


def _logical_block(entry: Path) -> int:
    """Return the logical block size; a partition has it one directory up."""
    resolved = entry.resolve()
    for place in (resolved, resolved.parent):
        size = _number(place / "queue" / "logical_block_size")
        if size:
            return size
    return SECTOR_BYTES


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _file_system(directory: str, device: int, places: _Places) -> tuple[bool, int]:
    """Return whether the file system of a directory punts, and its unit of direct I/O."""
    if directory not in places:
        places[directory] = _look_at_file_system(directory, device)
    return places[directory]


def _look_at_file_system(directory: str, device: int) -> tuple[bool, int]:
    kind, source = _mount_of(os.path.realpath(directory))
    block = _logical_block(_sysfs(device)) if os.major(device) else SECTOR_BYTES
    return kind in _MEMORY_FILE_SYSTEMS or bool(_MEMORY_DEVICE.match(source.rpartition("/")[2])), block


def _mount_of(path: str) -> tuple[str, str]:
    """Return file system type and source of the mount a real path is on.

    Format: proc_pid_mountinfo(5); the last mount of the longest mount point counts.
    """
    best, answer = -1, ("", "")
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return answer
    for line in lines:
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), left.split(" ")[4])
        inside = point in ("/", path) or path.startswith(point + "/")
        if inside and len(point) >= best:
            best = len(point)
            kind, source = right.split(" ")[:2]
            answer = (kind, source)
    return answer
