"""Blocks that were written a moment ago against those the run read: needs a range the run may write."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns
from loadstone.probe.base import reads, writes
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base

LEAST_BYTES = 1 << 20
ROUNDS = 4
"""So many blocks for each I/O in flight: on fewer than the depth they would wait for the same ones."""


def _turns(base: Base) -> Turns | str:
    if not any(reads(stream) for stream in base.streams):
        return say("probe.not_offered.no_reads")
    if not any(writes(stream) for stream in base.streams):
        return say("probe.not_offered.writes")
    unit = max(4096, base.block_bytes)
    # What the arm that fills does at the run's own rate, so that the other reads nothing that it left out.
    filled = base.main.rate * base.arm_s * unit

    def part(stream: Stream, number: int) -> Stream:
        """Return it on one of two parts of the same length: a short span alone changes a rate, too."""
        wanted = max(LEAST_BYTES, min(ROUNDS * stream.iodepth * unit, int(filled)))
        files = []
        for use in stream.files:
            length = max(unit, min(use.length_bytes // 2, wanted) // unit * unit)
            offset = use.offset_bytes + min(number * length, use.length_bytes - length)
            files.append(use.model_copy(update={"offset_bytes": offset, "length_bytes": length}))
        return stream.model_copy(update={"files": tuple(files)})

    def fill(stream: Stream) -> Stream:
        return variant.in_order(
            variant.content(variant.only_writes(variant.unpaced(part(stream, 0))), "unique")
        )

    def read(stream: Stream, number: int) -> Stream:
        return variant.only_reads(part(stream, number))

    before = ArmPlan("before", partial(read, number=1), writes)
    written = ArmPlan("written", partial(read, number=0), writes)
    return Turns((before, ArmPlan("fill", fill, writes, share=2.0), written, before, written), base.arm_s)


PROBE = comparison("written", _turns, {"written.read": ("written", "before")})
