"""The beginning, the middle and the end of the targets: reads only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base

SHARE: Final = 0.05
"""Each place is so much of the target, or more where that has fewer than `LEAST_BLOCKS`."""
MOST_SHARE: Final = 0.2
LEAST_BLOCKS: Final = 256


def _turns(base: Base) -> Turns | str:
    if not base.facts.partial:
        return say("probe.not_offered.all_targets")
    size = max(4096, base.block_bytes)
    smallest = min(base.size_bytes(target) for target in base.targets)
    share = max(SHARE, LEAST_BLOCKS * size / max(1, smallest))
    if share > MOST_SHARE:
        return say("probe.not_offered.short_targets", blocks=LEAST_BLOCKS)

    def at(stream: Stream, start: float) -> Stream:
        reading = variant.only_reads(stream, size)
        files = []
        for use in reading.files:
            whole = base.size_bytes(use.target)
            length = int(whole * share) // size * size
            offset = min(int(whole * start) // size * size, (whole - length) // size * size)
            files.append(use.model_copy(update={"offset_bytes": offset, "length_bytes": length}))
        return reading.model_copy(update={"files": tuple(files)})

    places = [("beginning", 0.0), ("middle", 0.5 - share / 2), ("end", 1.0 - share)]
    return interleaved(base, *(ArmPlan(name, partial(at, start=start)) for name, start in places))


PROBE = comparison(
    "position",
    _turns,
    {"position.middle": ("middle", "beginning"), "position.end": ("end", "beginning")},
    of_the_job=True,
)
