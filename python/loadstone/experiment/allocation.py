"""What was written to a target before its run: nothing, all of it, room only, every second piece.

Knows how each state is made on a file, and which of them a device can have. What is made here is known
to the safety check as ours; what is not ours needs the consent that a run would need. Nothing is put
back: a target's content was given up by whoever consented to the run.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError, RunError
from loadstone.messages import make_error, say
from loadstone.path.block import BlockDevice
from loadstone.plan.model import TargetKind
from loadstone.plan.safety import guard, marker, seen
from loadstone.plan.safety.content import BlockReader
from loadstone.plan.safety.held import held, remove, way_to
from loadstone.plan.safety.in_use import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.plan.model import Plan, Target

PIECE_BYTES: Final = 1 << 20
HOLE_BYTES: Final = 64 << 10
"""Of `holes`: so much is written, so much is not, and again."""
DIGEST_S: Final = 1.0
SECTOR_BYTES: Final = 512
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_BLKDISCARD: Final = 0x1277
"""ioctl(2) of <linux/fs.h>."""


def why_not(plan: Plan, state: str) -> str | None:
    """Return why the targets of a Plan cannot be brought into a state; None where they can."""
    for target in plan.targets:
        device = target.kind in (TargetKind.BLOCK, TargetKind.NVME)
        if target.kind not in (TargetKind.FILE, TargetKind.BLOCK):
            return say("experiment.allocation.no_target", path=target.path)
        if device and state in ("preallocated", "holes"):
            return say("experiment.allocation.of_device", path=target.path)
        if device and state != "later pass" and not _takes_discards(target.path):
            return say("experiment.allocation.no_discards", path=target.path)
        if not device and state == "trimmed":
            return say("experiment.allocation.of_file", path=target.path)
    files = any(target.kind is TargetKind.FILE for target in plan.targets)
    writes = any(stream.pattern.write_percent for stream in plan.streams)
    laid_out = any(one.layout is not None and one.layout.write for one in plan.targets)
    if state in ("new", "first pass") and files and (laid_out or not writes):
        load = "that also reads, or has overwrite," if writes else "that only reads"
        return say("experiment.allocation.lays_out", load=load)
    return None


def _takes_discards(path: str) -> bool:
    device = BlockDevice.of_number(Path(path).stat().st_rdev)
    return device is None or device.disk().attribute("queue/discard_max_bytes") != "0"


def written_bytes(plan: Plan, state: str) -> int:
    """Return what it takes to bring the targets of a Plan into a state."""
    share = {"later pass": 1.0, "holes": 0.5}.get(state, 0.0)
    return sum(int(share * _size_bytes(target, plan)) for target in plan.targets)


def prepare(plan: Plan, state: str, consent: guard.Consent, give_up: Callable[[], bool]) -> None:
    """Bring every target into a state. Raises RefusedError without consent, RunError where it fails."""
    if why := why_not(plan, state):
        raise make_error(RefusedError, "experiment.allocation.cannot", state=repr(state), reason=why)
    host = Snapshot()
    for target in plan.targets:
        with held(target.path) as looked_at:
            finding = guard.examine(target, host, consent, pinned=looked_at)
            if finding.refused:
                raise RefusedError(
                    f"{say('refusals.in_use.refusal')}: {target.path}: {'; '.join(finding.refused)}",
                    hint=say("refusals.in_use.hint"),
                )
            if finding.needs_consent and not consent.given(target.path, finding.needs_consent):
                raise RefusedError(
                    f"{say('refusals.consent.refusal')}: {target.path}: {'; '.join(finding.needs_consent)}",
                    hint=say("experiment.allocation.consent_hint", path=target.path),
                )
            try:
                if target.kind is TargetKind.BLOCK:
                    _prepare_device(looked_at or Path(target.path), _size_bytes(target, plan), state, give_up)
                    guard.remember(target, consent.left)
                else:
                    # A new inode, not an old one cut: what a file system kept of the old one is gone with it.
                    if looked_at is not None:
                        remove(Path(target.path), seen.look(looked_at)[1])
                    if state not in ("new", "first pass"):
                        _make_file(target.path, _size_bytes(target, plan), state, consent, give_up)
            except OSError as error:
                raise make_error(
                    RunError,
                    "experiment.allocation.failed",
                    path=target.path,
                    state=repr(state),
                    reason=error.strerror,
                ) from error


def _prepare_device(device: Path, size: int, state: str, give_up: Callable[[], bool]) -> None:
    file = os.open(device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    try:
        if state != "later pass":
            fcntl.ioctl(file, _BLKDISCARD, struct.pack("QQ", 0, os.lseek(file, 0, os.SEEK_END)))
        else:
            _write(file, size, give_up)
            os.fsync(file)
    finally:
        os.close(file)


def _make_file(path: str, size: int, state: str, consent: guard.Consent, give_up: Callable[[], bool]) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.ftruncate(file, size)
        if state == "preallocated":
            _allocate(file, size)
        else:
            _write(file, size, give_up, every_second=state == "holes")
        os.fsync(file)
        if state == "holes" and os.fstat(file).st_blocks * SECTOR_BYTES > 0.9 * size:
            raise OSError(errno.EOPNOTSUPP, say("experiment.allocation.no_holes"))
        # Its pages would make the first reads hits.
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        with BlockReader(way_to(file)) as reader:
            sealed = marker.seal(reader, laid_out=True, digest_until_s=time.monotonic() + DIGEST_S)
            status = os.fstat(file)
    finally:
        os.close(file)
    consent.left.files[status.st_dev, status.st_ino] = sealed
    marker.settle([sealed])


def _allocate(file: int, size: int) -> None:
    """Allocate room and write nothing; posix_fallocate(3) writes where the file system cannot do that."""
    if _LIBC.fallocate(file, 0, ctypes.c_int64(0), ctypes.c_int64(size)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _size_bytes(target: Target, plan: Plan) -> int:
    """Return how much of a target the run works on."""
    if target.layout is not None:
        return target.layout.size_bytes
    index = plan.targets.index(target)
    ends = [
        use.offset_bytes + use.length_bytes
        for one in plan.streams
        for use in one.files
        if use.target == index
    ]
    return max(ends, default=0)


def _write(file: int, size: int, give_up: Callable[[], bool], *, every_second: bool = False) -> None:
    """Write what no device makes smaller: pieces of a pool of random bytes, each from another start."""
    pool = os.urandom(8 * PIECE_BYTES + 8191)
    at = number = 0
    step = HOLE_BYTES if every_second else PIECE_BYTES
    while at < size:
        if give_up():
            raise make_error(RunError, "experiment.allocation.interrupted")
        start = (number * 4099) % (7 * PIECE_BYTES)
        os.pwrite(file, memoryview(pool)[start : start + min(step, size - at)], at)
        at += 2 * step if every_second else step
        number += 1
