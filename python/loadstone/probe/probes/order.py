"""Reads in the run's order against the same number of bytes at random: reads only.

What reads ahead of a load, on the way or in the storage, answers it before it asks. No other probe breaks
the order. Each turn has blocks of its own, so that none finds what another one left in a cache.
"""

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

BEGINS: Final = 0.5
"""A run in order has read the beginning of its range: the turns share what lies behind this."""
PLACES: Final = ("in_order", "shuffled", "shuffled", "in_order")
SHARE: Final = 0.75
"""Of an arm: a fifth more or less is enough to know."""
LEAST_BLOCKS: Final = 256


def _turns(base: Base) -> Turns | str:
    if not base.facts.in_order:
        return say("probe.not_offered.random")
    if any(writes(stream) for stream in base.streams):
        return say("probe.not_offered.compares_reads")
    share = (1 - BEGINS) / len(PLACES)
    size = base.block_bytes
    ranges = [use.length_bytes for stream in base.streams for use in stream.files]
    if min(ranges) * share < LEAST_BLOCKS * size:
        return say("probe.not_offered.few_blocks", blocks=LEAST_BLOCKS)

    def turn(stream: Stream, number: int) -> Stream:
        ordered = variant.only_reads(stream) if PLACES[number] == "shuffled" else stream
        return variant.slice_of(ordered, BEGINS + number * share, share, max(4096, size))

    order = tuple(
        ArmPlan(name, partial(turn, number=number), share=SHARE) for number, name in enumerate(PLACES)
    )
    return Turns(order, base.arm_s)


PROBE = comparison("order", _turns, {"order.random": ("shuffled", "in_order")}, of_the_job=True)
