"""From a target to the medium: the layers of its data path.

Knows which kind of file system or device stands on which, and what each tells about itself. Links
and adapters are in `links`. Judges nothing; what cannot be seen is a gap, with the reason.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone.messages import say
from loadstone.path import btrfs, cgroups, fuse, links, nfs, nvme
from loadstone.path.block import SYS, BlockDevice
from loadstone.path.builder import Builder, number, text
from loadstone.path.extents import allocation
from loadstone.path.layers import IN_MEMORY, Ceiling, DataPath
from loadstone.path.mounts import PROC, Mount, mount_of

if TYPE_CHECKING:
    from loadstone.path.cgroups import IoLimit
    from loadstone.path.layers import LayerKind

    _Facts = dict[str, Any]

NETWORK: Final = ("cifs", "smb3", "ceph", "9p", "lustre", "gpfs", "beegfs", "glusterfs", "virtiofs")
MEMORY: Final = "memory"
QUEUE: Final = ("write_cache", "nomerges", "io_poll")
QUEUE_BYTES: Final = {
    "logical_block_size": "logical_block_bytes",
    "physical_block_size": "physical_block_bytes",
    "minimum_io_size": "minimum_io_bytes",
    "optimal_io_size": "optimal_io_bytes",
}


def discover(target: str, *, sys: Path = SYS, proc: Path = PROC) -> DataPath:
    """Return the layers under a target: a file (which may not exist yet) or a device."""
    walk = _Walk(Builder(sys, proc))
    walk.target(target)
    return walk.build.path(target)


class _Walk:
    def __init__(self, build: Builder) -> None:
        self.build = build
        self._counted = True
        self._limits = cgroups.io_limits(cgroups.io_groups(proc=build.proc))

    def target(self, target: str) -> None:
        path = Path(target)
        try:
            status = path.stat()
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self.build.gap(f"{target}: {error.strerror}")
            self.file(path)
            return
        if stat.S_ISBLK(status.st_mode):
            device = BlockDevice.of_number(status.st_rdev, self.build.sys)
            if device is None:
                self.build.gap(say("path.gap.no_device", target=target, folder=self.build.sys))
            else:
                self.device(device)
        elif stat.S_ISCHR(status.st_mode):
            namesake = nvme.namesake(status.st_rdev, self.build.sys)
            number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
            self.build.begin(target)
            below = [] if namesake is None else [self._past_block_layer(namesake)]
            self.build.add(target, "char", {"device": number}, below=below)
        else:
            self.file(path)

    def _past_block_layer(self, device: BlockDevice) -> str:
        """Add a device that commands go to: the block layer neither counts nor throttles them."""
        self._limits, self._counted = [], False
        self.build.gap(say("path.gap.counters", device=device.name))
        return self.device(device)

    def file(self, path: Path) -> str:
        """Add a file and what its file system stands on."""
        name = str(path)
        if not self.build.begin(name):
            return name
        below: list[str] = []
        mount = mount_of(path, self.build.proc)
        if mount is None:
            self.build.gap(say("path.gap.mount", file=name))
        else:
            below = [self.file_system(mount, path)]
        facts: _Facts = {} if path.exists() else {"missing": True}
        if path.is_file() and mount is not None and mount.kind in (*nfs.KINDS, *NETWORK):
            # How it lies on the server's disks is not the client's to know.
            facts = {"size_bytes": path.stat().st_size}
        elif path.is_file() and (file_allocation := allocation(name)) is not None:
            facts = {**asdict(file_allocation), "complete": file_allocation.complete}
        if mount is not None and mount.kind == "overlay" and path.is_file():
            facts["copied_up"] = _copied_up(path, mount)
        return self.build.add(name, "file", facts, below=below)

    def file_system(self, mount: Mount, path: Path) -> str:
        """Add the file system of a mount."""
        name = f"{mount.kind} on {mount.point}"
        if not self.build.begin(name):
            return name
        facts: _Facts = {
            "type": mount.kind,
            "source": mount.source,
            "options": mount.options,
            "super_options": mount.super_options,
            **_space(mount.point),
        }
        kind: LayerKind = "file_system"
        counters = None
        if mount.kind in nfs.KINDS:
            kind, counters = "network_file_system", f"nfs.{mount.point}"
            below = self._nfs(mount, facts)
        elif mount.kind in NETWORK:
            kind = "network_file_system"
            address = nfs.options(mount).get("addr")
            below = links.to_address(self.build, address, mount.source) if address else []
            if not address:
                self.build.gap(say("path.gap.behind_mount", kind=mount.kind, source=mount.source))
        elif mount.kind in IN_MEMORY:
            below = [self._memory()]
        elif mount.kind.startswith("fuse"):
            kind = "fuse"
            below = self._fuse(mount, path, facts)
        elif mount.kind == "overlay":
            below = self._overlay(mount)
        elif mount.kind == "btrfs":
            below = self._btrfs(mount, path, facts)
        else:
            below = self._on_device(mount)
        return self.build.add(name, kind, facts, below=below, counters=counters)

    def _nfs(self, mount: Mount, facts: _Facts) -> list[str]:
        options = nfs.options(mount)
        server, export = nfs.server(mount)
        connections = int(options.get("nconnect", "1"))
        facts |= {
            "server": server,
            "export": export,
            "version": options.get("vers"),
            "protocol": options.get("proto"),
            "address": options.get("addr"),
            "read_bytes_at_most": _int(options.get("rsize")),
            "write_bytes_at_most": _int(options.get("wsize")),
            "connections": connections,
            "synchronous": "sync" in options or "sync" in mount.options.split(","),
        }
        self.build.gap(say("path.gap.behind_server", server=server, export=export))
        return links.to_address(
            self.build, options.get("addr") or server, f"the NFS server {server}", connections=connections
        )

    def _fuse(self, mount: Mount, path: Path, facts: _Facts) -> list[str]:
        if lower := fuse.stands_on(mount, path, self.build.proc):
            return [name for one in lower for name in self._lower(one)]
        self.build.gap(say("path.gap.fuse", kind=mount.kind, source=mount.source))
        server = fuse.server(mount, self.build.proc)
        if server is None:
            return []
        facts |= {"programs": list(server.programs), "peers": list(server.peers) or None}
        return [
            name
            for peer, connections in server.peers.items()
            for name in links.to_address(self.build, peer, peer, connections=connections)
        ]

    def _lower(self, path: Path) -> list[str]:
        """Add what a mount in user space stands on: a device, a file or a directory."""
        if path.is_block_device():
            device = BlockDevice.of_number(path.stat().st_rdev, self.build.sys)
            return [] if device is None else [self.device(device)]
        if path.is_file():
            return [self.file(path)]
        mount = mount_of(path, self.build.proc)
        return [] if mount is None else [self.file_system(mount, path)]

    def _overlay(self, mount: Mount) -> list[str]:
        upper = nfs.options(mount).get("upperdir")
        upper_mount = mount_of(Path(upper), self.build.proc) if upper and Path(upper).exists() else None
        if upper is not None and upper_mount is not None and upper_mount.point != mount.point:
            return [self.file_system(upper_mount, Path(upper))]
        self.build.gap(say("path.gap.overlay", point=mount.point))
        return []

    def _btrfs(self, mount: Mount, path: Path, facts: _Facts) -> list[str]:
        facts["copy_on_write"] = btrfs.copies_on_write(str(path), mount.super_options)
        facts["compression"] = btrfs.compression(str(path), mount.super_options)
        source = self._source(mount)
        spans = None if source is None else btrfs.of_device(source, self.build.sys)
        if spans is None:
            return self._on_device(mount)
        profiles = {f"{kind}_profile": "+".join(names) for kind, names in spans.profiles.items()}
        name = f"btrfs {profiles.get('data_profile', '')} {spans.label or spans.uuid[:8]}".replace("  ", " ")
        if self.build.begin(name):
            members: _Facts = {
                "uuid": spans.uuid,
                "devices": len(spans.devices),
                "degraded": spans.missing,
            }
            below = [self.device(device) for device in spans.devices]
            self.build.add(name, "btrfs", {**profiles, **members}, below=below)
        return [name]

    def _on_device(self, mount: Mount) -> list[str]:
        device = BlockDevice.of_number(mount.device, self.build.sys) or self._source(mount)
        if device is not None:
            return [self.device(device)]
        if mount.kind == "zfs":
            self.build.gap(say("path.gap.zfs", source=mount.source))
        else:
            self.build.gap(say("path.gap.device", kind=mount.kind, source=mount.source))
        return []

    def _source(self, mount: Mount) -> BlockDevice | None:
        if not mount.source.startswith("/dev/"):
            return None
        try:
            return BlockDevice.of_number(Path(mount.source).stat().st_rdev, self.build.sys)
        except OSError:
            return BlockDevice.of_name(Path(mount.source).name, self.build.sys)

    def device(self, device: BlockDevice) -> str:
        """Add a block device and what it stands on; the name to go on from is its throttle's, if any."""
        limits = [limit for limit in self._limits if limit.device == device.attribute("dev")]
        entry = self._throttle(device, limits) if limits else device.name
        if not self.build.begin(device.name):
            return entry
        kind, kind_facts, below = self._kind(device)
        facts: _Facts = {"size_bytes": device.size_bytes, **kind_facts}
        if kind != "partition":
            facts |= _queue(device)
        if kind == "loop" or "virtio" in str(device.sys.resolve()):
            # What such a device says of its medium is a guess: the kernel's default, or its host's.
            facts["rotational"] = None
        if device.attribute("ro") == "1":
            facts["read_only"] = True
        counters = f"block.{device.name}" if self._counted else None
        self.build.add(device.name, kind, facts, below=below, counters=counters)
        return entry

    def _kind(  # noqa: PLR0911 - one for each kind of device
        self, device: BlockDevice
    ) -> tuple[LayerKind, _Facts, list[str]]:
        """Return what a device is, what it tells, and the names under it."""
        slaves = device.slaves()
        if device.disk() != device:
            start = int(device.attribute("start") or 0) * 512
            return "partition", {"start_bytes": start}, [self.device(device.disk())]
        if device.attribute("loop/backing_file") is not None:
            return "loop", _loop(device), self._backing(device)
        if device.attribute("dm/name") is not None:
            kind, facts = _device_mapper(device, slaves)
            if kind == "dm" and not slaves:
                self.build.gap(say("path.gap.mapped", device=device.name, name=str(facts.get("name"))))
            return kind, facts, [self.device(slave) for slave in slaves]
        if device.attribute("md/level") is not None:
            return "md", _md(device, slaves), [self.device(slave) for slave in slaves]
        if device.name.startswith("zram"):
            return "zram", _zram(device), [self._memory()]
        if device.name.startswith(("ram", "pmem")):
            return "memory", {}, []
        if re.match(r"(nbd|rbd|drbd)\d", device.name):
            self.build.gap(say("path.gap.behind_nbd", device=device.name))
            return "network_block", {}, [self.device(slave) for slave in slaves]
        if slaves:
            return "dm", {"type": device.name.rstrip("0123456789")}, [self.device(slave) for slave in slaves]
        below = links.under_disk(self.build, device)
        kind = "nvme" if device.name.startswith("nvme") else "disk"
        return kind, _disk(device, self.build.sys), below

    def _backing(self, device: BlockDevice) -> list[str]:
        path = Path(device.backing_file() or "")
        if path.is_block_device():
            lower = BlockDevice.of_number(path.stat().st_rdev, self.build.sys)
            return [] if lower is None else [self.device(lower)]
        if not path.is_file():
            self.build.gap(say("path.gap.backing", path=path, device=device.name))
            return []
        return [self.file(path)]

    def _memory(self) -> str:
        if self.build.begin(MEMORY):
            match = re.search(r"^MemTotal:\s+(\d+) kB", text(self.build.proc / "meminfo") or "", re.MULTILINE)
            self.build.add(MEMORY, "memory", {"total_bytes": int(match[1]) * 1024 if match else None})
        return MEMORY

    def _throttle(self, device: BlockDevice, limits: list[IoLimit]) -> str:
        """Add the limits that control groups put on a device as a layer above it."""
        own = [limit for limit in limits if limit.group.own]
        groups = list(dict.fromkeys(limit.group.name for limit in limits))
        name = f"cgroup {' '.join(groups)} on {device.name}"
        if self.build.begin(name):
            facts = {
                f"{limit.group.name} {limit.op}_{limit.quantity}": limit.per_s
                for limit in limits
                if not limit.group.own
            }
            if facts:
                self.build.gap(say("path.gap.root_limits", device=device.name))
            ceilings = [
                Ceiling(
                    quantity=limit.quantity,
                    op=limit.op,
                    per_s=float(limit.per_s),
                    kind="limit",
                    source=f"I/O limit of the control group {limit.group.name} on {device.name}",
                )
                for limit in own
            ]
            counters = f"block.{device.name}"
            self.build.add(
                name, "cgroup", dict(facts), below=[device.name], ceilings=ceilings, counters=counters
            )
        return name


