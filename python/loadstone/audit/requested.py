"""What a job was asked to do, as a case has it: from the Workload.

What planning alone decides (depth, backend, places, seeds) comes as `Planned`, the rates that were due
from the analysis. Defaults are settled where the planner settles them, by the functions it plans with.
Knows no Plan, no sample and no rule.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone.audit import job_options
from loadstone.audit.case import JobRequest, PayloadProperties
from loadstone.plan import large_blocks, pattern, stream
from loadstone.plan.model import FillPattern, FillZero, SizesFixed, SizesRange
from loadstone.plan.planning_notes import Notes
from loadstone.plan.verification import header_verification, verify
from loadstone.workload.addresses import DIRECTIONS
from loadstone.workload.block_sizes import FixedSize
from loadstone.workload.rows import RowWork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.audit.planned import Planned
    from loadstone.plan.model import Sizes
    from loadstone.workload.block_sizes import BlockSizes
    from loadstone.workload.model import Job

MAX_SIZES: Final = 64
"""A range of sizes with more steps than this is told by this many of them."""


@dataclass(frozen=True, slots=True)
class DueRates:
    """Mean rates that were due in the measured time, by operation."""

    iops: Mapping[str, float]
    bytes_per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Moves:
    """Reads, writes and trims: percent of each, its sizes with their shares, and how many are random."""

    percent: tuple[float, float, float]
    sizes: tuple[dict[int, float], dict[int, float], dict[int, float]]
    """Empty: not known."""
    random_percent: float
    exact: tuple[bool, bool, bool] = (True, True, True)
    """What is moved has these sizes: nothing is cut."""


def request(name: str, jobs: Sequence[Job], planned: Planned, due: DueRates) -> JobRequest:
    """Return what was asked of the jobs of one name that run together; nearly always that is one.

    What several do not have in common is not known; of no job that is known, what was planned is all.
    """
    if not jobs:
        return _planned(JobRequest(name), planned)
    first, *others = (_of_job(large_blocks.in_parts(job, Notes()), planned, due) for job in jobs)
    for other in others:
        first = _common(first, other)
    return replace(first, job=name, clones=sum(job.schedule.numjobs or 1 for job in jobs))


def _planned(asked: JobRequest, planned: Planned) -> JobRequest:
    return replace(
        asked,
        iodepth=planned.iodepth,
        depth=planned.depth,
        backend=planned.backend,
        polls=planned.polls,
        direct=planned.direct,
        targets=planned.targets,
        ranges=planned.ranges,
        size_bytes=asked.size_bytes or planned.size_bytes,
        seeds=planned.seeds,
    )


def _common(one: JobRequest, other: JobRequest) -> JobRequest:
    unknown: dict[str, Any] = {
        field.name: {} if isinstance(getattr(one, field.name), dict) else None
        for field in fields(one)
        if getattr(one, field.name) != getattr(other, field.name)
    }
    return replace(one, **unknown)


def _of_job(job: Job, planned: Planned, due: DueRates) -> JobRequest:
    tree = job.tree
    moves = _moves(job)
    reads, writes, _trims = moves.percent
    operation = None if tree is None or tree.operation == "transfer" else tree.operation
    flush = stream.flush(job)
    operations = frozenset((operation,)) if operation else _operations(moves)
    reread = _reads_again(job)
    thinks = _thinks(job)
    sized = [moves.sizes[at] if moves.exact[at] and tree is None else {} for at in (0, 1)]
    return _planned(
        JobRequest(
            job=job.name,
            asked_iodepth=job.engine.iodepth,
            operation=operation,
            operations=operations | {"read"} if reread else operations,
            read_percent=100 * reads / (reads + writes)
            if operation is None and not reread and reads + writes
            else None,
            random_percent=moves.random_percent if operation is None else None,
            block_bytes=_mixed(moves) if operation is None else {},
            # The end of a file of a tree is where it is: its last transfer has the size that is left.
            read_block_bytes=sized[0] if reads else {},
            write_block_bytes=sized[1] if writes else {},
            synchronous=1 in (flush.fsync_every, flush.fdatasync_every)
            or job.durability.sync not in (None, "none"),
            end_fsync=flush.at_end or flush.on_close,
            flushes=any(flush.model_dump().values()),
            paced=thinks or bool(due.iops or due.bytes_per_s) or _asks_rate(job, operations) or _flows(job),
            thinks=thinks,
            options=job_options.of_job(job),
            rate_iops=_rate(due.iops, operations, reread=reread),
            rate_bytes_per_s=_rate(due.bytes_per_s, operations, reread=reread),
            size_bytes=tree.working_set_bytes or None if tree is not None else None,
            payload=_payload(job) if writes else None,
            runtime_s=None if verify.is_pass(job) else (job.limits.runtime_ns or 0) / 1e9 or None,
            ramp_s=0.0 if verify.is_pass(job) else stream.ramp_ns(job) / 1e9,
        ),
        planned,
    )


def _moves(job: Job) -> _Moves:
    if isinstance(job.work, RowWork):
        return _of_rows(job.work)
    if verify.is_pass(job):
        sizes = _pass_sizes(pattern.sizes(job)[0])
        return _Moves((100.0, 0.0, 0.0), (sizes, {}, {}), 0.0)
    would = header_verification.rehearsed(job)
    drawn = _of_blocks(would)
    if would is job or not verify.writes(would):
        return drawn
    # What it would write is read.
    return _Moves((100.0, 0.0, 0.0), (_mixed(drawn), {}, {}), drawn.random_percent, (all(drawn.exact),) * 3)


def _of_blocks(job: Job) -> _Moves:
    shares, blocks = pattern.shares(job), pattern.sizes(job)
    if pattern.trims_then_writes(job):
        shares = (0, 0, 100)  # Each trim brings its write.
    block_options = pattern.blocks_of(job)
    drawn = [
        _sizes(pattern.drawn_sizes(block, unaligned=block_options.sizes.bs_unaligned)) for block in blocks
    ]
    random = block_options.addresses.percentage_random if pattern.is_random(job) else (0.0, 0.0, 0.0)
    return _Moves(
        percent=shares,
        sizes=(drawn[0], drawn[1], drawn[2]),
        random_percent=sum(int(one) * share for one, share in zip(random, shares, strict=True)) / sum(shares),
        exact=(_is_exact(job, 0, drawn[0]), _is_exact(job, 1, drawn[1]), _is_exact(job, 2, drawn[2])),
    )


def _is_exact(job: Job, direction: int, sizes: dict[int, float]) -> bool:
    """Whether an operation has the sizes that were asked for.

    What takes every block once at random places is cut where it would reach into a block that is
    taken, so that sizes of several kinds are on average smaller than asked for.
    """
    addresses = pattern.blocks_of(job).addresses
    random = pattern.is_random(job) and int(addresses.percentage_random[direction]) > 0
    return len(sizes) < 2 or not random or not pattern.takes_each_once(job, direction)


def _of_rows(work: RowWork) -> _Moves:
    whole = sum(row.percent for row in work.rows)
    parts = [(row, row.percent / whole) for row in work.rows]
    block_sizes: list[dict[int, float]] = []
    shares: list[float] = []
    for reads in (True, False):
        weighted: dict[int, float] = defaultdict(float)
        for row, part in parts:
            percent = part * (row.read_percent if reads else 100 - row.read_percent)
            if percent:
                weighted[row.bytes] += percent
        shares.append(sum(weighted.values()))
        block_sizes.append({size: percent / shares[-1] for size, percent in weighted.items()})
    random = sum(part * row.random_percent for row, part in parts)
    return _Moves((shares[0], shares[1], 0.0), (block_sizes[0], block_sizes[1], {}), random)


def _pass_sizes(block: BlockSizes) -> dict[int, float]:
    """Return what a pass of verification reads at once: of several sizes it makes one of its own."""
    return {block.bytes: 1.0} if isinstance(block, FixedSize) else {}


def _mixed(moves: _Moves) -> dict[int, float]:
    whole = sum(moves.percent)
    mixed: dict[int, float] = defaultdict(float)
    for sizes, percent in zip(moves.sizes, moves.percent, strict=True):
        for size, share in sizes.items() if percent else ():
            mixed[size] += share * percent / whole
    return dict(mixed)


def _sizes(sizes: Sizes) -> dict[int, float]:
    if isinstance(sizes, SizesFixed):
        return {sizes.bytes: 1.0}
    if isinstance(sizes, SizesRange):
        steps = (sizes.max_bytes - sizes.min_bytes) // max(1, sizes.step_bytes) + 1
        count = min(steps, MAX_SIZES)
        places = (at * (steps - 1) // max(1, count - 1) for at in range(count))
        block_sizes = [sizes.min_bytes + place * sizes.step_bytes for place in places]
        return dict.fromkeys(block_sizes, 1 / count)
    whole = sum(entry.weight for entry in sizes.table)
    shares: dict[int, float] = defaultdict(float)
    for entry in sizes.table:
        shares[entry.bytes] += entry.weight / whole
    return dict(shares)


def _operations(moves: _Moves) -> frozenset[str]:
    return frozenset(op for op, percent in zip(DIRECTIONS, moves.percent, strict=True) if percent)


def _reads_again(job: Job) -> bool:
    """Whether what it wrote is read by it, too, which is nobody's share."""
    return verify.reads_back(job) or verify.reads_beside_writes(job) or header_verification.reads_back(job)


