"""Random writes that leave flash as long use does, though they fill it only once.

Long random writing leaves every share of valid pages between that of the block that is collected next and
all of them, and blocks with a share v of it are 1/v as frequent (Desnoyers, Analytic Models of SSD Write
Performance, ACM Transactions on Storage 8:2, 2012). So of what is written in the order of age the n-th part
is left valid by g^(n-th part), g the share of the oldest; over all of it that is what the logical capacity is
of the physical. Knows sizes and counts, and no device.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.plan import model
from loadstone.workload.block_sizes import FixedSize

if TYPE_CHECKING:
    from loadstone.plan.clone_files import FileRange
    from loadstone.workload.addresses import Aging
    from loadstone.workload.blocks import BlockWork
    from loadstone.workload.model import Job

_STEPS = 200
"""Of a bisection: more than a number has bits."""


@dataclass(frozen=True, slots=True)
class Regions:
    """What is written in one pass: so many regions of equal size."""

    block_bytes: int
    region_blocks: int
    again_blocks: tuple[int, ...]
    """Of each region, how many of its blocks the next one writes again."""
    at_the_end: bool
    """It writes them after its own, once they are out of the cache."""

    @property
    def total_bytes(self) -> int:
        """Bytes of a pass: the physical capacity, in whole regions."""
        return self.block_bytes * self.region_blocks * len(self.again_blocks)


def _regions(job: Job, length_bytes: int) -> Regions | None:
    """Lay the regions out for a range; None for a job that ages nothing.

    Raises InputError for regions that are too many or too small.
    """
    aging = None if job.blocks is None else job.blocks.addresses.random_distribution[1].aging
    if job.blocks is None or aging is None:
        return None
    block_bytes = _block_bytes(job, job.blocks)
    blocks = length_bytes // block_bytes
    region_blocks = int(blocks * (1 + aging.over_provisioning)) // aging.regions
    repeats = region_blocks * aging.regions - blocks
    where = job.at("addresses.random_distribution")
    if repeats < 0:
        raise make_error(
            InputError,
            "plan.aging.regions",
            where=where,
            regions=aging.regions,
            blocks=blocks,
            over=f"{aging.over_provisioning:.0%}",
            most=max(2, int(blocks * aging.over_provisioning)),
        )
    if aging.cache_bytes > region_blocks * block_bytes:
        most = int(blocks * block_bytes * (1 + aging.over_provisioning)) // aging.cache_bytes
        raise make_error(
            InputError,
            "plan.aging.region_size",
            where=where,
            hint=say("plan.aging.fewer_regions", most=most) if most > 1 else say("plan.aging.smaller_cache"),
            region=region_blocks * block_bytes,
            cache=aging.cache_bytes,
        )
    return Regions(block_bytes, region_blocks, _again(aging, repeats), at_the_end=aging.cache_bytes > 0)


def order(job: Job, length_bytes: int) -> model.RandomOrderAged | None:
    """Return the order of addresses over a range; None for a job that ages nothing."""
    regions = _regions(job, length_bytes)
    return (
        None
        if regions is None
        else model.RandomOrderAged(
            again_blocks=regions.again_blocks,
            region_blocks=regions.region_blocks,
            at_the_end=regions.at_the_end,
        )
    )


def pass_bytes(job: Job, ranges: list[FileRange]) -> int | None:
    """Return the bytes of one pass over a clone's files; None for a job that ages nothing."""
    regions = _regions(job, ranges[0].length_bytes)
    if regions is None:
        return None
    if len(ranges) != 1:
        raise job.error("plan.aging.files", "addresses.random_distribution", files=len(ranges))
    if job.limits.io_size is not None:
        raise job.error("plan.aging.no_effect", "limits.io_size")
    return regions.total_bytes


def _block_bytes(job: Job, work: BlockWork) -> int:
    """Return the size of its writes, after a look at what goes with them."""
    size, align = work.sizes.bs[1], work.addresses.blockalign_bytes[1]
    wrong = {
        "sizes.bs": not isinstance(size, FixedSize),
        "addresses.blockalign_bytes": isinstance(size, FixedSize) and align not in (None, size.bytes),
        "addresses.percentage_random": work.addresses.percentage_random[1] != 100,
        "addresses.run_length": work.addresses.run_length != 1,
        "placement.zone_size_bytes": job.placement.zone_mode != "none"
        and bool(job.placement.zone_size_bytes),
    }
    wrong_field = next((field for field, is_wrong in wrong.items() if is_wrong), None)
    if wrong_field is not None or not isinstance(size, FixedSize):
        raise job.refusal("plan.aging.no_size", wrong_field or "sizes.bs")
    return size.bytes


def _again(aging: Aging, repeats: int) -> tuple[int, ...]:
    """Share `repeats` out over the regions, the first is the oldest; each total is the nearest whole one."""
    oldest = _oldest_validity(1 / (1 + aging.over_provisioning))
    last = aging.regions - 1
    overwritten = [1 - oldest ** ((last - number) / last) for number in range(aging.regions)]
    whole = sum(overwritten)
    bounds, so_far = [0], 0.0
    for share in overwritten:
        so_far += share
        bounds.append(round(repeats * so_far / whole))
    return tuple(end - begin for begin, end in itertools.pairwise(bounds))


def _oldest_validity(mean: float) -> float:
    """Return the share of valid pages in the oldest part, from the mean: (1 - g) / -ln g = mean."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if (1 - middle) / -math.log(middle) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2
