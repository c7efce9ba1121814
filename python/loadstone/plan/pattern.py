"""What I/O a job asks for, as a Pattern: shares, sizes, addresses.

Knows how the parts of a Workload that say which I/O goes where become the Plan's. Knows no file
and no device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.plan import aging, model, rows
from loadstone.workload.block_sizes import BlockSizes, FixedSize, SizeRange, SizesByDirection
from loadstone.workload.rows import RowWork

if TYPE_CHECKING:
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.addresses import Distribution
    from loadstone.workload.blocks import BlockWork
    from loadstone.workload.model import Job

_MAX_TABLE: Final = 1024


def shares(job: Job) -> tuple[int, int, int]:
    """Percent of reads, writes and trims; `verify_only` reads what it would have written."""
    return (100, 0, 0) if job.verification.verify_only else job.work.shares


def is_random(job: Job) -> bool:
    """Whether addresses are random, or some are."""
    return job.work.is_random


def walks_only(job: Job) -> bool:
    """Whether no block is at a random place; with `percentage_random=0` none of a random job is."""
    return not is_random(job) or (job.blocks is not None and not any(job.blocks.addresses.percentage_random))


def trims_then_writes(job: Job) -> bool:
    """Whether each trim brings a write of the same place; `verify_only` trims nothing."""
    return job.work.trims_then_writes and not job.verification.verify_only


def blocks_of(job: Job) -> BlockWork:
    """Return the reads, writes and trims of a job that has no rows."""
    if job.blocks is None:
        raise AssertionError("a job of rows has no blocks of one mix")
    return job.blocks


def sizes(job: Job) -> SizesByDirection:
    """Block sizes of reads, writes and trims."""
    return job.work.block_sizes


def smallest(block: BlockSizes) -> int:
    """Smallest size in bytes."""
    if isinstance(block, FixedSize):
        return block.bytes
    return block.min_bytes if isinstance(block, SizeRange) else min(e.bytes for e in block.entries)


def largest(block: BlockSizes) -> int:
    """Largest size in bytes."""
    if isinstance(block, FixedSize):
        return block.bytes
    return block.max_bytes if isinstance(block, SizeRange) else max(e.bytes for e in block.entries)


def min_block(job: Job) -> int:
    """Smallest block over all three directions, used or not."""
    return min(smallest(block) for block in sizes(job))


def max_block(job: Job) -> int:
    """Largest block of the directions in use."""
    return max(largest(block) for block, share in zip(sizes(job), shares(job), strict=True) if share)


def smallest_block(job: Job) -> int:
    """Smallest block of the directions in use."""
    return min(smallest(block) for block, share in zip(sizes(job), shares(job), strict=True) if share)


def pattern(job: Job, notes: Notes, range_bytes: int, unit_bytes: int = 1) -> model.Pattern:
    """Resolve a job's I/O pattern; zones are laid out over `range_bytes`.

    `unit_bytes` is what the target can do: the alignment of rows that ask for none.
    """
    if isinstance(job.work, RowWork):
        return rows.pattern(job, job.work, unit_bytes)
    reads, writes, trims = shares(job)
    follows = trims_then_writes(job)
    if follows:  # The engine draws trims only; each brings its write.
        writes, trims = 0, 100
    _check(job)
    blocks = sizes(job)
    ops = [_op(job, i, blocks[i], notes, range_bytes) for i in range(3)]
    return model.Pattern(
        read_percent=reads,
        write_percent=writes,
        trim_percent=trims,
        trim_then_write=follows,
        read=ops[0],
        write=ops[1],
        trim=ops[2],
        strided=strided(job, notes),
        rows=None,
    )


def strided(job: Job, notes: Notes) -> model.Strided | None:
    """Windows that move over each file; None: the whole range."""
    zones = strided_zones(job)
    if zones is None:
        for field in ("placement.zone_size_bytes", "placement.zone_range_bytes", "placement.zone_skip_bytes"):
            if job.value(field):
                text = say(
                    "plan.notes.no_effect_without", option=job.option(field), needed="zonemode=strided"
                )
                notes.info(job, field, text)
        return None
    return zones


def strided_zones(job: Job) -> model.Strided | None:
    """Windows as the job gives them; None: there are none. Raises InputError for those that cannot be."""
    placement = job.placement
    size = placement.zone_size_bytes or 0
    if placement.zone_mode == "none" or (placement.zone_mode is None and not size):
        return None
    if not size:
        raise job.error("plan.pattern.zonesize", "placement.zone_mode")
    window = placement.zone_range_bytes or size
    if window < max_block(job):
        raise job.error(
            "plan.pattern.zone_small",
            "placement.zone_range_bytes" if placement.zone_range_bytes else "placement.zone_size_bytes",
            zone=window,
            block=max_block(job),
        )
    return model.Strided(zone_bytes=size, range_bytes=window, skip_bytes=placement.zone_skip_bytes or 0)


def _check(job: Job) -> None:
    """Refuse what has no effect in this combination."""
    if blocks_of(job).sizes.bs_unaligned and job.engine.direct:
        raise job.refusal("plan.pattern.unaligned", "sizes.bs_unaligned")


def _op(job: Job, i: int, block: BlockSizes, notes: Notes, range_bytes: int) -> model.OpPattern:
    random, work = is_random(job), blocks_of(job)
    addresses = work.addresses
    align = addresses.blockalign_bytes[i] if random else None
    return model.OpPattern(
        random_percent=int(addresses.percentage_random[i]) if random else 0,
        random=_order(job, i, block, notes, range_bytes),
        stride_bytes=0 if random else addresses.stride_bytes,
        stride_spread_bytes=0 if random else addresses.stride_spread_bytes,
        run_length=addresses.run_length if random else 1,
        run_identical=addresses.run_identical,
        sizes=drawn_sizes(block, unaligned=work.sizes.bs_unaligned),
        align_bytes=align or smallest(block),
    )


def _order(job: Job, i: int, block: BlockSizes, notes: Notes, range_bytes: int) -> model.RandomOrder:
    distribution = blocks_of(job).addresses.random_distribution[i]
    if distribution.reuse is not None:
        return model.RandomOrderReuse(**distribution.reuse.model_dump())
    if distribution.kind == "sequence":
        return _listed(job, i, distribution, block, range_bytes)
    if distribution.kind.startswith("zoned"):
        return model.RandomOrderZoned(zones=_zones(job, distribution, range_bytes, smallest(block)))
    aged = aging.order(job, range_bytes) if distribution.kind == "aged" else None
    return aged or _skewed(distribution) or _uniform(job, i, block, notes)


def _skewed(distribution: Distribution) -> model.RandomOrder | None:
    """Return a law with hot blocks; None where all are alike."""
    parameter, center = distribution.parameter or 0.0, distribution.center
    if distribution.kind == "zipf":
        alike = model.RandomOrderUniform(repeat=True)
        return model.RandomOrderZipf(theta=parameter, center=center) if parameter else alike
    if distribution.kind == "pareto":
        return model.RandomOrderPareto(h=parameter, center=center)
    if distribution.kind == "normal":
        return model.RandomOrderNormal(deviation_percent=parameter, center=center)
    return None


def _uniform(job: Job, i: int, block: BlockSizes, notes: Notes) -> model.RandomOrder:
    repeat = not _has_map(job)
    if not repeat and _aligned_apart(job, i, block):
        repeat = True
        notes.info(job, "addresses.blockalign_bytes", say("plan.notes.no_map"))
    return model.RandomOrderUniform(repeat=repeat)


def takes_each_once(job: Job, i: int) -> bool:
    """Whether random I/Os of a direction take every block once before one comes again."""
    uniform = blocks_of(job).addresses.random_distribution[i].kind == "random"
    return uniform and _has_map(job) and not _aligned_apart(job, i, sizes(job)[i])


def _has_map(job: Job) -> bool:
    addresses = blocks_of(job).addresses
    return not addresses.norandommap or addresses.random_generator == "lfsr"  # which needs none


def _aligned_apart(job: Job, i: int, block: BlockSizes) -> bool:
    """Whether addresses are multiples of something else than a block, so that a map does not fit."""
    addresses = blocks_of(job).addresses
    runs = smallest(block) * addresses.run_length  # Blocks moved in parts are aligned to the whole.
    return is_random(job) and addresses.blockalign_bytes[i] not in (None, smallest(block), runs)


def _listed(
    job: Job, i: int, distribution: Distribution, block: BlockSizes, range_bytes: int
) -> model.RandomOrder:
    """Blocks by number; one that lies beyond the range is refused."""
    blocks = range_bytes // (blocks_of(job).addresses.blockalign_bytes[i] or smallest(block))
    beyond = [number for number in distribution.blocks if number >= blocks]
    if beyond and is_random(job) and shares(job)[i]:
        raise job.error(
            "plan.pattern.sequence", "addresses.random_distribution", block=beyond[0], blocks=blocks
        )
    return model.RandomOrderListed(
        blocks=distribution.blocks, advance=blocks_of(job).addresses.sequence_advances
    )


def _zones(
    job: Job, distribution: Distribution, range_bytes: int, block_bytes: int
) -> tuple[model.Zone, ...]:
    """Lay zones out over the range in whole blocks; the last takes the rest."""
    lengths: list[int] = []
    for _, size in distribution.zones:
        wanted = int(size) if distribution.kind == "zoned_abs" else int(range_bytes * size / 100)
        lengths.append(wanted - wanted % block_bytes)
    if distribution.kind == "zoned" and lengths:
        lengths[-1] = range_bytes - sum(lengths[:-1])
    if sum(lengths) > range_bytes or any(length < block_bytes for length in lengths):
        raise job.refusal(
            "plan.pattern.zones", "addresses.random_distribution", size=range_bytes, block=block_bytes
        )
    return tuple(
        model.Zone(access_percent=access, length_bytes=length)
        for (access, _), length in zip(distribution.zones, lengths, strict=True)
    )


def drawn_sizes(block: BlockSizes, *, unaligned: bool) -> model.Sizes:
    """Return the law that the sizes of one operation are drawn by."""
    if isinstance(block, FixedSize):
        return model.SizesFixed(bytes=block.bytes)
    if isinstance(block, SizeRange):
        return _range(block, unaligned=unaligned)
    return model.SizesSplit(
        table=tuple(
            model.SizeWeight(bytes=entry.bytes, weight=entry.percent)
            for entry in block.entries
            if entry.percent
        )
    )


def _range(block: SizeRange, *, unaligned: bool) -> model.Sizes:
    """Multiples of the smallest size; a largest one that is none gets its own share.

    A draw from `[min, min + max)` is cut down to a multiple and capped at the largest, so a cap
    between two multiples stands for what was drawn above it.
    """
    low, high = block.min_bytes, block.max_bytes
    if low == high:
        return model.SizesFixed(bytes=low)
    step = 1 if unaligned else low
    if high % step == 0 or high // low >= _MAX_TABLE:
        return model.SizesRange(min_bytes=low, max_bytes=high - high % step, step_bytes=step)
    table = []
    for value in range(low, low + high, low):
        weight = float(min(low + high, value + low) - value)
        table.append(model.SizeWeight(bytes=min(value, high), weight=weight))
    return model.SizesSplit(table=tuple(table))
