"""What a Plan says of a phase, for probes that are made of it: also before it has run.

Knows the Plan's streams of one stage. After a run the audit takes the same from what was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.explanations.job_facts import GRID_BYTES, WHOLE, JobFacts
from loadstone.plan.derived import asked_operations
from loadstone.plan.model import FillRandom, SizesFixed, SizesRange

if TYPE_CHECKING:
    from loadstone.plan.model import Plan, Sizes, Stream


def job_facts(plan: Plan, stage: int) -> JobFacts:
    """Return the facts of one stage."""
    streams = streams_of(plan, stage)
    moves = {op for stream in streams for op in asked_operations(stream)}
    files = [use for stream in streams for use in stream.files]
    used = {use.target: 0 for use in files}
    for use in files:
        used[use.target] = max(used[use.target], use.length_bytes)
    whole = sum(plan.targets[index].size_bytes for index in used)
    return JobFacts(
        reads="read" in moves,
        writes="write" in moves,
        in_order=any(any(share < 100 for share in _random(stream)) for stream in streams),
        paced=any(
            stream.pace.read or stream.pace.write or stream.pace.trim or stream.pace.think
            for stream in streams
        ),
        depth=sum(stream.iodepth for stream in streams),
        targets=len({plan.targets[index].path for index in used}),
        partial=bool(whole) and sum(used.values()) < WHOLE * whole,
        off_grid=any(use.offset_bytes % GRID_BYTES for use in files)
        or any(size % GRID_BYTES for stream in streams for size in block_sizes(stream)),
        repeats_payload=any(
            not (
                isinstance(stream.payload.fill, FillRandom)
                and (stream.payload.refill or stream.payload.stamp)
            )
            or stream.payload.compress_percent > 0
            or stream.payload.dedupe_percent > 0
            for stream in streams
        ),
        in_tree=any(stream.tree is not None for stream in streams),
    )


def streams_of(plan: Plan, stage: int) -> list[Stream]:
    """Return the streams of a stage."""
    return [stream for stream in plan.streams if plan.workers[stream.worker].stage == stage]


def block_sizes(stream: Stream) -> set[int]:
    """Return the sizes of its reads and writes, of a range or a table the smallest and the largest."""
    shares = (stream.pattern.read_percent, stream.pattern.write_percent)
    ops = (stream.pattern.read, stream.pattern.write)
    found: set[int] = set()
    for share, op in zip(shares, ops, strict=True):
        if share:
            found |= _sizes(op.sizes)
    return found


def _sizes(sizes: Sizes) -> set[int]:
    if isinstance(sizes, SizesFixed):
        return {sizes.bytes}
    if isinstance(sizes, SizesRange):
        return {sizes.min_bytes, sizes.max_bytes}
    return {entry.bytes for entry in sizes.table}


def _random(stream: Stream) -> tuple[float, ...]:
    shares = (stream.pattern.read_percent, stream.pattern.write_percent)
    ops = (stream.pattern.read, stream.pattern.write)
    return tuple(op.random_percent for share, op in zip(shares, ops, strict=True) if share)