def _thinks(job: Job) -> bool:
    return bool(job.pacing.thinktime_ns) and job.tree is None and not verify.is_pass(job)


def _flows(job: Job) -> bool:
    """Whether it takes its turn in a flow of several."""
    return bool(job.pacing.flow) and job.tree is None


def _asks_rate(job: Job, asked: frozenset[str]) -> bool:
    """Whether it has a rate of its own for something it does."""
    if job.tree is not None:
        return job.tree.rate_ops is not None
    rates = zip(DIRECTIONS, job.pacing.rate_bytes, job.pacing.rate_iops, strict=True)
    return not verify.is_pass(job) and any((of_bytes or ops) and op in asked for op, of_bytes, ops in rates)


def _rate(due: Mapping[str, float], asked: frozenset[str], *, reread: bool) -> float | None:
    """Return the mean rate that was due, all operations together; None when one is not paced."""
    return sum(due.values()) if asked <= set(due) and not reread else None


def _payload(job: Job) -> PayloadProperties:
    payload = stream.payload(job)
    stamped = verify.is_verified(job) and not verify.by_headers(job)
    kind: Literal["zero", "pattern", "stamped", "random"] = "stamped" if stamped else "random"
    if isinstance(payload.fill, FillZero):
        kind = "zero"
    elif isinstance(payload.fill, FillPattern):
        kind = "pattern"
    return PayloadProperties(
        kind=kind,
        repeats=not (payload.refill or payload.stamp or stamped),
        compress_percent=payload.compress_percent,
        dedupe_percent=payload.dedupe_percent,
    )
