"""A disk in memory that damages what it keeps: a plugin of nbdkit (nbdkit-python-plugin(3)).

Knows one kind of damage at a time. It writes every injection to a log, a line each: the offset of
the block, and for a misdirected write also where it went. Nothing outside this file decides what
is damaged, so whoever verifies can be held against the log.

A block is damaged at most once. A misdirected write goes to a place that is written no more, else
its traces would be gone before anybody looks; a read is stale only where the block was read before,
else nobody could tell it from a lost write.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, TextIO

API_VERSION = 2
BLOCK = 4096
PROBED = 256
"""Blocks at both ends where the kernel and tools look for partitions and file systems."""


class FaultyDisk:
    """The disk and what is to happen to it."""

    def __init__(self) -> None:
        self.kind = ""
        self.size = 64 << 20
        self.after = 0
        """Bytes written before the first injection of a damaged write."""
        self.share = 0.1
        """Part of the blocks that are damaged."""
        self.log: TextIO
        self.moved = 0

    def open(self) -> None:
        """Make the disk and choose the blocks that will be damaged."""
        blocks = self.size // BLOCK
        self.now = bytearray(self.size)
        self.before = bytearray(self.size)
        generator = random.Random(20260101)
        places = list(range(PROBED, blocks - PROBED))
        generator.shuffle(places)
        count = int(blocks * self.share)
        self.waiting = set(places[:count])
        self.sound = set(places[count : 3 * count])
        self.strays: list[int] = []
        """Sound blocks that were written since the damage began: nobody writes them again."""
        self.seen: set[int] = set()
        """Blocks read since they were written."""
        self.random = generator

    def note(self, offset: int, to: int | None = None) -> None:
        """Write an injection to the log."""
        self.log.write(f"{offset}\n" if to is None else f"{offset} {to}\n")
        self.log.flush()

    def read(self, offset: int, length: int) -> bytearray:
        """Return what is stored, or for a stale read what was stored before."""
        data = self.now[offset : offset + length]
        for at in range(0, length if self.kind == "stale_read" else 0, BLOCK):
            block = (offset + at) // BLOCK
            if block in self.waiting and block in self.seen and length - at >= BLOCK:
                self.waiting.discard(block)
                data[at : at + BLOCK] = self.before[offset + at : offset + at + BLOCK]
                self.note(offset + at)
            self.seen.add(block)
        return data

    def write(self, data: Any, offset: int) -> None:
        """Store a write, or damage it."""
        armed = self.kind != "stale_read" and self.moved >= self.after
        self.moved += len(data)
        self.before[offset : offset + len(data)] = self.now[offset : offset + len(data)]
        for at in range(0, len(data), BLOCK):
            block = (offset + at) // BLOCK
            piece = bytes(data[at : at + BLOCK])
            self.seen.discard(block)
            if armed and block in self.waiting and self.can_damage(piece):
                self.waiting.discard(block)
                self.damage(block, piece)
                continue
            self.now[offset + at : offset + at + len(piece)] = piece
            if armed and block in self.sound:
                self.strays.append(block)

    def can_damage(self, piece: bytes) -> bool:
        """Whether it is a whole block and, for a misdirected write, there is a place to go to."""
        return len(piece) == BLOCK and (self.kind != "misdirected_write" or bool(self.strays))

    def damage(self, block: int, piece: bytes) -> None:
        """Do with a write of a block what its kind does."""
        start = block * BLOCK
        to = None
        if self.kind == "torn_write":
            self.now[start : start + BLOCK // 2] = piece[: BLOCK // 2]
        elif self.kind == "bit_flip":
            self.now[start : start + BLOCK] = piece
            self.now[start + self.random.randrange(BLOCK)] ^= 1 << self.random.randrange(8)
        elif self.kind == "zeroed_block":
            self.now[start : start + BLOCK] = bytes(BLOCK)
        elif self.kind == "misdirected_write":
            to = self.strays.pop() * BLOCK
            self.now[to : to + BLOCK] = piece
        # A lost write is not stored at all.
        self.note(start, to)


DISK = FaultyDisk()


def config(key: str, value: str) -> None:
    """Take an option."""
    if key == "log":
        DISK.log = Path(value).open("w")  # noqa: SIM115 - open as long as the disk
    elif key in ("size", "after"):
        setattr(DISK, key, int(value))
    elif key == "share":
        DISK.share = float(value)
    else:
        DISK.kind = value


def config_complete() -> None:
    """All options are known."""
    DISK.open()


def open(readonly: bool) -> int:  # noqa: A001, ARG001 - nbdkit's name
    """Open a connection: all of them share the disk."""
    return 1


def get_size(handle: int) -> int:  # noqa: ARG001 - nbdkit's
    """Size in bytes."""
    return DISK.size


def pread(handle: int, buf: Any, offset: int, flags: int) -> None:  # noqa: ARG001 - nbdkit's
    """Read into `buf`."""
    buf[:] = DISK.read(offset, len(buf))


def pwrite(handle: int, buf: Any, offset: int, flags: int) -> None:  # noqa: ARG001 - nbdkit's
    """Write from `buf`."""
    DISK.write(buf, offset)


def flush(handle: int, flags: int) -> None:
    """Nothing is volatile."""
