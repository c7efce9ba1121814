"""The first pass of writes over a range against the second one over the same addresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns
from loadstone.probe.base import writes
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base

FIRST: Final = 1.5
"""Of an arm's length, and the second has the rest of two. So a pass that is up to three times as fast stays
on what the first one wrote."""


def _turns(base: Base) -> Turns | str:
    if not any(writes(stream) for stream in base.streams):
        return say("probe.not_offered.writes")

    # A job that goes in order wrote the beginning of its range: its parts lie behind that.
    parts = ((0.5, 0.25), (0.75, 0.25)) if base.facts.in_order else ((0.0, 0.5), (0.5, 0.5))

    def over(stream: Stream, start: float, share: float) -> Stream:
        changed = variant.only_writes(variant.unpaced(stream))
        return variant.slice_of(changed, start, share, max(4096, base.block_bytes))

    def arm(name: str, number: int, length: float) -> ArmPlan:
        start, share = parts[number]
        change = partial(over, start=start, share=share)
        return ArmPlan(name, change, writes, same_addresses=11 + number, share=length)

    # Of a queue that fills with flushes, passes of one length are as far from their rate.
    first = 1.0 if base.fills else FIRST
    order = tuple(
        arm(name, number, length)
        for number in range(len(parts))
        for name, length in (("first", first), ("second", 2 - first))
    )
    return Turns(order, base.arm_s)


PROBE = comparison("first_pass", _turns, {"first.second": ("second", "first")})
