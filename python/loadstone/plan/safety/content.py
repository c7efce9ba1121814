"""Whether a file or device holds anything at all.

Anything but zeros and holes may be missed by somebody: random bytes are what a backup, a key and a
video look like. Knows how to look: all of it where that takes seconds, else the places where
structures stand and a sample whose chance of missing a share is known (`sampling`). Reads past the
page cache where that is possible, so that nothing is evicted or warmed and the device itself is seen.
Knows no file system; `signatures` does.
"""

from __future__ import annotations

import contextlib
import errno
import math
import mmap
import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from loadstone import holes, uncaught
from loadstone.messages import say
from loadstone.plan.safety import sampling, structure_offsets
from loadstone.plan.safety.sampling import BLOCK_BYTES, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

CHUNK_BYTES: Final = 1 << 20
ALIGN_BYTES: Final = 4096
WHOLE_BYTES: Final = 8 << 30
"""Up to here all of it is read, unless that takes longer than `WHOLE_S`."""
WHOLE_S: Final = 10.0
HOLES_READ_BYTES: Final = 64 << 20
"""Up to here holes are read as well: the first pass would read as much."""
TRIAL_S: Final = 1.0
PASSES_S: Final = 30.0
"""No pass begins later than this."""
FIRST_PASS_S: Final = 120.0
"""The first pass, without which nothing is known, may take so long."""
READERS: Final = 8
SILENT_S: Final = 20.0
TOLD_S: Final = 1.0
RANDOM_BITS: Final = 0.97
"""Entropy of a block that looks random, as a share of the most its length allows (4,096 random bytes
have 7.95 bits each: 8 less 255 / (2 x 4096 x ln 2), Miller 1955)."""
_ZEROS: Final = bytes(CHUNK_BYTES)


@dataclass(frozen=True, slots=True)
class ContentFound:
    """What a look found. `held`: None when nothing but zeros was seen."""

    held: str | None
    samples: int = 0
    """Blocks drawn at random; 0 when all of it was read."""
    silent: bool = False
    """An I/O did not come back."""


