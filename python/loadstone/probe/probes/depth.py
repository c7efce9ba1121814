"""Half the depth, and twice the depth."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.probe.base import Base


def _turns(base: Base) -> Turns | str:
    if {base.plan.workers[stream.worker].backend.type for stream in base.streams} & {"psync"}:
        return say("probe.not_offered.synchronous")
    twice = ArmPlan("twice", partial(variant.depth, times=2))
    as_run = ArmPlan("as_run")
    if base.depth == 1:
        return interleaved(base, as_run, twice)
    return interleaved(base, ArmPlan("half", partial(variant.depth, times=0.5)), as_run, twice)


PROBE = comparison(
    "depth",
    _turns,
    {"depth.half": ("half", "as_run"), "depth.twice": ("twice", "as_run")},
)
