"""What serves a file system in user space: its processes, what they have open, and whom they talk to.

Knows /dev/fuse among the descriptors of /proc (fuse(4)), processes' children, TCP's sockets in
/proc/PID/net/tcp and tcp6 (proc_net_tcp, Documentation/networking), and how mounts that show a directory
name it (bindfs, mergerfs). Does not know what programs do with any of it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.path.block import BlockDevice
from loadstone.path.layers import IN_MEMORY
from loadstone.path.mounts import PROC, mount_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.path.mounts import Mount

DEVICE: Final = "/dev/fuse"
CONNECTION: Final = re.compile(r"^fuse_connection:\s*(\d+)", re.MULTILINE)
_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")
_FLAGS: Final = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)
_ESTABLISHED: Final = "01"
LEAST_IMAGE_BYTES: Final = 1 << 20
MERGERFS: Final = "fuse.mergerfs"
ALL_NAMES: Final = "user.mergerfs.allpaths"
"""Where mergerfs tells every name that a file has below."""


@dataclass(frozen=True, slots=True)
class MountServer:
    """The programs that serve a mount, and their connections: how many to which address."""

    programs: tuple[str, ...]
    peers: dict[str, int]
    opened: tuple[Path, ...]
    """Files and block devices that they read."""


def server(mount: Mount, proc: Path = PROC) -> MountServer | None:
    """Return who serves a mount; None where no process is seen to, as in another PID namespace."""
    numbers = [number for number, served in servers(proc).items() if _serves(proc / number, served, mount)]
    if not numbers:
        return None
    peers: Counter[str] = Counter()
    opened: set[Path] = set()
    for process in _with_children(numbers, proc):
        opened.update(opened_by(process))
        if _namespace(process) == _namespace(proc / "self"):
            peers.update(peers_of(process))
    programs = sorted({_name(proc / one) for one in numbers})
    return MountServer(tuple(programs), dict(sorted(peers.items())), tuple(sorted(opened)))


def stands_on(mount: Mount, path: Path, proc: Path = PROC) -> list[Path]:
    """Return what a file or directory of a mount stands on: names of this host, or a disk or image below.

    Empty where it is not known, or where the data are other hosts'. What its programs have open counts if it
    alone can hold the file; what of that is in memory may be their own cache. A mount that is one file is an
    export (nbdfuse, qemu-storage-daemon): its program may delay, limit or make up what it answers.
    """
    name = os.path.realpath(path)
    if mount.kind == "fuseblk" and Path(mount.source).is_block_device():
        return [Path(mount.source)]
    # `user@host:/directory` is not here, whatever has that name here.
    local = mount.kind == MERGERFS or all(one.startswith("/") for one in mount.source.split(":"))
    shown = [Path(one) for one in shown_by(mount, name)] if local else []
    lower = [one for one in shown if (one.is_file() or one.is_dir()) and not _is_on(one, mount, proc)]
    if lower:
        return lower
    known = None if str(mount.point) == name else server(mount, proc)
    if known is None or known.peers:
        return []
    least_bytes = max(path.stat().st_size if path.is_file() else 0, LEAST_IMAGE_BYTES)
    images = [one for one in known.opened if _size_bytes(one) >= least_bytes]
    return [] if len(images) != 1 or _in_memory(images[0], proc) else images


def _is_on(path: Path, mount: Mount, proc: Path) -> bool:
    own = mount_of(path, proc)
    return own is None or own.device == mount.device


def _in_memory(path: Path, proc: Path) -> bool:
    own = mount_of(path, proc)
    return not path.is_block_device() and (own is None or own.kind in IN_MEMORY)


def _size_bytes(path: Path) -> int:
    try:
        status = path.stat()
    except OSError:
        return 0  # It was removed meanwhile.
    device = BlockDevice.of_number(status.st_rdev) if stat.S_ISBLK(status.st_mode) else None
    return status.st_size if device is None else device.size_bytes


def shown_by(mount: Mount, name: str) -> list[str]:
    """Return the names that a file of a mount has in the directories that it shows; none where it shows none.

    `name` is the file's own, without symbolic links. Whether these names are there is not looked at.
    """
    # Another mount over it passes the question on.
    with contextlib.suppress(OSError):
        if mount.kind == MERGERFS:
            all_names = os.getxattr(name, ALL_NAMES).split(b"\0")
            return [os.fsdecode(one) for one in all_names if one]
    rest = mount.root.rstrip("/") + name[len(mount.point.rstrip("/")) :]
    return [place.rstrip("/") + rest for place in mount.source.split(":") if place.startswith("/")]


def opened_by(process: Path) -> Iterator[Path]:
    """Yield the files and block devices that a process has open for reading, under the names they have here.

    Logs, which are appended to, and what was removed are not among them.
    """
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                status, name = link.stat(), link.readlink()
                flags = _FLAGS.search((process / "fdinfo" / link.name).read_text())
                if not (stat.S_ISREG(status.st_mode) or stat.S_ISBLK(status.st_mode)) or flags is None:
                    continue
                how = int(flags[1], 8)
                if how & os.O_ACCMODE != os.O_WRONLY and not how & os.O_APPEND and name.samefile(link):
                    yield name


def servers(proc: Path = PROC) -> dict[str, set[int] | None]:
    """Return the numbers of the processes that serve mounts, and the `st_dev` of each.

    None where the kernel does not tell which.
    """
    mounts_of: dict[str, set[int] | None] = {}
    for process in (one for one in proc.iterdir() if one.name.isdecimal()):
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                if str(link.readlink()) != DEVICE:
                    continue
                connection = CONNECTION.search((process / "fdinfo" / link.name).read_text())
                served = mounts_of.setdefault(process.name, set())
                if connection is None or served is None:
                    mounts_of[process.name] = None
                else:
                    served.add(int(connection[1]))
    return mounts_of


def _serves(process: Path, served: set[int] | None, mount: Mount) -> bool:
    if served is not None:
        return mount.device in served
    # An older kernel does not say which, but most servers were called with the place.
    return str(mount.point).encode() in _read(process / "cmdline").split(b"\0")


def _with_children(numbers: list[str], proc: Path) -> Iterator[Path]:
    """Yield processes and what they started: a server may leave its connection to another program (ssh)."""
    waiting, passed = list(numbers), set(numbers)
    while waiting:
        process = proc / waiting.pop()
        yield process
        lists = [_read(one) for one in process.glob("task/*/children")]
        fresh = {number.decode() for one in lists for number in one.split()} - passed
        passed |= fresh
        waiting += sorted(fresh)


def peers_of(process: Path) -> Iterator[str]:
    """Yield the address at the other end of every TCP connection of a process."""
    sockets: set[str] = set()
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                if match := _SOCKET.fullmatch(str(link.readlink())):
                    sockets.add(match[1])
    for table in ("tcp", "tcp6") if sockets else ():
        for line in _read(process / "net" / table).decode(errors="replace").splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _ESTABLISHED and words[9] in sockets:
                yield address_of(words[2])


def address_of(text: str) -> str:
    """Return the address in `0100007F:1F90`: 32-bit words in the host's order (little-endian), and a port.

    Raises `ValueError` for what is none.
    """
    words = bytes.fromhex(text.partition(":")[0])
    packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    address = ipaddress.ip_address(packed)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)


def _namespace(process: Path) -> str | None:
    try:
        return str((process / "ns" / "net").readlink())
    except OSError:
        return None


def _name(process: Path) -> str:
    return _read(process / "comm").decode(errors="replace").strip()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