class BlockReader:
    """An open file or device, read in aligned pieces past the page cache where that works."""

    def __init__(self, path: Path) -> None:
        # Without O_NONBLOCK a FIFO or a modem would be waited for.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        self._cached = os.open(path, flags)
        try:
            self.size_bytes = os.lseek(self._cached, 0, os.SEEK_END)
        except OSError:
            os.close(self._cached)
            raise
        self._direct: int | None = None
        with contextlib.suppress(OSError):
            self._direct = os.open(f"/proc/self/fd/{self._cached}", flags | os.O_DIRECT)
        self._memory = threading.local()

    def __enter__(self) -> BlockReader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._cached)
        if self._direct is not None:
            os.close(self._direct)

    @property
    def descriptor(self) -> int:
        """Of the file, for questions about it."""
        return self._cached

    def read(self, offset: int, length: int) -> bytes:
        """Read from an offset that is a multiple of `ALIGN_BYTES`, less only at the end. Raises OSError."""
        block = self.read_some(offset, length)
        until = min(length, self.size_bytes - offset)
        while len(block) < until:
            # A read ends early, and without an error, where a later part of it has one (read(2)).
            rest = os.pread(self._cached, until - len(block), offset + len(block))
            if not rest:
                raise OSError(errno.EIO, say("refusals.target.ends_early", size_bytes=offset + len(block)))
            block += rest
        return block

    def read_some(self, offset: int, length: int) -> bytes:
        """Do as `read`, but end before a part that cannot be read. Raises OSError when it is the first."""
        if self._direct is None:
            return os.pread(self._cached, length, offset)
        buffer = self._buffer()
        room = -(-length // ALIGN_BYTES) * ALIGN_BYTES
        try:
            done = os.preadv(self._direct, [memoryview(buffer)[:room]], offset)
        except OSError:
            # Not aligned enough for this one. What cannot be read fails again.
            return os.pread(self._cached, length, offset)
        return buffer[: min(done, length)]

    def _buffer(self) -> mmap.mmap:
        buffer = getattr(self._memory, "buffer", None)
        if buffer is None:
            buffer = self._memory.buffer = mmap.mmap(-1, CHUNK_BYTES + ALIGN_BYTES)
        return buffer

    def space(self) -> Space:
        """Return the parts that may hold something: all of a device, the data of a sparse file."""
        return Space.of(holes.data(self._cached, self.size_bytes))

    def backed(self) -> Space | None:
        """Return the parts that the file, or a loop device's, has data for; None where nobody knows."""
        parts = holes.below(self._cached, self.size_bytes)
        space = self.space() if parts is None else Space.of(parts)
        return None if space.size_bytes == self.size_bytes else space


def look(path: Path, tell: Callable[[float], None] | None = None) -> ContentFound:
    """Look for anything but zeros. Raises `OSError` when the path cannot be opened."""
    with BlockReader(path) as reader:
        this = _Look(reader, tell)
        return replace(this.go(), silent=this.silent)


@dataclass
class _Look:
    """One look: reads until something is found, all is read or the time is over."""

    reader: BlockReader
    tell: Callable[[float], None] | None
    _held: tuple[int, str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _read_bytes: int = 0
    silent: bool = False
    _share: float = 0.0
    _told_s: float = field(default_factory=time.monotonic)

    def go(self) -> ContentFound:
        size = self.reader.size_bytes
        space = Space.of([(0, size)] if size else [])
        if not size:
            return ContentFound(None)
        below = self.reader.backed()
        # Nearly everything has something at its beginning.
        first = below.parts[0][0] // ALIGN_BYTES * ALIGN_BYTES if below is not None and below.parts else 0
        self._one_after_another(iter([first]), BLOCK_BYTES, math.inf)
        passes: Sequence[int] = sampling.PASSES
        if below is not None and size > HOLES_READ_BYTES:
            # What a file says of its holes comes first, and is not believed alone.
            whole = not below.size_bytes or (below.size_bytes <= WHOLE_BYTES and self._whole(below))
            if not whole and self._held is None:
                self._sampled(below, size)
            passes = sampling.PASSES[:1]
        elif size <= WHOLE_BYTES and self._held is None and self._whole(space):
            return ContentFound(self._held[1] if self._held else None)
        return ContentFound(self._held[1]) if self._held else self._sampled(space, size, passes)

    def _whole(self, space: Space) -> bool:
        """Read all of it; False when that would take too long."""
        began_s = time.monotonic()
        pieces = space.pieces(CHUNK_BYTES)
        while self._held is None:
            done = self._ended(pieces, CHUNK_BYTES, time.monotonic() + TRIAL_S)
            if done or self._held is not None:
                return True
            share = self._read_bytes / space.size_bytes
            self._tell_progress(share)
            if (time.monotonic() - began_s) > WHOLE_S * max(share, 0.05):
                return False
        return True

    def _sampled(self, space: Space, size: int, passes: Sequence[int] = sampling.PASSES) -> ContentFound:
        draw = random.SystemRandom()
        samples = 0
        began_s = time.monotonic()
        for strata in (0, *passes):
            if samples and time.monotonic() - began_s > PASSES_S:
                break
            if strata:
                wanted: Iterable[int] = sampling.blocks(space, strata, draw)
            else:
                wanted = (place // ALIGN_BYTES * ALIGN_BYTES for place in _known(size, space))
            until_s = began_s + (FIRST_PASS_S if not samples else PASSES_S)
            done = self._ended(iter(wanted), BLOCK_BYTES, until_s)
            if self._held is not None:
                return ContentFound(self._held[1], samples)
            if not done:
                break
            samples += strata
            self._tell_progress(samples / sum(passes))
        if not samples:
            return ContentFound(
                say("plan.content.slow", places=str(sampling.PASSES[0]), waited=f"{FIRST_PASS_S:.0f}")
            )
        return ContentFound(None, samples)

    def _ended(self, offsets: Iterator[int], length: int, until_s: float) -> bool:
        """Read at all offsets; whether that came to an end before the time was over."""
        outcomes: list[bool] = []
        shared = _SharedIterator(offsets)

        def work() -> None:
            try:
                outcomes.append(self._one_after_another(shared, length, until_s))
            except Exception as error:  # noqa: BLE001 # what this reader took, nobody has seen
                self._note_evidence(-1, say("plan.content.no_look", reason=uncaught.words(error)))

        readers = _started(work)
        seen_bytes, since_s = self._read_bytes, time.monotonic()
        for reader in readers:
            while reader.is_alive():
                reader.join(0.2)
                self._tell_progress(self._share)
                if self._read_bytes != seen_bytes:
                    seen_bytes, since_s = self._read_bytes, time.monotonic()
                elif time.monotonic() - since_s > SILENT_S:
                    self.silent = True
                    self._note_evidence(-1, say("plan.content.silent", waited=f"{SILENT_S:.0f}"))
                    return False
        return len(outcomes) == max(1, len(readers)) and all(outcomes)

    def _one_after_another(self, offsets: Iterator[int], length: int, until_s: float) -> bool:
        while self._held is None:
            # The time first: an offset that was taken is read.
            if time.monotonic() > until_s:
                return False
            offset = next(offsets, None)
            if offset is None:
                return True
            self._see(offset, length)
        return True

    def _see(self, offset: int, length: int) -> None:
        try:
            block = self.reader.read(offset, length)
        except OSError as error:
            reason = say("plan.content.unreadable", offset=str(offset), reason=error.strerror)
            self._note_evidence(offset, reason)
            return
        with self._lock:
            self._read_bytes += len(block)
        if block != _ZEROS[: len(block)]:
            at = len(block) - len(block.lstrip(b"\0"))
            content = kind(block[at : at + ALIGN_BYTES].rstrip(b"\0"))
            self._note_evidence(
                offset + at, say("plan.content.holds", content=content, offset=str(offset + at))
            )

    def _note_evidence(self, offset: int, text: str) -> None:
        with self._lock:
            if self._held is None or offset < self._held[0]:
                self._held = (offset, text)

    def _tell_progress(self, share: float) -> None:
        self._share = share
        if self.tell is not None and time.monotonic() - self._told_s >= TOLD_S:
            self._told_s = time.monotonic()
            self.tell(min(1.0, share))


def _started(work: Callable[[], None]) -> list[threading.Thread]:
    """Let as many threads work as there may be; where there may be none, do it here."""
    readers: list[threading.Thread] = []
    for _ in range(READERS):
        try:
            reader = threading.Thread(target=work, daemon=True)
            reader.start()
        except (RuntimeError, MemoryError):
            break
        readers.append(reader)
    if not readers:
        work()
    return readers


class _SharedIterator:
    """An iterator that several threads take from."""

    def __init__(self, inner: Iterator[int]) -> None:
        self._inner = inner
        self._lock = threading.Lock()

    def __iter__(self) -> _SharedIterator:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._inner)


def _known(size_bytes: int, space: Space) -> Iterator[int]:
    """Yield where structures stand: head, tail, copies of superblocks; of a sparse file in its data."""
    head = range(0, min(structure_offsets.HEAD_BYTES, size_bytes), BLOCK_BYTES)
    tail = range(
        max(0, size_bytes - structure_offsets.TAIL_BYTES) // BLOCK_BYTES * BLOCK_BYTES,
        size_bytes,
        BLOCK_BYTES,
    )
    yield from head
    if space.size_bytes == size_bytes:
        yield from structure_offsets.places(size_bytes)
    else:
        # Every stretch of data has a beginning.
        yield from (offset for offset, _ in space.parts[: sampling.SAMPLES])
    yield from tail


def kind(block: bytes) -> str:
    """Say what a block looks like."""
    printable = sum(32 <= byte != 127 or byte in (9, 10, 13) for byte in block)
    if printable > 0.95 * len(block):
        return "text"
    if len(block) >= 64:
        counts = Counter(block)
        bits = -sum(count / len(block) * math.log2(count / len(block)) for count in counts.values())
        if bits >= RANDOM_BITS * min(8.0, math.log2(len(block))):
            return say("plan.held.random_bytes")
    return "structured data"
