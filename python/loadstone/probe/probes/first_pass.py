"""The first pass of writes over a range against the second one over the same addresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from loadstone.probe import changes
from loadstone.probe.arms import ArmPlan, Turns
from loadstone.probe.base import writes
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.explanations.readings import ProbeReading
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.probe import Measured


def _turns(base: Base) -> Turns | str:
    if not any(writes(stream) for stream in base.streams):
        return "it would write, and the run was not allowed to"

    def over(stream: Stream, start: float) -> Stream:
        made = changes.only_writes(changes.unpaced(stream))
        return changes.slice_of(made, start, 0.5, max(4096, base.block_bytes))

    def arm(name: str, start: float, number: int) -> ArmPlan:
        return ArmPlan(name, partial(over, start=start), writes, same_addresses=number)

    # Two parts of the range, each with its first and second pass.
    order = (arm("first", 0.0, 11), arm("second", 0.0, 11), arm("first", 0.5, 12), arm("second", 0.5, 12))
    return Turns(order, base.arm_s)


def _read(measured: Measured, _: Base) -> list[ProbeReading]:
    return measured.effect("first.second", "second", "first")


PROBE = Probe("first_pass", "first against second pass of writes", ("first.second",), _turns, _read)
