"""What the targets of an experiment are, for its later sessions: by names that hold over a reboot.

Knows devices by their own name, or by what they are made of; file systems by UUID or server; files by number
and birth. What has no such name is known until the next start of the host. Sets nothing, and asks nobody.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.bundle.experiment import ExperimentTarget
from loadstone.control.file_system_name import IN_MEMORY, stable_name
from loadstone.control.layout.build import identity_of
from loadstone.control.mounts import MountOptions
from loadstone.messages import say
from loadstone.path import btrfs, inode
from loadstone.path.block import BlockDevice
from loadstone.path.child import run_in_child
from loadstone.path.identity import BOOT_ID, NETWORK, NFS, file_handle, own_name, server
from loadstone.path.mounts import mount_of
from loadstone.plan.safety import marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loadstone.path.mounts import Mount

LOOKING: Final = "looking at the targets of the experiment"
UNNUMBERED: Final = ("overlay", "fuse")
"""Kinds of file systems, and how others begin, that may give a file another number."""
OF_A_MOUNT: Final = ("clientaddr=", "mountport=", "mountaddr=")
"""Options of NFS that are another one's at each mount."""


def looked_at(paths: Iterable[str]) -> tuple[ExperimentTarget, ...]:
    """Look at devices, files, or where one will be, in a child: a server may not answer. Raises RunError."""
    every = list(dict.fromkeys(paths))
    if not every:
        return ()
    targets: tuple[ExperimentTarget, ...] = run_in_child(lambda: tuple(map(_record, every)), doing=LOOKING)
    return targets


def on_layout(layout: str, source: str, volume: str) -> tuple[ExperimentTarget, ...]:
    """Look at what a layout has mounted at `volume`: none where that is new each time. Raises RunError."""
    return tuple(
        # Where it is mounted is another place in each session, and how is in the file.
        one.model_copy(update={"path": source, "layout": layout, "point": "", "options": ()})
        for one in looked_at([volume])
        if one.file_system.partition(" ")[0] not in IN_MEMORY
    )


def others(
    before: Sequence[ExperimentTarget], now: Iterable[ExperimentTarget], *, killed: bool
) -> Iterator[tuple[str, str]]:
    """Yield each that is not what it was when its last session ended, or began, and why.

    `killed`: a run was under way when that session ended, and may have made the file.
    """
    recorded = {_key(one): one for one in before}
    for target in now:
        known = recorded.get(_key(target))
        why = None if known is None else _change(known, target, killed=killed)
        if why is not None:
            yield target.name, why


def together(
    before: Sequence[ExperimentTarget], now: Sequence[ExperimentTarget]
) -> tuple[ExperimentTarget, ...]:
    """Return all of both, as they are now where that is known."""
    return tuple({_key(one): one for one in (*before, *now)}.values())


def with_files_of(
    before: Iterable[ExperimentTarget], now: Iterable[ExperimentTarget]
) -> tuple[ExperimentTarget, ...]:
    """Return targets as they were, each with the file that it has now."""
    recorded = {_key(one): one for one in before}
    return tuple(
        one
        if (known := recorded.get(_key(one))) is None
        else known.model_copy(update={"file": one.file, "born_ns": one.born_ns, "marked": one.marked})
        for one in now
    )


def _key(target: ExperimentTarget) -> tuple[str, str, str]:
    return target.host, target.layout, target.path


def _record(path: str) -> ExperimentTarget:
    try:
        status = Path(path).stat()
    except OSError:
        status = None
    if status is not None and stat.S_ISBLK(status.st_mode):
        return _device_record(path, status.st_rdev)
    mount = mount_of(Path(path))
    if mount is None or (status is not None and stat.S_ISCHR(status.st_mode)):
        return ExperimentTarget(path=path)  # What stands beside a character device has a record of its own.
    file_system, boot = _file_system(mount)
    part = "" if mount.root == "/" else f", its directory {mount.root}"
    options = (MountOptions().read(mount.point) or "").replace("|", ",").split(",")
    return ExperimentTarget(
        path=path,
        boot=boot,
        point=mount.point,
        file_system=file_system + part,
        options=tuple(sorted({one for one in options if not one.startswith(OF_A_MOUNT)})),
        file="" if status is None else _file(path, mount, status),
        born_ns=None if status is None else inode.steady_birth_of(path),
        marked=status is not None and marker.read(Path(path)) is not None,
    )


def _device_record(path: str, number: int) -> ExperimentTarget:
    device = BlockDevice.of_number(number)
    name = None if device is None else _name(device)
    if device is None or name is None:
        boot, _, temporary = identity_of(path).partition(":")
        return ExperimentTarget(
            path=path, device=temporary or path, boot=boot, size_bytes=device.size_bytes if device else 0
        )
    return ExperimentTarget(path=path, device=name, size_bytes=device.size_bytes)


