"""Evidence that a device or file is in use, as sentences.

Knows mounts, swap, holders, loop devices, btrfs members, overlays, what the kernel serves to others,
what other processes have open, mapped or locked (`open_files`), and the kernel's own claim (`O_EXCL`).
A file is told by device and inode, never by name. Judges nothing else: signatures and consent are
elsewhere. An empty list means that no use was found.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import struct
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.path import fuse
from loadstone.path.block import SYS, BlockDevice, above, loops
from loadstone.path.mounts import (
    Mount,
    is_image_mounted_by_itself,
    mount_of,
    mounted_files,
    mounts,
    swaps,
)
from loadstone.plan.safety import open_files, user_space_mounts
from loadstone.plan.safety.kernel_exports import exported
from loadstone.plan.safety.open_files import Key, key_of
from loadstone.plan.safety.use import Use, UseKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NO_LEASES: Final = ("nfs", "nfs4", "cifs", "smb3")
_SCANNER_WAITS_S: Final = (0.05, 0.1, 0.2)
"""A scanner of opened files has ours open, too, until it let us open it."""
_F_SETOWN_EX: Final = 15
_F_OWNER_TID: Final = 0
"""Of fcntl(2)."""
_BY_NO_PROCESS: Final = "the kernel, or a process outside /proc, has it open"
"""Such as a descriptor on its way through a socket."""


@dataclass(frozen=True)
class Snapshot:
    """What the host uses, looked up once for all targets of a Plan, and only when asked for."""

    sys: Path = SYS

    @cached_property
    def mounts(self) -> list[Mount]:
        """Mounts of this namespace."""
        return mounts()

    @cached_property
    def mounted_devices(self) -> list[tuple[int, Mount]]:
        """Device numbers that are mounted: by `st_dev`, and by source for those that differ (btrfs)."""
        devices = [(mount.device, mount) for mount in self.mounts]
        named = [(_rdev(mount.source), mount) for mount in self.mounts if mount.source.startswith("/dev/")]
        return devices + [(number, mount) for number, mount in named if number and number != mount.device]

    @cached_property
    def swaps(self) -> list[tuple[Key, str]]:
        """Swap devices and files."""
        return [(key, name) for name in swaps() if (key := key_of(Path(name))) is not None]

    @cached_property
    def has_swap(self) -> bool:
        """Whether anything is swapped to."""
        return bool(swaps())

    @cached_property
    def has_mounted_images(self) -> bool:
        """Whether the kernel reads files for a file system, which may have other names by now."""
        return is_image_mounted_by_itself()

    @cached_property
    def loops(self) -> list[tuple[Key | None, BlockDevice]]:
        """Loop devices that are set up, by what backs them."""
        return [(loop.backing() or key_of(Path(loop.backing_file() or "")), loop) for loop in loops(self.sys)]

    @cached_property
    def users(self) -> dict[Key, list[Use]]:
        """What other processes have open for writing, mapped or locked, and what the kernel serves."""
        uses = open_files.users()
        for key, served in self.exports.items():
            uses.setdefault(key, []).extend(served)
        return uses

    @cached_property
    def exports(self) -> dict[Key, list[Use]]:
        """What the kernel is set up to serve."""
        uses: dict[Key, list[Use]] = {}
        for path, text in exported():
            if (key := key_of(path)) is not None:
                uses.setdefault(key, []).append(Use(UseKind.SERVED, text))
        return uses

    @cached_property
    def readers(self) -> dict[Key, list[Use]]:
        """What processes, this one too, have open or mapped at all."""
        return open_files.readers()

    @cached_property
    def servers(self) -> dict[int, set[int] | None]:
        """Processes that serve mounts, and the `st_dev` of those that each serves."""
        return {int(number): served for number, served in fuse.servers().items()}

    @cached_property
    def file_uses(self) -> dict[Key, list[Use]]:
        """All uses of files and devices that are not mounts, holders or claims."""
        return self._with_uses_of_the_host(self.users)

    @cached_property
    def unopened_uses(self) -> dict[Key, list[Use]]:
        """`file_uses` of files that nobody has open: no process has to be looked at for them."""
        return self._with_uses_of_the_host(self.exports)

    def _with_uses_of_the_host(self, users: dict[Key, list[Use]]) -> dict[Key, list[Use]]:
        """Return uses with those as a loop device's file, a mount's or swap."""
        uses = {key: list(key_uses) for key, key_uses in users.items()}
        for key, loop in self.loops:
            if key is not None:
                uses.setdefault(key, []).insert(0, Use(UseKind.LOOP, f"it backs {loop.name}"))
        for source, mount, in_own_space in mounted_files():
            key = key_of(source)
            if key is not None and key[0]:
                message = "plan.held.mounted" if in_own_space else "plan.held.mounted_elsewhere"
                text = say(message, point=mount.point, kind=mount.kind)
                uses.setdefault(key, []).append(Use(UseKind.MOUNTED, text))
        for key, name in self.swaps:
            uses.setdefault(key, []).append(Use(UseKind.SWAP, say("plan.held.swap_as", name=name)))
        return uses


def device_uses(path: Path, host: Snapshot) -> list[str]:
    """Evidence that the block device at `path`, anything on it or what it stands on is in use."""
    number = path.stat().st_rdev
    device = BlockDevice.of_number(number, host.sys)
    if device is None:
        evidence = [use.text for use in host.users.get((0, number), [])]
    else:
        family = [device, *above(device), *_same_backing(device, host)]
        evidence = [use for one in family for use in _member_uses(one, host)]
        evidence += _uses_under_device(device, host)
        # A mount in another mount namespace is in no table of ours.
        evidence = evidence or [use for one in family[1:] for use in _claimed(one.node, one)]
    return list(dict.fromkeys(evidence)) or _claimed(path)


def _uses_under_device(device: BlockDevice, host: Snapshot) -> list[str]:
    """Return uses of what a write to a device ends up in: its disk, members, what a loop stands on.

    Of a member of device mapper or md other parts may belong to others; a disk, and what a loop device
    stands on, is used as one.
    """
    uses: list[str] = []
    waiting = [device]
    while waiting:
        one = waiting.pop(0)
        backing = next((key for key, loop in host.loops if loop == one), None)
        if one.disk() != one:
            lower = [one.disk(), *_same_backing(one.disk(), host)]
            waiting.append(one.disk())
        elif backing is not None and backing[0]:
            backing_uses = [use for use in host.file_uses.get(backing, []) if use.kind is not UseKind.LOOP]
            uses += [f"the file behind {one.name}: {use.text}" for use in backing_uses]
            lower = []
        elif backing is not None and (under := BlockDevice.of_number(backing[1], host.sys)) is not None:
            lower = [under, *above(under), *_same_backing(under, host)]
            waiting.append(under)
        else:
            lower = []
        uses += [use for other in lower for use in _member_uses(other, host, one)]
        if lower and lower[0] != one.disk():
            # Not of a disk: the kernel says so of one whose other partitions are in use.
            uses = uses or [use for other in lower for use in _claimed(other.node, other)]
        uses += [use for other in one.slaves() for use in _own_uses(other, host)]
        waiting += one.slaves()
    return uses


def file_uses(path: Path, host: Snapshot, but: UseKind | None = None) -> list[str]:
    """Evidence that somebody uses the regular file at `path`, by whatever name, `but` of one kind."""
    uses = _uses_by_this_name(path, host)
    below = user_space_mounts.names_below(path)
    for lower in below.names:
        uses += [
            use.placed(say("plan.held.below", name=lower)) for use in _uses_below(lower, below.mounts, host)
        ]
    return [use.text for use in uses if use.kind is not but]


def _uses_by_this_name(path: Path, host: Snapshot) -> list[Use]:
    all_uses = host.unopened_uses if _is_open_nowhere(path, host) else host.file_uses
    uses = [use for key in keys(path, host) for use in all_uses.get(key, [])]
    if not any(use.kind is UseKind.SWAP for use in uses) and _is_swapped_to(path, host):
        uses.append(Use(UseKind.SWAP, say("plan.held.swap")))
    if not uses and is_open_for_writing(path) and key_of(path) not in open_files.ours():
        uses.append(Use(UseKind.OPEN, say("plan.held.outside_proc")))
    if not uses and host.has_mounted_images and _is_read_by_the_kernel(path, host):
        uses.append(Use(UseKind.MOUNTED, say("plan.held.erofs", process=_BY_NO_PROCESS)))
    return list(dict.fromkeys(uses))


def _uses_below(lower: Path, mounts: frozenset[int], host: Snapshot) -> list[Use]:
    """Return uses of a file below mounts; what their servers have open was opened above, perhaps by us."""
    uses = [use for key in keys(lower, host) for use in host.file_uses.get(key, [])]
    servers = _servers(mounts, host)
    return [use for use in uses if use.process not in servers]


def _servers(mounts: frozenset[int], host: Snapshot) -> set[int]:
    """Return the processes that serve such mounts."""
    return {number for number, served in host.servers.items() if served is None or served & mounts}


def is_open_for_writing(path: Path) -> bool:
    """Ask the kernel: it gives no read lease on a file that anybody has open for writing (fcntl(2)).

    It counts what /proc does not show: the kernel's own files (process accounting, targets it serves),
    descriptors on their way through a socket or kept by io_uring, processes of other PID namespaces.
    False also where it gives leases on no file, or not to us, and on files of servers.
    """
    return _is_lease_refused(path, fcntl.F_RDLCK)


def file_readers(path: Path, host: Snapshot) -> list[str]:
    """Evidence that somebody else reads the regular file at `path`: a disk image's base, a database.

    Consent to lose content is none to change it under those. Others' mere look is no use of Loadstone's
    own data, so this is asked only where something would be lost.
    """
    uses = [use for key in keys(path, host) for use in host.readers.get(key, [])]
    others = [use.text for use in uses if use.process != os.getpid()]
    if not uses and _is_lease_refused(path, fcntl.F_WRLCK):
        others = [_BY_NO_PROCESS]
    below = user_space_mounts.names_below(path)
    servers = _servers(below.mounts, host)
    for lower in below.names:
        uses = [use for key in keys(lower, host) for use in host.readers.get(key, [])]
        others += [
            use.placed(say("plan.held.below", name=lower)).text for use in uses if use.process not in servers
        ]
    return list(dict.fromkeys(others))


def tree_readers(anchor: Path, host: Snapshot, most: int = 20) -> list[str]:
    """Evidence that somebody else reads a file below a directory: its name and who, `most` of them."""
    read = {inode for _, inode in host.readers}
    evidence: list[str] = []
    for entry in _files_below(anchor):
        if entry.inode() in read:
            evidence += [f"{entry.path}: {text}" for text in file_readers(Path(entry.path), host)]
        if len(evidence) >= most:
            break
    return evidence[:most]


def _files_below(place: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files below a directory; what cannot be listed is left out."""
    waiting = [str(place)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry


def _is_read_by_the_kernel(path: Path, host: Snapshot) -> bool:
    """Tell whether a file is open, if only to be read, and no process has it open.

    The kernel gives a write lease only on a file that nobody else has open.
    """
    key = key_of(path)
    if key is None or not key[0]:
        return False
    return _is_lease_refused(path, fcntl.F_WRLCK) and key not in host.readers


def _is_open_nowhere(path: Path, host: Snapshot) -> bool:
    """Tell whether the kernel is sure that nobody has the file open: it gives a write lease (fcntl(2)).

    So the descriptors of all processes need not be read. A file that is also seen through an overlay may
    be open by its other name, of which the lease says nothing.
    """
    return not _overlaid_keys(path, host) and _lease_error(path, fcntl.F_WRLCK, waits_s=()) == 0


def is_use_hidden(path: Path) -> bool:
    """Tell whether only the file's owner and root can see who has it open.

    /proc shows an ordinary user no descriptors of others, and the kernel gives no lease then (fcntl(2)).
    """
    return path.stat().st_uid != os.geteuid() and _lease_error(path, fcntl.F_RDLCK) == errno.EACCES


def is_use_hidden_below(anchor: Path) -> bool:
    """Tell whether that is so of any file below a directory."""
    others = (one for one in _files_below(anchor) if one.stat(follow_symlinks=False).st_uid != os.geteuid())
    other = next(others, None)
    return other is not None and is_use_hidden(Path(other.path))


def _is_lease_refused(path: Path, lease: int) -> bool:
    """Tell whether the kernel refuses a lease because somebody has the file open as the lease excludes."""
    return _lease_error(path, lease) == errno.EAGAIN and not _on_a_server(path)


def _lease_error(path: Path, lease: int, waits_s: Sequence[float] = _SCANNER_WAITS_S) -> int:
    """Ask for a lease and give it back; return the system's number of an error, 0 for none.

    A refusal counts after as many more tries as there are waits.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return error.errno or 0
    # Whoever opens it to write meanwhile waits for us, and the kernel tells this thread so by a signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO})
    try:
        fcntl.fcntl(file, _F_SETOWN_EX, struct.pack("ii", _F_OWNER_TID, threading.get_native_id()))
        return _refusal(file, lease, waits_s)
    finally:
        os.close(file)
        while signal.sigtimedwait({signal.SIGIO}, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGIO})


def _refusal(file: int, lease: int, waits_s: Sequence[float]) -> int:
    for wait_s in (*waits_s, None):
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, lease)
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                return error.errno or 0
        else:
            return 0
        if wait_s is not None:
            time.sleep(wait_s)
    return errno.EAGAIN


def _on_a_server(path: Path) -> bool:
    """Clients of NFS and SMB refuse a lease on every file for which their server gave no delegation."""
    mount = mount_of(path)
    return mount is not None and mount.kind in NO_LEASES


def tree_uses(anchor: Path, host: Snapshot, most: int = 20) -> list[str]:
    """Evidence that somebody uses a file below a directory: its name there and how, `most` of them.

    By inode, so that a file that was linked into the tree is found. Does not enter other file systems.
    """
    used = {inode for device, inode in host.file_uses if device}
    evidence: list[str] = []
    below = user_space_mounts.names_below(anchor)
    places: list[tuple[Path, Callable[[Path], list[Use]]]]
    places = [(anchor, lambda path: _uses_by_this_name(path, host))]
    places += [(one, lambda path: _uses_below(path, below.mounts, host)) for one in below.names]
    for place, uses in places:
        for entry in _files_below(place):
            if entry.inode() in used or host.has_mounted_images:
                evidence += [f"{entry.path}: {use.text}" for use in uses(Path(entry.path))]
            if len(evidence) >= most:
                break
    return evidence[:most]


def keys(path: Path, host: Snapshot) -> list[Key]:
    """All keys under which a file may be known: its own, the kernel's, and those through overlays."""
    try:
        status = path.stat()
    except OSError:
        return []
    key = open_files.key_of_status(status)
    if key is None:
        return []
    all_keys = [key]
    mount = mount_of(path)
    if mount is not None:
        # Where a file system has several devices, as subvolumes of btrfs, locks know the first.
        all_keys.append((mount.device, status.st_ino))
    return list(dict.fromkeys([*all_keys, *_overlaid_keys(path, host)]))


def _overlaid_keys(path: Path, host: Snapshot) -> list[Key]:
    """Return the keys of a file on the other side of overlays."""
    real = os.path.realpath(path)
    overlays = (one for one in host.mounts if one.kind == "overlay")
    beside = (key_of(Path(other)) for overlay in overlays for other in _through(overlay, real))
    return [one for one in beside if one is not None]


def _through(overlay: Mount, real: str) -> list[str]:
    """Return the names of a file on the other side of an overlay."""
    options = [word.partition("=") for word in overlay.super_options.split(",")]
    directories = [
        value.split(":") for name, _, value in options if name.startswith(("upperdir", "lowerdir"))
    ]
    layers = [layer for one in directories for layer in one if layer.startswith("/")]
    if real.startswith(overlay.point.rstrip("/") + "/"):
        rest = real[len(overlay.point.rstrip("/")) :]
        return [layer + rest for layer in layers if os.path.lexists(layer + rest)]
    return [overlay.point + real[len(layer) :] for layer in layers if real.startswith(layer + "/")]


def _is_swapped_to(path: Path, host: Snapshot) -> bool:
    """Ask the kernel, which knows it by inode: it refuses even a write of no bytes to swap (ETXTBSY)."""
    if not host.has_swap:
        return False
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.pwrite(file, b"", 0)
        except OSError as error:
            return error.errno == errno.ETXTBSY
        finally:
            os.close(file)
    return False


def _member_uses(device: BlockDevice, host: Snapshot, but: BlockDevice | None = None) -> list[str]:
    """Return uses of a device, and what is built on it `but` the one that is asked about."""
    name = device.name
    evidence = _own_uses(device, host)
    evidence += [f"{name} is held by {_describe(one)}" for one in device.holders() if one != but]
    over = [loop for backing, loop in host.loops if backing == (0, device.number)]
    return evidence + [f"{name} backs {loop.name}" for loop in over if loop != but]


def _own_uses(device: BlockDevice, host: Snapshot) -> list[str]:
    number, name = device.number, device.name
    mounted = [mount for mounted, mount in host.mounted_devices if mounted == number]
    evidence = [f"{name} is mounted at {mount.point} ({mount.kind})" for mount in mounted]
    evidence += [f"{name} is used as swap" for key, _ in host.swaps if key == (0, number)]
    evidence += [f"{name} belongs to the mounted btrfs {volume}" for volume in _btrfs(device, host.sys)]
    return evidence + [f"{name}: {use.text}" for use in host.users.get((0, number), [])]


def _btrfs(device: BlockDevice, sys: Path) -> list[str]:
    """Only one member of a mounted btrfs is in mountinfo; all of them are in sysfs."""
    links = (sys / "fs" / "btrfs").glob("*/devices/*")
    return [link.parent.parent.name for link in links if link.name == device.name]


def _same_backing(device: BlockDevice, host: Snapshot) -> list[BlockDevice]:
    """Other loop devices over the same file: writing here is writing there."""
    disk = device.disk()
    disk_keys = [key for key, loop in host.loops if loop == disk and key is not None]
    others = [loop for key, loop in host.loops if key in disk_keys and loop != disk]
    return [one for loop in others for one in (loop, *above(loop))]


def _describe(device: BlockDevice) -> str:
    name = device.attribute("dm/name")
    level = device.attribute("md/level")
    return device.name + (f" ({name})" if name else f" (md {level})" if level else "")


def _claimed(path: Path, device: BlockDevice | None = None) -> list[str]:
    """Ask the kernel: opening a block device with O_EXCL fails while anything claims it."""
    try:
        if device is not None and path.stat().st_rdev != device.number:
            return []
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            name = "it" if device is None else device.name
            return [say("plan.held.claimed", name=name)]
    return []


def _rdev(path: str) -> int:
    """Device number of a block device by path, 0 when it is none."""
    key = key_of(Path(path))
    return key[1] if key is not None and key[0] == 0 else 0
