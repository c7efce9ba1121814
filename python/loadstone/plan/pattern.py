"""What I/O a job asks for, as a Pattern: shares, sizes, addresses.

Knows the defaults and precedences of fio's options for block sizes and random addresses
(fio's HOWTO, "Block size", "I/O type"). Knows no file and no device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError
from loadstone.plan import model, rows
from loadstone.workload.model import (
    BlockSizes,
    Distribution,
    FixedSize,
    Job,
    SizeRange,
    SizeShare,
    SizeTable,
)

if TYPE_CHECKING:
    from loadstone.plan.notes import Notes

DEFAULT_BLOCK_BYTES: Final = 4096
DEFAULT_RW: Final = "read"
DEFAULT_READ_PERCENT: Final = 50
_MAX_TABLE: Final = 1024


def shares(job: Job) -> tuple[int, int, int]:
    """Percent of reads, writes and trims; `verify_only` reads what it would have written."""
    if job.verify_only:
        return 100, 0, 0
    if job.rows:
        return rows.shares(job)
    rw = (job.rw or DEFAULT_RW).removeprefix("rand")
    if rw == "rw":
        reads = DEFAULT_READ_PERCENT if job.rwmix_read_percent is None else job.rwmix_read_percent
        return reads, 100 - reads, 0
    return {"read": (100, 0, 0), "write": (0, 100, 0), "trim": (0, 0, 100), "trimwrite": (0, 50, 50)}[rw]


def is_random(job: Job) -> bool:
    """Whether addresses are random, or some are."""
    if job.rows:
        return any(row.random_percent for row in job.rows)
    return (job.rw or DEFAULT_RW).startswith("rand")


def sizes(job: Job) -> tuple[BlockSizes, BlockSizes, BlockSizes]:
    """Block sizes of reads, writes, trims: a split before a range before a fixed size."""
    if job.rows:
        return rows.sizes(job)
    found: list[BlockSizes] = [
        job.bssplit[i] or job.bsrange[i] or job.bs[i] or FixedSize(bytes=DEFAULT_BLOCK_BYTES)
        for i in range(3)
    ]
    if job.bs_is_seq_rand:
        found = [found[1] if is_random(job) else found[0]] * 3
    return found[0], found[1], found[2]


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
    """Smallest block over all three directions, used or not, as fio takes it."""
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
    if job.rows:
        return rows.pattern(job, unit_bytes)
    reads, writes, trims = shares(job)
    follows = (job.rw or "").endswith("trimwrite")
    if follows:  # The engine draws trims only; each brings its write.
        writes, trims = 0, 100
    _check(job, notes)
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
    size = job.zone_size_bytes or 0
    if job.zone_mode == "none" or (job.zone_mode is None and not size):
        for field in ("zone_size_bytes", "zone_range_bytes", "zone_skip_bytes"):
            if getattr(job, field):
                notes.info(job, field, f"{field} has no effect without zonemode=strided")
        return None
    if not size:
        raise InputError("zonemode=strided needs zonesize", where=job.at("zone_mode"), hint="add zonesize=")
    window = job.zone_range_bytes or size
    if window < max_block(job):
        raise InputError(
            f"a zone of {window} bytes is smaller than the largest block of {max_block(job)}",
            where=job.at("zone_range_bytes" if job.zone_range_bytes else "zone_size_bytes"),
            hint="give a larger zonerange or a smaller bs",
        )
    return model.Strided(zone_bytes=size, range_bytes=window, skip_bytes=job.zone_skip_bytes or 0)


def _check(job: Job, notes: Notes) -> None:
    """Refuse or note what has no effect in this combination."""
    mixed = (job.rw or DEFAULT_RW) in ("rw", "randrw")
    if job.rwmix_read_percent is not None and not mixed:
        notes.info(job, "rwmix_read_percent", f"rwmixread has no effect with rw={job.rw or DEFAULT_RW}")
    if job.bs_is_seq_rand and any(p not in (None, 100) for p in job.percentage_random):
        raise RefusedError(
            "bs_is_seq_rand with a mix of sequential and random is not supported",
            where=job.at("bs_is_seq_rand"),
            hint="use two jobs",
        )
    if job.bs_unaligned and job.direct:
        raise RefusedError(
            "unaligned block sizes cannot be direct I/O",
            where=job.at("bs_unaligned"),
            hint="remove direct=1 or bs_unaligned",
        )
    for better, worse in (("bssplit", "bsrange"), ("bssplit", "bs"), ("bsrange", "bs")):
        if any(getattr(job, better)) and any(getattr(job, worse)) and job.at(better) != job.at(worse):
            notes.trap(job, worse, f"{worse} has no effect where {better} is given, as in fio")


def _op(job: Job, i: int, block: BlockSizes, notes: Notes, range_bytes: int) -> model.OpPattern:
    random = is_random(job)
    percent = job.percentage_random[i]
    align = job.blockalign_bytes[i] if random else None
    number = job.rw_number
    return model.OpPattern(
        random_percent=(100 if percent is None else int(percent)) if random else 0,
        random=_order(job, i, block, notes, range_bytes),
        stride_bytes=0 if random or number is None else number,
        stride_spread_bytes=0 if random else job.stride_spread_bytes,
        run_length=number if random and number else 1,
        run_identical=job.rw_sequencer == "identical",
        sizes=_sizes(job, block, notes),
        align_bytes=align or smallest(block),
    )


def _order(job: Job, i: int, block: BlockSizes, notes: Notes, range_bytes: int) -> model.RandomOrder:
    distribution = job.random_distribution[i] or Distribution(kind="random")
    if distribution.reuse is not None:
        return model.RandomOrderReuse(**distribution.reuse.model_dump())
    if distribution.kind == "sequence":
        return _listed(job, i, distribution, block, range_bytes)
    if distribution.kind.startswith("zoned"):
        return model.RandomOrderZoned(zones=_zones(job, distribution, range_bytes, smallest(block)))
    return _skewed(distribution) or _uniform(job, i, block, notes)


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
    repeat = bool(job.norandommap) and job.random_generator != "lfsr"  # which needs no map
    aligned = job.blockalign_bytes[i]
    runs = smallest(block) * (job.rw_number or 1)  # Blocks moved in parts are aligned to the whole.
    if is_random(job) and not repeat and aligned not in (None, smallest(block), runs):
        repeat = True
        notes.info(job, "blockalign_bytes", "blockalign turns the random map off, as in fio")
    return model.RandomOrderUniform(repeat=repeat)


def _listed(
    job: Job, i: int, distribution: Distribution, block: BlockSizes, range_bytes: int
) -> model.RandomOrder:
    """Blocks by number; one that lies beyond the range is refused."""
    blocks = range_bytes // (job.blockalign_bytes[i] or smallest(block))
    beyond = [number for number in distribution.blocks if number >= blocks]
    if beyond and is_random(job) and shares(job)[i]:
        raise InputError(
            f"block {beyond[0]} of the sequence lies beyond the range of {blocks} blocks",
            where=job.at("random_distribution"),
            hint="blocks are counted from 0: give smaller numbers or a larger size",
        )
    return model.RandomOrderListed(blocks=distribution.blocks, advance=bool(job.sequence_advances))


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
        raise RefusedError(
            f"the zones do not fit {range_bytes} bytes in blocks of {block_bytes}",
            where=job.at("random_distribution"),
            hint="give a larger size or fewer zones",
        )
    return tuple(
        model.Zone(access_percent=access, length_bytes=length)
        for (access, _), length in zip(distribution.zones, lengths, strict=True)
    )


def _sizes(job: Job, block: BlockSizes, notes: Notes) -> model.Sizes:
    if isinstance(block, FixedSize):
        return model.SizesFixed(bytes=block.bytes)
    if isinstance(block, SizeRange):
        return _range(job, block)
    return _table(job, block, notes)


def _range(job: Job, block: SizeRange) -> model.Sizes:
    """Multiples of the smallest size; a largest one that is none gets its own share.

    fio draws from `[min, min + max)`, cuts down to a multiple and caps at the largest, so
    a cap between two multiples stands for what was drawn above it.
    """
    low, high = block.min_bytes, block.max_bytes
    if low == high:
        return model.SizesFixed(bytes=low)
    step = 1 if job.bs_unaligned else low
    if high % step == 0 or high // low >= _MAX_TABLE:
        return model.SizesRange(min_bytes=low, max_bytes=high - high % step, step_bytes=step)
    table = []
    for value in range(low, low + high, low):
        weight = float(min(low + high, value + low) - value)
        table.append(model.SizeWeight(bytes=min(value, high), weight=weight))
    return model.SizesSplit(table=tuple(table))


def _table(job: Job, block: SizeTable, notes: Notes) -> model.Sizes:
    given = sum(entry.percent or 0.0 for entry in block.entries)
    missing = sum(entry.percent is None for entry in block.entries)
    entries = [
        SizeShare(e.bytes, (100 - given) / missing if e.percent is None else e.percent) for e in block.entries
    ]
    rest = 100 - sum(e.percent or 0.0 for e in entries)
    if rest > 1e-9:
        most = max(range(len(entries)), key=lambda i: entries[i].percent or 0.0)
        entries[most] = SizeShare(entries[most].bytes, (entries[most].percent or 0.0) + rest)
        notes.trap(
            job,
            "bssplit",
            f"the shares add up to {given:g}%: {entries[most].bytes} bytes gets the rest, as in fio",
        )
    used = [e for e in entries if e.percent]
    return model.SizesSplit(
        table=tuple(model.SizeWeight(bytes=e.bytes, weight=e.percent or 0.0) for e in used)
    )