def _name(device: BlockDevice) -> str | None:
    """Return a name of a device that holds over a reboot: its own, or what it is made of."""
    if (name := own_name(device)) is not None:
        return name
    disk = device.disk()
    if disk != device:
        name = _name(disk)
        return None if name is None else f"{name} from sector {device.attribute('start')}"
    if (backing := device.backing()) is not None:
        below = _backing(device, *backing)
        offset = device.attribute("loop/offset") or "0"
        return None if below is None else f"loop device from byte {offset} of {below}"
    parts = [_name(one) for one in device.slaves()]
    named = sorted(one for one in parts if one is not None)
    return f"made of {'; '.join(named)}" if parts and len(named) == len(parts) else None


def _backing(device: BlockDevice, number: int, file: int) -> str | None:
    """Name what a loop device stands on; None where that has no name of its own, or another one by now."""
    if not number:
        below = BlockDevice.of_number(file)
        return None if below is None else _name(below)
    path = device.backing_file()
    try:
        status = Path(path or "").stat()
        mount = mount_of(Path(path or ""))
    except OSError:
        return None
    if path is None or mount is None or (status.st_dev, status.st_ino) != (number, file):
        return None
    file_system, boot = _file_system(mount)
    # Its birth tells apart two that got one number after each other.
    born = inode.steady_birth_of(path)
    return None if boot else f"{path} (number {file}, born {born}) on {file_system}"


def _file_system(mount: Mount) -> tuple[str, str]:
    """Return kind and name of a file system, and the boot that the name holds for; empty: any."""
    kind = mount.kind
    if kind in IN_MEMORY:
        return f"{kind} {os.major(mount.device)}:{os.minor(mount.device)}", _boot()
    if kind in NETWORK:
        handle = file_handle(mount.point) if kind in NFS else None
        return f"{kind} of {server(mount)}" + (f" ({handle})" if handle else ""), ""
    name = stable_name(mount.point)
    device = BlockDevice.of_number(mount.device)
    if device is None and kind == "btrfs" and mount.source.startswith("/dev/"):
        device = BlockDevice.of_name(Path(os.path.realpath(mount.source)).name)
        known = None if device is None else btrfs.of_device(device)
        device = device if known is None or len(known.devices) == 1 else None  # Any of several may be told.
    # A copy of a file system has the UUID of the first.
    below = None if device is None else _name(device)
    if below is not None:
        return f"{kind} {name} on {below}", ""
    return f"{kind} {name}", _boot() if name == mount.source and name.startswith("/dev/") else ""


def _file(path: str, mount: Mount, status: os.stat_result) -> str:
    if mount.kind.startswith(UNNUMBERED):
        return "there"
    handle = file_handle(path) if mount.kind in NFS else None
    return handle or f"number {status.st_ino}"


def _boot() -> str:
    return BOOT_ID.read_text().strip()


def _change(before: ExperimentTarget, now: ExperimentTarget, *, killed: bool) -> str | None:
    """Return what makes a target another one; None: nothing."""
    if before.device or now.device:
        return _change_of_device(before, now)
    if before.point != now.point:
        return say("experiment.target.elsewhere", before=before.point, now=now.point)
    if before.boot != now.boot:
        return say("experiment.target.unnamed", before=before.file_system, now=now.file_system)
    if before.file_system != now.file_system:
        return say("experiment.target.other_file_system", before=before.file_system, now=now.file_system)
    if before.options != now.options:
        came, went = sorted({*now.options} - {*before.options}), sorted({*before.options} - {*now.options})
        words = ",".join(went) or "-", ",".join(came) or "-"
        return say("experiment.target.remounted", point=now.point, before=words[0], now=words[1])
    return _change_of_file(before, now, killed=killed)


def _change_of_device(before: ExperimentTarget, now: ExperimentTarget) -> str | None:
    if not now.device:
        return say("experiment.target.gone")
    if before.boot and now.boot and before.boot != now.boot:
        return say("experiment.target.unnamed", before=before.device, now=now.device)
    if before.device != now.device:
        return say("experiment.target.was", before=before.device or "-", now=now.device)
    if before.size_bytes != now.size_bytes:
        sizes = [f"{one.size_bytes:,} bytes" for one in (before, now)]
        return say("experiment.target.size", before=sizes[0], now=sizes[1])
    return None


def _change_of_file(before: ExperimentTarget, now: ExperimentTarget, *, killed: bool) -> str | None:
    births = (before.born_ns, now.born_ns)
    if before.file == now.file and (None in births or births[0] == births[1]):
        return None
    if not now.file:
        return say("experiment.target.gone")
    if killed and now.marked:
        return None  # The run that was under way made it.
    return say("experiment.target.other_file" if before.file else "experiment.target.new")
