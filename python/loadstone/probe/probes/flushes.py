"""Writes without a flush against writes with one after each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from loadstone.probe import changes
from loadstone.probe.arms import ArmPlan, Turns, interleaved
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

    def single(stream: Stream, every: int) -> Stream:
        return changes.flush_every(changes.one_at_a_time(changes.only_writes(stream)), every)

    return interleaved(
        base,
        ArmPlan("without", partial(single, every=0), writes),
        ArmPlan("with", partial(single, every=1), writes),
    )


def _read(measured: Measured, _: Base) -> list[ProbeReading]:
    return measured.effect("flush.cost", "without", "with")


PROBE = Probe("flushes", "with and without a flush after each write", ("flush.cost",), _turns, _read)
