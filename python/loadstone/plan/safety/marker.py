"""The mark of a file that holds nothing but what Loadstone wrote: an extended attribute.

A file with a valid mark may be written again without consent. The mark is bound to the inode (its
number, generation and birth), its file system, its only name, its length and its content. Of a file
up to `DIGEST_BYTES` the whole content is held against a digest. Of longer ones ctime has to do, which
nobody can set and every change moves: it must be what it was when the run that wrote the file ended, so
a long file is not known again after a rename. A clock that ticks slowly, a mapping into memory that
never is written back and a crash before ctime was on the disk are what only a digest shows.

While a run is under way the mark says `writing`, and is worth nothing: a run that was killed leaves a
file of which nobody knows who wrote it last. File systems without user attributes keep no mark; a run
of the same process knows the seal nevertheless.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from blake3 import blake3
from pydantic import TypeAdapter

from loadstone.messages import say
from loadstone.path import inode
from loadstone.plan.safety.content import CHUNK_BYTES, BlockReader

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME: Final = "user.loadstone"
FORMAT: Final = 2
DIGEST_BYTES: Final = 256 << 20
SLACK_NS: Final = 10_000_000
"""Between the last look at ctime and the change of it that writing the mark is."""
_TRIES: Final = 4
_TICK_NS: Final = 20_000_000
"""Timestamps of files may lag so far behind the clock: two ticks of 100 Hz."""
_SECOND_NS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Seal:
    """What a file was when the run that wrote it had ended."""

    inode: int
    generation: int | None
    born_ns: int | None
    file_system: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: tuple[int, int] | None
    """First and last that are its; None where timestamps are too coarse to tell, or can be set."""
    digest: str | None
    """Of all of its content; None for a file that is too long for it, or was too slow."""

    def flaw(self, reader: BlockReader) -> str | None:
        """Say why an open file is not what was sealed; None when it is."""
        now, status = _facts(reader), os.fstat(reader.descriptor)
        if (now.inode, now.generation, now.born_ns) != (self.inode, self.generation, self.born_ns):
            return say("plan.mark.copied")
        if now.file_system != self.file_system:
            return say("plan.mark.other_file_system")
        if status.st_nlink != 1:
            return say("plan.mark.hard_links")
        untouched = self.ctime_ns is not None and self.ctime_ns[0] <= status.st_ctime_ns <= self.ctime_ns[1]
        same = (now.size_bytes, now.mtime_ns) == (self.size_bytes, self.mtime_ns)
        if same and self.digest is None and not untouched:
            return say("plan.mark.renamed")
        if same and (self.digest is None or digest(reader) == self.digest):
            return None
        return say("plan.mark.changed")


@dataclass(frozen=True, slots=True)
class Mark:
    """What the attribute says. `laid_out`: false: a layout did not come to its end."""

    state: Literal["writing", "sealed", "unreadable"]
    laid_out: bool = True
    seal: Seal | None = None

    def flaw(self, reader: BlockReader) -> str | None:
        """Say why the mark is worth nothing; None when it is valid."""
        if self.state == "unreadable":
            return say("plan.mark.unreadable")
        if self.seal is None:
            return say("plan.mark.unfinished")
        return self.seal.flaw(reader)


@dataclass(frozen=True, slots=True)
class _Written:
    """What stands in the attribute."""

    format: Literal[2]
    laid_out: bool
    seal: Seal | None


_WRITTEN: Final = TypeAdapter(_Written)


def read(path: Path | int) -> Mark | None:
    """Return the mark of a file, `None` when it has none."""
    try:
        attribute = os.getxattr(path, NAME)
    except OSError:
        return None
    return parsed(attribute)


def parsed(content: bytes) -> Mark:
    """Return the mark in an attribute, which any user may have written."""
    try:
        written = _WRITTEN.validate_json(content, strict=True)
    except ValueError:
        return Mark("unreadable")
    return Mark("writing" if written.seal is None else "sealed", written.laid_out, written.seal)


def write(file: Path | int, mark: Mark) -> bool:
    """Mark a file; whether its file system can."""
    fields = {"format": FORMAT, "laid_out": mark.laid_out, "seal": mark.seal and asdict(mark.seal)}
    try:
        os.setxattr(file, NAME, json.dumps(fields, separators=(",", ":")).encode())
    except OSError:
        return False
    return True


def remove(file: Path | int) -> None:
    """Take a mark away."""
    with contextlib.suppress(OSError):
        os.removexattr(file, NAME)


def seal(reader: BlockReader, *, laid_out: bool, digest_until_s: float) -> Seal:
    """Seal an open file: mark it as what it is now, where its file system can.

    `settle` has to follow before anybody else changes it.
    """
    content = digest(reader, digest_until_s)
    ctime_tells = content is not None or _keeps_ctime(reader)
    facts = replace(_facts(reader), digest=content)
    writing = Mark("writing", laid_out)
    slack_ns = SLACK_NS
    for _ in range(_TRIES):
        marked = write(reader.descriptor, writing)
        first = os.fstat(reader.descriptor).st_ctime_ns
        if not marked:
            return replace(facts, ctime_ns=_telling(first, first))
        sealed = replace(facts, ctime_ns=_telling(first, first + slack_ns) if ctime_tells else None)
        write(reader.descriptor, Mark("sealed", laid_out, sealed))
        if os.fstat(reader.descriptor).st_ctime_ns <= first + slack_ns:
            return sealed
        slack_ns *= 4
    sealed = replace(facts, ctime_ns=None)
    write(reader.descriptor, Mark("sealed", laid_out, sealed))
    return sealed


def settle(seals: Iterable[Seal]) -> None:
    """Wait until whatever happens to the files gives them a ctime that is not their seal's."""
    last_ns = max((one.ctime_ns[1] for one in seals if one.ctime_ns is not None), default=0)
    left_ns = min(last_ns + _TICK_NS - time.time_ns(), _SECOND_NS)
    if left_ns > 0:
        time.sleep(left_ns / 1e9)


def digest(reader: BlockReader, until_s: float | None = None) -> str | None:
    """Return the digest of a file's content; None when it is too long, or cannot be read in time."""
    space = reader.space()
    if space.size_bytes > DIGEST_BYTES:
        return None
    content = blake3(reader.size_bytes.to_bytes(8, "little"))
    zeros = bytes(CHUNK_BYTES)
    try:
        for offset in space.pieces(CHUNK_BYTES):
            if until_s is not None and time.monotonic() > until_s:
                return None
            block = reader.read(offset, CHUNK_BYTES)
            if block != zeros[: len(block)]:  # A hole that was filled with zeros is no change.
                content.update(offset.to_bytes(8, "little"))
                content.update(block)
    except OSError:
        return None
    return content.hexdigest()


def _facts(reader: BlockReader) -> Seal:
    status = os.fstat(reader.descriptor)
    return Seal(
        inode=status.st_ino,
        generation=inode.generation(reader.descriptor),
        born_ns=inode.born_ns(reader.descriptor),
        file_system=os.fstatvfs(reader.descriptor).f_fsid,
        size_bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=None,
        digest=None,
    )


def _keeps_ctime(reader: BlockReader) -> bool:
    try:
        return inode.keeps_ctime(reader.descriptor)
    except OSError:
        return False


def _telling(first: int, last: int) -> tuple[int, int] | None:
    """Return bounds of ctime, None where a file system keeps whole seconds: much happens in one."""
    return None if first % _SECOND_NS == 0 else (first, last)
