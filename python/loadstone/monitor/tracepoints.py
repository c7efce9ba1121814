"""Samples of the kernel's tracepoints through perf events: a bounded number, and gone with the process.

Knows the kernel's interface (perf_event_open(2); Linux include/uapi/linux/perf_event.h). Knows no
tracepoint by name.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import platform
import re
import struct
import time
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from loadstone import cpu_list
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

TRACING: Final = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_ONLINE: Final = Path("/sys/devices/system/cpu/online")
_CALL: Final = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
"""Number of the system call perf_event_open, which libc has no function for."""
_TYPE_TRACEPOINT: Final = 2
_SAMPLE_TIME_AND_RAW: Final = 1 << 2 | 1 << 10
_DISABLED_WITH_OWN_CLOCK: Final = 1 << 0 | 1 << 25
_CLOSE_ON_EXEC: Final = 8
_ATTRIBUTE: Final = struct.Struct("=IIQQQQQIIQQQQIiQIHH")
_ENABLE: Final = 0x2400
_DISABLE: Final = 0x2401
_SET_OUTPUT: Final = 0x2405
_SET_FILTER: Final = 0x40082406
_HEAD_AT: Final = 1024
_TAIL_AT: Final = 1032
_RECORD: Final = struct.Struct("=IHH")
_SAMPLE: Final = struct.Struct("=QIH")
"""Time, size of the raw sample, and its first field: the tracepoint's number."""
_RAW_AT: Final = 12
_LOST: Final = struct.Struct("=QQ")
_TIME: Final = itemgetter(1)
_IS_LOST: Final = 2
_IS_SAMPLE: Final = 9
RING_PAGES: Final = 32
_FIELD: Final = re.compile(r"field:.*?(\w+)(?:\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);\s*signed:([01]);")
_FORMATS: Final = {(1, "0"): "B", (2, "0"): "H", (4, "0"): "I", (8, "0"): "Q", (4, "1"): "i", (8, "1"): "q"}


class Tracepoint(NamedTuple):
    """One tracepoint of this kernel, and what reads the fields that are wanted of its samples."""

    number: int
    reader: struct.Struct

    @classmethod
    def find(cls, name: str, fields: Sequence[str], places: Sequence[Path] = TRACING) -> Tracepoint | None:
        """Return a tracepoint, as `block/block_io_start`; None where the kernel has or shows none.

        `fields` in the order of their places, which the kernel says (`format`); numbers only.
        """
        for place in places:
            with contextlib.suppress(OSError):
                text = (place / "events" / name / "format").read_text()
                known = {one[0]: one[1:] for one in _FIELD.findall(text)}
                number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
                if number is not None and known.keys() >= set(fields):
                    return cls(int(number[1]), _reader([known[field] for field in fields]))
        return None


class TracedEvent(NamedTuple):
    """One event: its tracepoint's number, CLOCK_MONOTONIC in ns, and the fields that are wanted."""

    number: int
    time_ns: int
    fields: tuple[int, ...]


def _reader(fields: Sequence[tuple[str, str, str]]) -> struct.Struct:
    text, at = "=", 0
    for offset, size, signed in fields:
        text += f"{int(offset) - at}x{_FORMATS[int(size), signed]}"
        at = int(offset) + int(size)
    return struct.Struct(text)


class _Ring:
    """The samples of all tracepoints on one CPU."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, (1 + RING_PAGES) * mmap.PAGESIZE)
        self._size = RING_PAGES * mmap.PAGESIZE

    def close(self) -> None:
        self._map.close()

    def take(self) -> bytes:
        """Return the records that came since the last time, and make room."""
        (head,) = struct.unpack_from("=Q", self._map, _HEAD_AT)
        (tail,) = struct.unpack_from("=Q", self._map, _TAIL_AT)
        # A system call between the two reads: what the kernel wrote before `head` is there.
        os.getppid()
        begin, end = tail % self._size, head % self._size
        data = mmap.PAGESIZE
        if begin <= end:
            records = self._map[data + begin : data + end]
        else:
            records = self._map[data + begin : data + self._size] + self._map[data : data + end]
        struct.pack_into("=Q", self._map, _TAIL_AT, head)
        return records


class Recorder:
    """Records tracepoints on every CPU that is online, while they are switched on."""

    def __init__(self, tracepoints: Sequence[Tracepoint], keep: str) -> None:
        """`keep`: which samples, as a filter of Documentation/trace/events.rst.

        Raises `OSError` where that is not permitted (CAP_PERFMON, or `perf_event_paranoid` below 0).
        """
        self._readers = {one.number: one.reader for one in tracepoints}
        self._fds: dict[int, list[int]] = {one.number: [] for one in tracepoints}
        self._rings: list[_Ring] = []
        try:
            for cpu in cpu_list.numbers(_ONLINE.read_text()):
                self._open(cpu, keep.encode() + b"\0")
        except BaseException:
            self.close()
            raise

    @property
    def cpus(self) -> int:
        """How many CPUs are recorded."""
        return len(self._rings)

    def _open(self, cpu: int, keep: bytes) -> None:
        first: int | None = None
        for number, fds in self._fds.items():
            fd = _perf_event_open(number, cpu)
            fds.append(fd)
            fcntl.ioctl(fd, _SET_FILTER, keep)
            if first is None:
                first = fd
                self._rings.append(_Ring(fd))
            else:
                fcntl.ioctl(fd, _SET_OUTPUT, first)

    def switch(self, number: int, *, on: bool) -> None:
        """Begin or end the recording of a tracepoint. A full buffer drops what comes."""
        for fd in self._fds[number]:
            fcntl.ioctl(fd, _ENABLE if on else _DISABLE, 0)

    def take(self) -> tuple[list[TracedEvent], int]:
        """Return the samples since the last time, in order of time, and how many were dropped."""
        samples: list[TracedEvent] = []
        lost = 0
        for ring in self._rings:
            lost += self._read(ring.take(), samples)
        samples.sort(key=_TIME)
        return samples, lost

    def _read(self, data: bytes, events: list[TracedEvent]) -> int:
        """Add the samples of one buffer; return how many were dropped."""
        at = lost = 0
        while at + _RECORD.size <= len(data):
            kind, _, size = _RECORD.unpack_from(data, at)
            body = at + _RECORD.size
            if kind == _IS_SAMPLE:
                time_ns, _, number = _SAMPLE.unpack_from(data, body)
                fields = self._readers[number].unpack_from(data, body + _RAW_AT)
                events.append(TracedEvent(number, time_ns, fields))
            elif kind == _IS_LOST:
                lost += _LOST.unpack_from(data, body)[1]
            at += size
        return lost

    def close(self) -> None:
        """End; the kernel forgets the events with their descriptors."""
        for ring in self._rings:
            ring.close()
        for fds in self._fds.values():
            while fds:
                os.close(fds.pop())
        self._rings.clear()


def _perf_event_open(number: int, cpu: int) -> int:
    call = _CALL.get(platform.machine())
    if call is None:
        raise OSError(say("monitor.no_perf_events", machine=platform.machine()))
    attribute = _ATTRIBUTE.pack(
        _TYPE_TRACEPOINT,
        _ATTRIBUTE.size,
        number,
        1,  # every event is a sample
        _SAMPLE_TIME_AND_RAW,
        0,
        _DISABLED_WITH_OWN_CLOCK,
        *[0] * 7,
        time.CLOCK_MONOTONIC,
        *[0] * 4,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.syscall(call, attribute, -1, cpu, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return fd
