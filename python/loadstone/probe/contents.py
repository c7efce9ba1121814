"""What lies at places that the run read: blocks of nothing but zeros may never have been written.

Reads a few blocks of the targets in a child, as they may not answer. Knows the Plan; weighs nothing.
"""

from __future__ import annotations

import math
import mmap
import os
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.errors import RunError
from loadstone.explanations.readings import ProbeReading, Tried
from loadstone.explanations.weigh import text
from loadstone.messages import say
from loadstone.path.child import run_in_child
from loadstone.plan.model import TargetKind
from loadstone.probe.base import reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import Target
    from loadstone.probe.base import Base

NAME: Final = "contents"
READING: Final = "contents.zeros"
BLOCK: Final = 4096
BLOCKS: Final = 64
LONGEST_S: Final = 1.0
"""No block is begun after so long: the look goes before the probes and is taken from their time."""
LEAST: Final = 16
"""Of fewer blocks nothing is said."""
LEAST_ERROR: Final = 0.02


def look(base: Base) -> Tried | None:
    """Read blocks at random places of what the run read; None where that tells nothing."""
    if base.facts.repeats_payload or not base.facts.reads:
        return None
    began, places = time.monotonic(), _places(base)
    try:
        zeros = run_in_child(lambda: _looked_at(places, began), doing=say("path.child.looking.blocks_read"))
    except RunError:
        return None  # The probes will tell of a target that does not answer, or of a host without a process.
    if len(zeros) < LEAST:
        return None
    return tried(sum(zeros), len(zeros), time.monotonic() - began)


def tried(zeros: int, blocks: int, seconds: float) -> Tried:
    """Return what so many blocks of zeros among those that were read say."""
    share = zeros / blocks
    reading = ProbeReading(
        name=READING, value=share, error=LEAST_ERROR + math.sqrt(share * (1 - share) / blocks), count=blocks
    )
    return Tried(
        name=NAME,
        bundle=".",
        seconds=round(seconds, 3),
        written_bytes=0,
        result=text(reading),
        readings=(reading,),
    )


def _places(base: Base) -> list[tuple[Target, int]]:
    """Return where to look: blocks inside the ranges that are read, drawn from the run's own seed."""
    uses = [use for stream in base.streams if reads(stream) for use in stream.files]
    ranges = [(use.target, use.offset_bytes // BLOCK, use.length_bytes // BLOCK) for use in uses]
    inside = [one for one in ranges if one[2] > 0]
    if not inside:
        return []
    chance = np.random.default_rng(base.streams[0].seed)
    lengths = np.array([length for _, _, length in inside], np.float64)
    targets = base.plan.targets
    places = []
    for at in chance.choice(len(inside), BLOCKS, p=lengths / lengths.sum()):
        target, first, length = inside[at]
        places.append((targets[target], (first + int(chance.integers(length))) * BLOCK))
    return places


def _looked_at(places: Sequence[tuple[Target, int]], began: float) -> list[bool]:
    return [zeros for target, at in places if (zeros := _zeros(target, at, began)) is not None]


def _zeros(target: Target, at: int, began: float) -> bool | None:
    """Tell whether a block holds nothing but zeros; None where it cannot be read."""
    if target.kind not in (TargetKind.FILE, TargetKind.BLOCK) or time.monotonic() - began > LONGEST_S:
        return None
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (os.O_DIRECT if target.direct else 0)
    try:
        descriptor = os.open(target.path, flags)
    except OSError:
        return None
    try:
        with mmap.mmap(-1, BLOCK) as page:
            # Memory of its own lies on a page's border, as direct I/O wants it.
            if os.preadv(descriptor, [page], at) != BLOCK:
                return None
            return page[:] == bytes(BLOCK)
    except OSError:
        return None
    finally:
        os.close(descriptor)
