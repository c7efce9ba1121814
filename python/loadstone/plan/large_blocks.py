"""Blocks larger than the kernel moves in one call: the same bytes in several I/Os that follow each other.

Knows what of a job counts I/Os and has to grow with them. Knows no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.messages import say
from loadstone.plan.pattern import blocks_of, is_random, shares, sizes
from loadstone.workload.block_sizes import FixedSize
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.block_sizes import BlockSizes
    from loadstone.workload.model import Job

MAX_MOVED_BYTES: Final = 0x7FFF_F000
"""What `read(2)` and its like move at most (`MAX_RW_COUNT`, include/linux/fs.h)."""
MAX_PART_BYTES: Final = 1 << 30
MOST_TRIED: Final = 65_536
"""Numbers of parts that are tried for a block of any size."""
_COUNTED: Final = (
    "limits.number_ios",
    "pacing.thinktime_blocks",
    "durability.fsync_every",
    "durability.fdatasync_every",
)
_RATES: Final = ("pacing.rate_iops", "pacing.rate_iops_min")


def in_parts(job: Job, notes: Notes) -> Job:
    """Return a job whose blocks the kernel can move: each that it cannot is some that can."""
    blocks, parts_of = sizes(job), shares(job)
    if not any(_is_large(block) for block in blocks):
        return job
    used = [block for block, share in zip(blocks, parts_of, strict=True) if share]
    if not any(_is_large(block) for block in used):
        return job.changed({"sizes.bs": tuple(used[0] if _is_large(block) else block for block in blocks)})
    whole = next(block.bytes for block in used if isinstance(block, FixedSize) and _is_large(block))
    parts = _checked_parts(job, used, whole)
    part = FixedSize(bytes=whole // parts)
    notes.changed(
        job,
        "sizes.bs",
        say("plan.notes.parts_of_block", whole_bytes=whole, parts=parts, part_bytes=part.bytes),
    )
    changed: dict[str, object] = {"sizes.bs": (part, part, part)}
    if is_random(job):
        changed |= {"addresses.run_length": parts, "addresses.blockalign_bytes": (whole,) * 3}
    changed |= {field: job.value(field) * parts for field in _COUNTED if job.value(field)}
    for field in _RATES:
        changed[field] = tuple(rate and rate * parts for rate in job.value(field))
    for field in ("placement.size", "limits.io_size"):
        amount = job.value(field)
        if amount is not None and (amount.bytes or 0) >= whole:
            changed[field] = Amount(bytes=amount.bytes - amount.bytes % whole)
    return job.changed(changed)


def _is_large(block: BlockSizes) -> bool:
    return isinstance(block, FixedSize) and block.bytes > MAX_MOVED_BYTES


def _checked_parts(job: Job, used: Sequence[BlockSizes], whole: int) -> int:
    """Return in how many parts a block is moved. Raises RefusedError where that cannot be."""
    if any(block != FixedSize(bytes=whole) for block in used):
        raise job.refusal(
            "plan.large_block.other_size", "sizes.bs", size=units.size(whole), option=job.option("sizes.bs")
        )
    addresses = blocks_of(job).addresses
    walks = addresses.run_length if addresses.run_length > 1 else addresses.stride_bytes
    if walks:
        raise job.refusal(
            "plan.large_block.walk",
            "addresses.run_length",
            rw=blocks_of(job).mix.rw,
            walks=walks,
            size=units.size(whole),
            setting=job.setting("sizes.bs", "1g"),
        )
    least = -(-whole // MAX_PART_BYTES)
    for parts in range(least, least + min(least * 63, MOST_TRIED)):
        if whole % parts == 0 and (whole // parts) % 4096 == 0:
            return parts
    raise job.refusal("plan.large_block.parts", "sizes.bs", size=whole, option=job.option("sizes.bs"))
