"""Writes without a flush against writes with one after each; a load that flushes, without its flushes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.base import writes
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base

OWN_SHARE: Final = 0.5


def _turns(base: Base) -> Turns | str:
    if not any(writes(stream) for stream in base.streams):
        return say("probe.not_offered.writes")

    def single(stream: Stream, every: int) -> Stream:
        return variant.flush_every(variant.one_at_a_time(variant.only_writes(stream)), every)

    arms = [
        ArmPlan("without", partial(single, every=0), writes),
        ArmPlan("with", partial(single, every=1), writes),
    ]
    if any(stream.flush.fsync_every or stream.flush.fdatasync_every for stream in base.streams):
        never = partial(variant.flush_every, writes=0)
        arms += [ArmPlan("as_run", share=OWN_SHARE), ArmPlan("unflushed", never, share=OWN_SHARE)]
    return interleaved(base, *arms)


PROBE = comparison(
    "flushes",
    _turns,
    {"flush.cost": ("without", "with"), "flush.own": ("unflushed", "as_run")},
)
