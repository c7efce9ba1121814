"""Half the block size, and twice the block size."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.base import block_sizes
from loadstone.probe.probe import comparison

if TYPE_CHECKING:
    from loadstone.probe.base import Base

LEAST_BYTES: Final = 4096
MOST_BYTES: Final = 8 << 20


def _turns(base: Base) -> Turns | str:
    sizes = {size for stream in base.streams for size in block_sizes(stream)}
    if len(sizes) != 1:
        return say("probe.not_offered.several_sizes")
    size = base.block_bytes
    smallest = min((use.length_bytes for stream in base.streams for use in stream.files), default=0)
    if size * 2 > min(MOST_BYTES, smallest):
        return say("probe.not_offered.twice_the_size")
    arms = [ArmPlan("as_run"), ArmPlan("twice", partial(variant.block_bytes, size=2 * size))]
    if size // 2 >= LEAST_BYTES and size % (2 * LEAST_BYTES) == 0:
        arms.insert(0, ArmPlan("half", partial(variant.block_bytes, size=size // 2)))
    return interleaved(base, *arms)


PROBE = comparison(
    "block_size",
    _turns,
    {"size.half": ("half", "as_run"), "size.twice": ("twice", "as_run")},
)
