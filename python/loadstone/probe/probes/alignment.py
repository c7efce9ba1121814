"""The run's I/Os off the grid against the same on the grid of 4 KiB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.explanations.job_facts import GRID_BYTES
from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base


def _turns(base: Base) -> Turns | str:
    if not base.facts.off_grid:
        return say("probe.not_offered.aligned")
    # The same number of bytes where that is on the grid, the next size of the grid where it is not.
    size = -(-base.block_bytes // GRID_BYTES) * GRID_BYTES
    if any(use.length_bytes < 2 * size + GRID_BYTES for stream in base.streams for use in stream.files):
        return say("probe.not_offered.short_range")

    def on_grid(stream: Stream) -> Stream:
        files = []
        for use in stream.files:
            start = -(-use.offset_bytes // GRID_BYTES) * GRID_BYTES
            end = (use.offset_bytes + use.length_bytes) // GRID_BYTES * GRID_BYTES
            files.append(use.model_copy(update={"offset_bytes": start, "length_bytes": end - start}))
        return variant.block_bytes(stream.model_copy(update={"files": tuple(files)}), size)

    return interleaved(base, ArmPlan("as_run"), ArmPlan("on_grid", on_grid))


PROBE = comparison("alignment", _turns, {"aligned.own": ("on_grid", "as_run")}, of_the_job=True)
