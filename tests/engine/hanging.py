"""A file that serves some reads and then never answers again, as a dead device does.

A FUSE file system of one file, spoken to directly (`linux/fuse.h`, protocol 7.31). It needs
root and `/dev/fuse`. Knows nothing of the engine.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_IN = struct.Struct("<IIQQIIIHH")
_OUT = struct.Struct("<IiQ")
_FORGET, _GETATTR, _OPEN, _READ, _RELEASE, _INIT, _INTERRUPT = 2, 3, 14, 15, 18, 26, 36
_DIRECT_IO = 1
_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> str | None:
    """Why such a file cannot be had here; `None` when it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse"
    return None


@contextmanager
def hanging_file(path: Path, size_bytes: int, good_reads: int, *, read_on: bool = False) -> Iterator[Path]:
    """A file at `path` that answers `good_reads` reads (with zeros) and nothing after them.

    With `read_on` the requests after them are taken and never answered: who waits for one of them
    cannot be killed.
    """
    path.write_bytes(b"")
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=100644,user_id=0,group_id=0,allow_other"
    if _libc.mount(b"hanging", os.fsencode(path), b"fuse", 0, options.encode()) != 0:
        number = ctypes.get_errno()
        os.close(device)
        raise OSError(number, os.strerror(number), str(path))
    ended = threading.Event()
    server = threading.Thread(
        target=_serve, args=(device, ended, size_bytes, good_reads, read_on), daemon=True
    )
    server.start()
    try:
        # The kernel learns here that there is nothing to flush at a close.
        os.close(os.open(path, os.O_RDONLY))
        yield path
    finally:
        _libc.umount2(os.fsencode(path), _DETACH)
        # Closed while the thread reads, its number would soon stand for somebody else's file.
        ended.set()
        server.join()
        os.close(device)


def _serve(device: int, ended: threading.Event, size_bytes: int, good_reads: int, read_on: bool) -> None:
    left = good_reads
    while not ended.is_set() and (left > 0 or read_on):
        if not select.select([device], [], [], 0.05)[0]:
            continue
        try:
            request = os.read(device, 1 << 17)
        except OSError:
            return  # unmounted
        _, operation, unique, *_ = _IN.unpack_from(request)
        if operation in (_FORGET, _INTERRUPT):
            continue
        if left <= 0:
            continue
        number, body = _answer(operation, request[_IN.size :], size_bytes, 3600)
        left -= operation == _READ
        os.write(device, _OUT.pack(_OUT.size + len(body), -number, unique) + body)


def _answer(operation: int, argument: bytes, size_bytes: int, valid_s: int) -> tuple[int, bytes]:
    if operation == _INIT:
        return 0, struct.pack("<IIIIHHIIHH8I", 7, 31, 0, 0, 64, 64, 1 << 16, 1, 0, 0, *[0] * 8)
    if operation == _GETATTR:
        attributes = struct.pack("<6Q10I", 1, size_bytes, 0, 0, 0, 0, 0, 0, 0, 0o100644, 1, 0, 0, 0, 4096, 0)
        return 0, struct.pack("<QII", valid_s, 0, 0) + attributes
    if operation == _OPEN:
        return 0, struct.pack("<QII", 1, _DIRECT_IO, 0)
    if operation == _READ:
        return 0, bytes(struct.unpack_from("<QQI", argument)[2])
    if operation == _RELEASE:
        return 0, b""
    return errno.ENOSYS, b""
