"""The run's own addresses, addresses it did not use, the same of those again, and a tiny span: reads only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, as_it_is
from loadstone.probe.base import MIB, writes
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.explanations.readings import ProbeReading
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.probe import Measured

COVERED: Final = 0.5
"""A run that used more than this share of its range left no addresses in it."""
TINY_BYTES: Final = MIB


def _turns(base: Base) -> Turns | str:
    if any(writes(stream) for stream in base.streams):
        return say("probe.not_offered.compares_reads")
    fresh = _fresh(base)
    size = base.block_bytes
    tiny = partial(variant.slice_of, start=0.0, share=1e-12, unit=max(TINY_BYTES, 16 * size))
    if fresh is None:
        # All addresses of its targets were used: none is left to compare with.
        return Turns((now := ArmPlan("as_run"), small := ArmPlan("tiny", tiny), small, now), base.arm_s)
    own = ArmPlan("own", same_addresses=0)
    first = ArmPlan("fresh", fresh, same_addresses=7)
    again = ArmPlan("second", fresh, same_addresses=7)
    small = ArmPlan("tiny", tiny)
    now = ArmPlan("as_run")
    return Turns((own, first, again, small, now, small, own), base.arm_s)


def _fresh(base: Base) -> Callable[[Stream], Stream] | None:
    """Return the change to addresses the run did not use: of its own range, or behind or before it."""
    used = base.main.bytes_per_s * base.main.seconds
    whole = sum(use.length_bytes for stream in base.streams for use in stream.files)
    in_order = base.facts.in_order
    if not in_order and used < COVERED * whole:
        return as_it_is
    parts = {target: _unused(base, target) for target in base.targets}
    least = 64 * base.block_bytes
    if any(length < least for _, length in parts.values()):
        return None

    def elsewhere(stream: Stream) -> Stream:
        files = tuple(
            use.model_copy(
                update={"offset_bytes": parts[use.target][0], "length_bytes": parts[use.target][1]}
            )
            for use in stream.files
        )
        return stream.model_copy(update={"files": files})

    return elsewhere


def _unused(base: Base, target: int) -> tuple[int, int]:
    """Return the longest part of a target that no stream of the run uses, in whole blocks."""
    size, unit = base.size_bytes(target), max(4096, base.block_bytes)
    ranges = sorted(
        (use.offset_bytes, use.offset_bytes + use.length_bytes)
        for stream in base.plan.streams
        for use in stream.files
        if use.target == target
    )
    best, at = (0, 0), 0
    for low, high in [*ranges, (size, size)]:
        start = -(-at // unit) * unit
        best = max(best, (start, max(0, low - start) // unit * unit), key=lambda part: part[1])
        at = max(at, high)
    return best


def _read(measured: Measured, base: Base) -> list[ProbeReading]:
    return [
        *measured.effect("again.own", "own", "fresh"),
        *measured.effect("again.second", "second", "fresh"),
        *measured.against_main("again.repeat", "own", base.main),
        *measured.effect("again.tiny", "tiny", "as_run"),
        *measured.against_main("again.now", "as_run", base.main),
    ]


PROBE = Probe(
    "same_again",
    ("again.own", "again.second", "again.repeat", "again.tiny", "again.now"),
    _turns,
    _read,
)
