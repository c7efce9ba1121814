"""The commands that build a layout and take it down, one after the other.

Knows mdadm(8), lvm(8), mkfs.btrfs(8), zpool(8), mkfs(8) and mount(8). Runs nothing: what is built,
and what of it is there, is `build`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.control.layout.description import LayoutOrder

BTRFS_PROFILE: Final = {
    "jbod": "single",
    "0": "raid0",
    "1": "raid1",
    "10": "raid10",
    "5": "raid5",
    "6": "raid6",
}
BTRFS_METADATA: Final = {
    "jbod": "single",
    "0": "raid0",
    "1": "raid1",
    "10": "raid10",
    "5": "raid1",
    "6": "raid1c3",
}
"""Of metadata: btrfs(5) advises against parity for it."""
LVM_TYPE: Final = {"jbod": "linear", "0": "striped", "1": "raid1", "10": "raid10", "5": "raid5", "6": "raid6"}
FORCE: Final = {"ext4": ("-F", "-q"), "xfs": ("-f", "-q"), "btrfs": ("-f", "-q")}
NEEDS: Final = {
    "none": (),
    "md": ("mdadm",),
    "lvm": ("pvcreate", "vgcreate", "lvcreate", "vgremove"),
    "btrfs": ("mkfs.btrfs",),
    "zfs": ("zpool", "blkdiscard"),
    "mount": ("mount",),
}
"""Programs of each manager."""
WIPE: Final = ("wipefs", "--all", "--quiet")
CLEAR_LABELS: Final = ("blkdiscard", "--zeroout", "--offset", "0", "--length", "512KiB")
"""wipefs stops where three uberblocks are left, which it takes for none: in the first labels of four."""
MOUNT_HELPED: Final = ("nfs", "nfs4", "cifs")
"""File systems that mount(8) mounts by a program of theirs."""


@dataclass(frozen=True, slots=True)
class Build:
    """A command that builds something. `makes`: a directory to make before."""

    command: tuple[str, ...]
    makes: str | None = None


@dataclass(frozen=True, slots=True)
class TakeDown:
    """A command that takes something down, where it is there: by `path`, or by what `there` answers."""

    command: tuple[str, ...]
    mounted: str | None = None
    """Only if something is mounted at this path, which is removed afterwards."""
    there: tuple[str, ...] | None = None
    """Only if this command ends with 0."""
    wipes: str | None = None
    """Only if this device carries something of our name."""


def programs(order: LayoutOrder) -> list[str]:
    """Return the programs that are needed to build it."""
    kind = order.description.on_volume
    needs = list(NEEDS[order.description.manager])
    if kind in FORCE and order.description.manager != "btrfs":
        needs.append(f"mkfs.{kind}")
    if kind not in ("none", "zfs"):
        needs += ["mount", "umount"]
    if (order.description.filesystem_type or "") in MOUNT_HELPED:
        needs.append(f"mount.{order.description.filesystem_type}")
    return list(dict.fromkeys([*needs, *(["wipefs", "blkid"] if order.used else [])]))


def building(order: LayoutOrder) -> Iterator[Build]:
    """Return what builds it, in order."""
    for number in range(len(order.groups)):
        yield from _array(order, number)
        yield from _file_system(order, number)


def taking_down(order: LayoutOrder) -> Iterator[TakeDown]:
    """Return what takes it down, in order; each holds only where that is there."""
    for number in reversed(range(len(order.groups))):
        name, devices = order.group_name(number), order.groups[number]
        yield from _file_system_down(order, number)
        match order.description.manager:
            case "md":
                device = order.block_device(number)
                yield TakeDown(("mdadm", "--stop", device), there=("mdadm", "--detail", device))
                for one in devices:
                    yield TakeDown(
                        ("mdadm", "--zero-superblock", one), there=("mdadm", "--examine", one), wipes=one
                    )
            case "lvm":
                yield TakeDown(("vgremove", "--force", "--yes", name), there=("vgs", name))
                for one in devices:
                    yield TakeDown(("pvremove", "--yes", one), there=("pvs", one), wipes=one)
            case "zfs":
                yield TakeDown(("zpool", "destroy", "-f", name), there=("zpool", "list", name))
            case _:
                pass
    for one in order.used:
        yield TakeDown((*WIPE, one), wipes=one)
        if order.description.manager == "zfs":
            yield TakeDown((*CLEAR_LABELS, one), wipes=one)


def _file_system_down(order: LayoutOrder, number: int) -> Iterator[TakeDown]:
    volume, device = order.volume(number), order.block_device(number)
    if order.description.on_volume not in ("none", "zfs"):
        yield TakeDown(("umount", volume), mounted=volume)
    if device in order.on_arrays:
        yield TakeDown((*WIPE, device), there=("wipefs", device), wipes=device)


def _array(order: LayoutOrder, number: int) -> Iterator[Build]:
    description, name, devices = order.description, order.group_name(number), order.groups[number]
    match description.manager:
        case "md":
            yield _md(order, number)
        case "lvm":
            yield Build(("pvcreate", "--yes", "-ff", *devices))
            yield Build(("vgcreate", name, *devices))
            yield from _logical_volume(order, number)
        case "btrfs":
            levels = ("-d", BTRFS_PROFILE[description.raid], "-m", BTRFS_METADATA[description.raid])
            begin = ("mkfs.btrfs", *FORCE["btrfs"], "-L", order.label)
            yield Build((*begin, *levels, *description.mkfs_options, *devices))
        case "zfs":
            yield _pool(order, number)
        case _:
            pass


def _md(order: LayoutOrder, number: int) -> Build:
    description, devices = order.description, order.groups[number]
    chunk = (
        ("--chunk", str(description.chunk_kib)) if description.chunk_kib and description.raid != "1" else ()
    )
    named = ("--run", "--metadata=1.2", f"--name={order.group_name(number)}")
    shape = ("--level", description.raid, "--raid-devices", str(len(devices)), *chunk)
    return Build(("mdadm", "--create", order.block_device(number), *named, *shape, *devices))


def _pool(order: LayoutOrder, number: int) -> Build:
    description, place = order.description, order.volume(number)
    log = ("log", description.log) if description.log and number == 0 else ()
    properties = tuple(w for key, value in description.properties.items() for w in ("-O", f"{key}={value}"))
    begin = ("zpool", "create", "-f", "-m", place, *properties, order.group_name(number))
    return Build((*begin, *_vdevs(description.raid, order.groups[number]), *log), makes=place)


def _logical_volume(order: LayoutOrder, number: int) -> Iterator[Build]:
    description, name, count = order.description, order.group_name(number), len(order.groups[number])
    data = {"0": count, "10": count // 2, "5": count - 1, "6": count - 2}.get(description.raid)
    shape: tuple[str, ...] = ("--type", LVM_TYPE[description.raid])
    shape += ("--stripes", str(data)) if data else ()
    shape += ("--mirrors", "1") if description.raid in ("1", "10") else ()
    shape += ("--stripesize", f"{description.chunk_kib}k") if description.chunk_kib and data else ()
    free = f"{description.size_percent}%FREE"
    command = ("lvcreate", "--yes", "--wipesignatures", "y")
    if not description.thin:
        yield Build((*command, *shape, "--extents", free, "--name", "volume", name))
        return
    # A thin pool keeps its metadata beside its data: some room is left for that.
    pool = f"{min(description.size_percent, 90)}%FREE"
    yield Build((*command, *shape, "--extents", pool, "--name", "pool", name))
    yield Build(("lvconvert", "--yes", "--type", "thin-pool", f"{name}/pool"))
    yield Build(("sh", "-c", _thin_volume(name)))


def _thin_volume(name: str) -> str:
    """Return what makes a thin volume as large as its pool: lvcreate takes no share for one."""
    size = f"$(lvs --noheadings --nosuffix --units b -o lv_size {name}/pool | tr -d ' ')"
    return f'lvcreate --yes --thin --virtualsize "{size}b" --name volume {name}/pool'


def _vdevs(raid: str, devices: tuple[str, ...]) -> tuple[str, ...]:
    match raid:
        case "1":
            return ("mirror", *devices)
        case "10":
            pairs = [devices[at : at + 2] for at in range(0, len(devices), 2)]
            return tuple(word for pair in pairs for word in ("mirror", *pair))
        case "5":
            return ("raidz", *devices)
        case "6":
            return ("raidz2", *devices)
        case _:
            return devices


def _file_system(order: LayoutOrder, number: int) -> Iterator[Build]:
    description, kind, volume = order.description, order.description.on_volume, order.volume(number)
    if kind in ("none", "zfs"):
        return
    if kind in FORCE and description.manager != "btrfs":
        yield Build(
            (
                f"mkfs.{kind}",
                *FORCE[kind],
                "-L",
                order.label,
                *description.mkfs_options,
                order.block_device(number),
            )
        )
    options = ("-o", ",".join(description.mount_options)) if description.mount_options else ()
    type_option = ("-t", description.filesystem_type) if description.filesystem_type else ()
    yield Build(("mount", *type_option, *options, order.block_device(number), volume), makes=volume)
