"""The load generator without the device, at the same shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.explanations.predictions import PLENTY
from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.explanations.readings import ProbeReading
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.probe import Measured

ARM_S = 0.3


def _turns(base: Base) -> Turns | str:
    if any(base.plan.workers[stream.worker].backend.type == "sim" for stream in base.streams):
        return say("probe.not_offered.simulated")

    def bare(stream: Stream) -> Stream:
        return variant.flush_every(variant.unpaced(stream), 0).model_copy(update={"priorities": ()})

    return Turns((ArmPlan("null", bare, without_device=True),), ARM_S)


def _read(measured: Measured, base: Base) -> list[ProbeReading]:
    readings = measured.against_main("generator.null", "null", base.main)
    return [one.model_copy(update={"value": min(one.value, PLENTY)}) for one in readings]


PROBE = Probe("generator", ("generator.null",), _turns, _read)
