"""A directory whose file system can be told to stop answering: a FUSE server in a process of its own.

Kept in memory: files, directories, extended attributes are refused. `Hanging.stop` lets the server
take requests and never answer them, so that whoever waits for one cannot be killed. Knows
`linux/fuse.h` (7.31) as far as it takes; needs root and `/dev/fuse`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import stat
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

IN = struct.Struct("<IIQQIIIHH")
OUT = struct.Struct("<IiQ")
DETACH = 2
libc = ctypes.CDLL(None, use_errno=True)
SILENT = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET: nobody waits for an answer


@dataclass
class Node:
    """A file or directory."""

    mode: int
    content: bytearray = field(default_factory=bytearray)
    entries: dict[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Faults:
    """What the file system gets wrong."""

    unreadable: tuple[int, ...] = ()
    """Offsets of blocks of 4 KiB that cannot be read, in every file."""
    tells_holes: bool = False
    """Says that no file has any data, as ZFS did of what was just written (OpenZFS issue 15526)."""


class Server:
    """Answers until it is told not to (SIGUSR1), or until it has answered so many reads."""

    def __init__(self, device: int, *, reads: int | None, log: Path | None, faults: Faults) -> None:
        self.faults = faults
        self.log = None if log is None else log.open("a", buffering=1)
        self.device = device
        self.nodes = {1: Node(stat.S_IFDIR | 0o755)}
        self.hangs = False
        self.reads = reads
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "hangs", True))

    def serve(self) -> None:
        doing: dict[int, Callable[[int, bytes], bytes]] = {
            1: self.lookup, 3: self.getattr, 4: self.setattr, 9: self.mkdir, 10: self.unlink, 11: self.unlink,
            12: self.rename, 14: self.open, 15: self.read, 16: self.write, 17: self.statfs, 18: self.nothing,
            20: self.nothing, 25: self.nothing, 26: self.init, 27: self.open, 28: self.readdir,
            29: self.nothing, 30: self.nothing, 34: self.nothing, 35: self.create,
            43: self.nothing, 45: self.rename2, 46: self.lseek,
        }  # fmt: skip
        while True:
            try:
                request = os.read(self.device, (1 << 20) + 4096)
            except InterruptedError:
                continue
            except OSError:
                return
            _, code, unique, node, _, _, asking, *_ = IN.unpack_from(request)
            if self.log is not None and code not in SILENT:
                self.log.write(f"{asking} {code}\n")
            if code in SILENT or self.hangs:
                continue
            try:
                number, body = 0, doing[code](node, request[IN.size :])
            except KeyError:
                number, body = errno.ENOSYS if code not in doing else errno.ENOENT, b""
            except OSError as error:
                number, body = error.errno or errno.EIO, b""
            if code == 15 and self.reads is not None:
                self.reads -= 1
                if self.reads < 0:
                    self.hangs = True
                    continue
            with contextlib.suppress(OSError):
                os.write(self.device, OUT.pack(OUT.size + len(body), -number, unique) + body)

    def attributes(self, number: int) -> bytes:
        node = self.nodes[number]
        size = len(node.content)
        return struct.pack(
            "<6Q10I", number, size, size // 512, 0, 0, 0, 0, 0, 0, node.mode, 1, 0, 0, 0, 4096, 0
        )

    def entry(self, number: int) -> bytes:
        # Nothing is kept by the kernel: it asks each time.
        return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.attributes(number)

    def init(self, _node: int, _body: bytes) -> bytes:
        return struct.pack("<IIIIHHIIHH8I", 7, 31, 0, 0, 64, 64, 1 << 17, 1, 0, 0, *[0] * 8)

    def lookup(self, node: int, body: bytes) -> bytes:
        return self.entry(self.nodes[node].entries[body.rstrip(b"\0")])

    def getattr(self, node: int, _body: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self.attributes(node)

    def setattr(self, node: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        if valid & 8:
            content = self.nodes[node].content
            del content[size:]
            content.extend(bytes(size - len(content)))
        return self.getattr(node, b"")

    def add(self, node: int, name: bytes, mode: int) -> int:
        number = max(self.nodes) + 1
        self.nodes[number] = Node(mode)
        self.nodes[node].entries[name] = number
        return number

    def mkdir(self, node: int, body: bytes) -> bytes:
        mode = struct.unpack_from("<I", body)[0]
        return self.entry(self.add(node, body[8:].rstrip(b"\0"), stat.S_IFDIR | mode))

    def create(self, node: int, body: bytes) -> bytes:
        _, mode = struct.unpack_from("<II", body)
        return self.entry(self.add(node, body[16:].rstrip(b"\0"), mode)) + self.open(0, b"")

    def unlink(self, node: int, body: bytes) -> bytes:
        del self.nodes[node].entries[body.rstrip(b"\0")]
        return b""

    def rename(self, node: int, body: bytes, head: int = 8) -> bytes:
        (to,) = struct.unpack_from("<Q", body)
        old, new = body[head:].rstrip(b"\0").split(b"\0")
        self.nodes[to].entries[new] = self.nodes[node].entries.pop(old)
        return b""

    def rename2(self, node: int, body: bytes) -> bytes:
        return self.rename(node, body, 16)

    def open(self, _node: int, _body: bytes) -> bytes:
        return struct.pack("<QII", 0, 1, 0)

    def read(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        if any(offset < at + 4096 and at < offset + size for at in self.faults.unreadable):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return bytes(self.nodes[node].content[offset : offset + size])

    def lseek(self, _node: int, _body: bytes) -> bytes:
        raise OSError(errno.ENXIO if self.faults.tells_holes else errno.ENOSYS, "no data")

    def write(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        content = self.nodes[node].content
        content.extend(bytes(max(0, offset + size - len(content))))
        content[offset : offset + size] = body[40 : 40 + size]
        return struct.pack("<II", size, 0)

    def statfs(self, _node: int, _body: bytes) -> bytes:
        return struct.pack("<5Q10I", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096, *[0] * 7)

    def readdir(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        made = b""
        for at, (name, number) in enumerate(self.nodes[node].entries.items()):
            one = struct.pack("<QQII", number, at + 1, len(name), 0) + name
            one += bytes(-len(one) % 8)
            if at >= offset and len(made) + len(one) <= size:
                made += one
        return made

    def nothing(self, _node: int, _body: bytes) -> bytes:
        return b""


@dataclass(frozen=True)
class Hanging:
    """A mounted directory and its server."""

    path: Path
    pid: int

    def stop(self) -> None:
        """Answer nothing any more."""
        os.kill(self.pid, signal.SIGUSR1)


@contextlib.contextmanager
def mounted(
    path: Path, *, reads: int | None = None, log: Path | None = None, faults: Faults = Faults()
) -> Iterator[Hanging]:
    """A directory in memory at `path`; with `reads` it stops answering after so many.

    `log` gets a line for each request: which process asked, and the number of the operation.
    """
    path.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40755,user_id=0,group_id=0,allow_other"
    if libc.mount(b"hanging", os.fsencode(path), b"fuse", 0, options.encode()) != 0:
        number = ctypes.get_errno()
        os.close(device)
        raise OSError(number, os.strerror(number), str(path))
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            server = Server(device, reads=reads, log=log, faults=faults)
            os.write(tell, b"1")
            server.serve()
        finally:
            os._exit(0)
    os.close(device)
    os.read(ready, 1)
    os.close(ready)
    os.close(tell)
    try:
        yield Hanging(path, pid)
    finally:
        # The end of the server ends the connection, and whoever waited gets an error.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        libc.umount2(os.fsencode(path), DETACH)
