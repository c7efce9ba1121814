"""What serves a file system in user space: its processes, and the hosts that they have connections to.

Knows /dev/fuse among the descriptors of /proc (fuse(4)), processes' children, and TCP's sockets in
/proc/PID/net/tcp and tcp6 (proc_net_tcp, Documentation/networking). Does not know what they talk about.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.path.mounts import PROC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadstone.path.mounts import Mount

DEVICE: Final = "/dev/fuse"
CONNECTION: Final = re.compile(r"^fuse_connection:\s*(\d+)", re.MULTILINE)
_SOCKET: Final = re.compile(r"socket:\[(\d+)\]")
_ESTABLISHED: Final = "01"


@dataclass(frozen=True, slots=True)
class MountServer:
    """The programs that serve a mount, and their connections: how many to which address."""

    programs: tuple[str, ...]
    peers: dict[str, int]


def server(mount: Mount, proc: Path = PROC) -> MountServer | None:
    """Return who serves a mount; None where no process is seen to, as in another PID namespace."""
    numbers = [number for number, served in servers(proc).items() if _serves(proc / number, served, mount)]
    if not numbers:
        return None
    peers: Counter[str] = Counter()
    for process in _with_children(numbers, proc):
        if _namespace(process) == _namespace(proc / "self"):
            peers.update(peers_of(process))
    return MountServer(tuple(sorted({_name(proc / one) for one in numbers})), dict(sorted(peers.items())))


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