def _copied_up(path: Path, mount: Mount) -> bool | None:
    """Return whether a file of an overlay lies in its upper directory; None where that is not to be seen."""
    upper = nfs.options(mount).get("upperdir")
    if upper is None or not Path(upper).is_dir():
        return None
    return (Path(upper) / path.resolve().relative_to(mount.point)).exists()


def _queue(device: BlockDevice) -> _Facts:
    facts: _Facts = {name: device.attribute(f"queue/{name}") for name in QUEUE}
    for name, fact in QUEUE_BYTES.items():
        facts[fact] = _int(device.attribute(f"queue/{name}"))
    largest = _int(device.attribute("queue/max_sectors_kb"))
    facts["largest_io_bytes"] = largest * 1024 if largest else None
    facts["nr_requests"] = _int(device.attribute("queue/nr_requests"))
    chosen = re.search(r"\[([^\]]+)\]", device.attribute("queue/scheduler") or "")
    facts["scheduler"] = chosen[1] if chosen else device.attribute("queue/scheduler")
    rotational = device.attribute("queue/rotational")
    facts["rotational"] = None if rotational is None else rotational == "1"
    facts["hardware_queues"] = len(list((device.sys / "mq").glob("[0-9]*"))) or None
    return facts


def _loop(device: BlockDevice) -> _Facts:
    return {
        "backing_file": device.backing_file(),
        "direct_io": device.attribute("loop/dio") == "1",
        "offset_bytes": _int(device.attribute("loop/offset")),
    }


