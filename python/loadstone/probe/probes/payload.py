"""The job's own content, content that is new every time, a repeated text, and zeros."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.base import writes
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.probe.base import Base


def _turns(base: Base) -> Turns | str:
    if not any(writes(stream) for stream in base.streams):
        return say("probe.not_offered.writes")
    if not base.facts.repeats_payload:
        return say("probe.not_offered.new_payload")
    kinds = ("unique", "zeros")
    return interleaved(
        base,
        ArmPlan("own", keep=writes),
        *(ArmPlan(kind, partial(variant.content, kind=kind), writes) for kind in kinds),
    )


PROBE = comparison(
    "payload",
    _turns,
    {"payload.own": ("own", "unique")},
    of_the_job=True,
)
