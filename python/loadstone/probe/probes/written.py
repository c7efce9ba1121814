"""Blocks that were written a moment ago against those the run read: needs a range the run may write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.probe import changes
from loadstone.probe.arms import ArmPlan, Turns
from loadstone.probe.base import reads, writes
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.explanations.readings import ProbeReading
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.probe import Measured

MOST_BYTES = 1 << 20


def _turns(base: Base) -> Turns | str:
    if not any(reads(stream) for stream in base.streams):
        return "the run reads nothing"
    if not any(writes(stream) for stream in base.streams):
        return "it would write, and the run was not allowed to"
    unit = max(4096, base.block_bytes)

    def small(stream: Stream) -> Stream:
        files = tuple(
            use.model_copy(
                update={"length_bytes": max(unit, min(use.length_bytes, MOST_BYTES) // unit * unit)}
            )
            for use in stream.files
        )
        return stream.model_copy(update={"files": files})

    def fill(stream: Stream) -> Stream:
        return changes.in_order(
            changes.content(changes.only_writes(changes.unpaced(small(stream))), "unique")
        )

    def read_written(stream: Stream) -> Stream:
        return changes.only_reads(small(stream))

    order = (
        ArmPlan("before", changes.only_reads),
        ArmPlan("fill", fill, writes, share=2.0),
        ArmPlan("written", read_written, writes),
        ArmPlan("before", changes.only_reads),
        ArmPlan("written", read_written, writes),
    )
    return Turns(order, base.arm_s)


def _read(measured: Measured, _: Base) -> list[ProbeReading]:
    return measured.effect("written.read", "written", "before")


PROBE = Probe("written", "never written against just written", ("written.read",), _turns, _read)