def _device_mapper(device: BlockDevice, slaves: list[BlockDevice]) -> tuple[LayerKind, _Facts]:
    """Tell by the UUID's prefix, which each tool sets for its own volumes."""
    uuid = device.attribute("dm/uuid") or ""
    facts: _Facts = {"name": device.attribute("dm/name"), "type": None}
    under = [slave.attribute("dm/uuid") or "" for slave in slaves]
    if uuid.startswith("mpath-"):
        return "multipath", facts | {"type": "multipath", "paths": len(slaves)}
    if uuid.startswith("LVM-"):
        thin = any(one.endswith("-tpool") for one in under)
        reducing = any(one.endswith("-vpool") for one in under)
        type_ = "thin" if thin else "vdo" if reducing else "linear or striped" if not under else "lvm"
        facts |= {"type": type_, "compression": "vdo" if reducing else None, "thin": thin or None}
        return "lvm", facts | {"deduplication": "vdo" if reducing else None, "parts": len(slaves)}
    if uuid.startswith("CRYPT-"):
        return "dm", facts | {"type": "crypt", "encryption": uuid.split("-")[1].lower()}
    return "dm", facts | {"type": uuid.partition("-")[0].lower() or None}


def _md(device: BlockDevice, slaves: list[BlockDevice]) -> _Facts:
    return {
        "level": device.attribute("md/level"),
        "members": _int((device.attribute("md/raid_disks") or "").split(" ")[0]),
        "present": len(slaves),
        "chunk_bytes": _int(device.attribute("md/chunk_size")),
        "degraded": _int(device.attribute("md/degraded")),
        "state": device.attribute("md/array_state"),
        "sync_action": device.attribute("md/sync_action"),
        "stripe_cache_pages": _int(device.attribute("md/stripe_cache_size")),
        "consistency": device.attribute("md/consistency_policy"),
    }


def _zram(device: BlockDevice) -> _Facts:
    chosen = re.search(r"\[([^\]]+)\]", device.attribute("comp_algorithm") or "")
    return {"compression": chosen[1] if chosen else device.attribute("comp_algorithm")}


def _disk(device: BlockDevice, sys: Path) -> _Facts:
    parent = device.sys / "device"
    address = parent.resolve().name if parent.exists() else ""
    scsi = sys / "class" / "scsi_disk" / address
    return {
        "vendor": device.attribute("device/vendor"),
        "model": device.attribute("device/model"),
        "firmware": device.attribute("device/rev") or device.attribute("device/firmware_rev"),
        "transport": text(parent / "transport"),
        "queue_depth": number(parent / "queue_depth"),
        "cache_type": text(scsi / "cache_type"),
        "thin": True if text(scsi / "thin_provisioning") == "1" else None,
    }


def _space(point: str) -> _Facts:
    try:
        space = os.statvfs(point)
    except OSError:
        return {}
    if not space.f_blocks:
        return {}
    return {
        "block_bytes": space.f_bsize,
        "total_bytes": space.f_blocks * space.f_frsize,
        "free_bytes": space.f_bavail * space.f_frsize,
    }


def _int(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() else None
