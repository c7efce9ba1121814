"""What a clone does besides its addresses: pace, flushes, payload, limits, errors, depth.

Knows how they fit together, and no file and no worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.messages import make_error, say
from loadstone.plan import model as plan
from loadstone.plan.model import (
    DedupeSet,
    FillPattern,
    FillRandom,
    FillZero,
    Pace,
    Payload,
    Rate,
    RateAmountBytes,
    RateAmountOps,
    RatePoint,
    RateProcess,
    Think,
)
from loadstone.plan.pattern import (
    blocks_of,
    max_block,
    shares,
    sizes,
    smallest,
    trims_then_writes,
    walks_only,
)
from loadstone.plan.rows import read_percent
from loadstone.plan.work_kinds import kind_of
from loadstone.workload.trees import OPENS

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from loadstone.errors import Where
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

UNMERGED: Final = 2
"""So many I/Os of one system call are not merged: the kernel plugs its queue for more (IO_PLUG_THRESHOLD
in io_uring/io_uring.c, AIO_PLUG_THRESHOLD in fs/aio.c)."""


def pace(job: Job, notes: Notes) -> Pace:
    """Arrival rates of the directions in use, and think time; operations in a tree have a rate there."""
    if kind_of(job).one_rate:
        return Pace(read=None, write=None, trim=None, think=None)
    paced = shares(job)
    if trims_then_writes(job):
        paced = (0, 0, 100)  # Each trim brings its write.
    rates = [_rate(job, i) if share else None for i, share in enumerate(paced)]
    if job.pacing.rate_profile and not any(rates):
        raise job.refusal("plan.pace.profile", "pacing.rate_profile")
    return Pace(read=rates[0], write=rates[1], trim=rates[2], think=_think(job, notes))


def _rate(job: Job, i: int) -> Rate | None:
    of_bytes, of_ops = job.pacing.rate_bytes[i], job.pacing.rate_iops[i]
    if of_bytes and of_ops:
        raise job.refusal("plan.pace.two_rates", "pacing.rate_iops")
    for field, base in (("pacing.rate_min_bytes", of_bytes), ("pacing.rate_iops_min", of_ops)):
        if job.value(field)[i] and not base:
            wanted = "rate" if field == "pacing.rate_min_bytes" else "rate_iops"
            raise job.refusal("plan.pace.minimum_alone", field, option=wanted)
    if not of_bytes and not of_ops:
        return None
    amount: RateAmountOps | RateAmountBytes
    if of_ops:
        amount, minimum = RateAmountOps(per_second=of_ops), job.pacing.rate_iops_min[i]
    else:
        amount, minimum = RateAmountBytes(per_second=of_bytes or 0.0), job.pacing.rate_min_bytes[i]
    if minimum and minimum > amount.per_second:
        raise job.error(
            "plan.pace.minimum", "pacing.rate_bytes", minimum=f"{minimum:g}", rate=f"{amount.per_second:g}"
        )
    return Rate(
        amount=amount,
        process=RateProcess(job.pacing.rate_process or "linear"),
        profile=tuple(RatePoint(at_ns=at, share=share) for at, share in job.pacing.rate_profile),
        phase=0.0,
        minimum=minimum or 0.0,
        min_window_ns=job.pacing.rate_cycle_ns,
    )


def taking_turns(pace: Pace, clone: int, clones: int) -> Pace:
    """Return the pace of one clone of several: evenly spaced arrivals of all are evenly spaced."""
    rates = {
        op: in_turn(rate, clone, clones)
        for op, rate in (("read", pace.read), ("write", pace.write), ("trim", pace.trim))
        if rate is not None
    }
    return pace.model_copy(update=rates)


def in_turn(rate: Rate, place: int, of: int) -> Rate:
    """Return the rate of one of several."""
    linear = rate.process is RateProcess.LINEAR
    return rate.model_copy(update={"phase": place / of}) if linear else rate


@dataclass(frozen=True, slots=True)
class TotalRate:
    """I/Os per second of everything that runs at the same time, and its profile as in `Job`."""

    iops: float
    process: RateProcess
    profile: tuple[tuple[int, float], ...] = ()
    where: Where | None = None
    """Where it was asked for."""


def paced_together(streams: Sequence[plan.Stream], total: TotalRate) -> list[plan.Stream]:
    """Return the streams of one stage with their parts of a total rate, each by its shares of operations.

    Parts are equal; streams of one flow share theirs by weight, and then need the flow no more.
    Raises RefusedError for a stream that has a rate of its own.
    """
    paced_streams = []
    shares = parts(streams)
    for position, stream in enumerate(streams):
        if stream.pace.read or stream.pace.write or stream.pace.trim or (stream.tree and stream.tree.rate):
            raise make_error(RefusedError, "plan.pace.own_rate", where=total.where, name=stream.name)
        if stream.search is not None:
            raise make_error(RefusedError, "plan.pace.searches", where=total.where, name=stream.name)
        iops, count = total.iops * shares[position], len(streams)
        update: dict[str, object] = {"flow": None}
        if stream.tree is not None:
            rate = in_turn(part(total, iops), position, count)
            update["tree"] = stream.tree.model_copy(update={"rate": rate})
        else:
            rates = _by_shares(stream.pattern, total, iops)
            update["pace"] = taking_turns(stream.pace.model_copy(update=rates), position, count)
        paced_streams.append(stream.model_copy(update=update))
    return paced_streams


def _by_shares(of: plan.Pattern, total: TotalRate, iops: float) -> dict[str, Rate | None]:
    """Return the rate of each direction, by its share of the I/Os."""
    percents: tuple[float, float, float] = (of.read_percent, of.write_percent, of.trim_percent)
    if of.rows is not None:
        reads = read_percent(of.rows)
        percents = (reads, 100 - reads, 0)
    if of.trim_then_write:
        percents = (0, 0, 100)
    return {
        op: part(total, iops / 100 * percent) if percent else None
        for op, percent in zip(("read", "write", "trim"), percents, strict=True)
    }


def parts(streams: Sequence[plan.Stream]) -> list[float]:
    """Share a whole out between streams: equally, but by weight within a flow."""
    weights: dict[int, list[int]] = {}
    for stream in streams:
        if stream.flow is not None:
            weights.setdefault(stream.flow.id, []).append(stream.flow.weight)
    equal = 1 / len(streams)
    return [
        equal
        if stream.flow is None
        else equal * len(weights[stream.flow.id]) * stream.flow.weight / sum(weights[stream.flow.id])
        for stream in streams
    ]


def part(total: TotalRate, per_second: float) -> Rate:
    """Return a part of a total rate, as large as told."""
    return Rate(
        amount=RateAmountOps(per_second=per_second),
        process=total.process,
        profile=tuple(RatePoint(at_ns=at, share=share) for at, share in total.profile),
        phase=0.0,
        minimum=0.0,
        min_window_ns=0,
    )


def _think(job: Job, notes: Notes) -> Think | None:
    if not job.pacing.thinktime_ns:
        if job.pacing.thinktime_spin_ns:
            text = say("plan.notes.no_effect_without", option="thinktime_spin", needed="thinktime")
            notes.info(job, "pacing.thinktime_spin_ns", text)
        if job.pacing.thinktime_iotime_ns:
            text = say("plan.notes.no_effect_without", option="thinktime_iotime", needed="thinktime")
            notes.info(job, "pacing.thinktime_iotime_ns", text)
        return None
    if job.pacing.thinktime_iotime_ns and job.pacing.thinktime_blocks:
        raise job.refusal("plan.pace.think", "pacing.thinktime_iotime_ns")
    spin = job.pacing.thinktime_spin_ns or 0
    if spin > job.pacing.thinktime_ns:
        notes.info(job, "pacing.thinktime_spin_ns", say("plan.notes.all_spun"))
    return Think(
        pause_ns=job.pacing.thinktime_ns,
        spin_ns=min(spin, job.pacing.thinktime_ns),
        every_ios=job.pacing.thinktime_blocks or 1,
        count_issued=job.pacing.thinktime_blocks_type == "issue",
        every_ns=job.pacing.thinktime_iotime_ns or 0,
    )


def flow(job: Job, notes: Notes) -> plan.Flow | None:
    """Return the clone's share of the I/Os of its flow; None: it has none."""
    if job.pacing.flow:
        return plan.Flow(
            id=job.pacing.flow_id or 0,
            weight=job.pacing.flow,
            sleep_ns=job.pacing.flow_sleep_ns or 0,
            ahead=job.pacing.flow_ahead or 0,
        )
    for field in ("pacing.flow_id", "pacing.flow_sleep_ns"):
        if job.value(field):
            notes.info(
                job, field, say("plan.notes.no_effect_without", option=job.option(field), needed="flow")
            )
    return None


def flush(job: Job) -> plan.Flush:
    """Flushes; without writes there are none, but in a tree whatever is opened may be flushed when closed."""
    writing = shares(job)[1] > 0
    closes = writing if job.tree is None else job.tree.operation in OPENS
    return plan.Flush(
        fsync_every=(job.durability.fsync_every or 0) if writing else 0,
        fdatasync_every=(job.durability.fdatasync_every or 0) if writing else 0,
        at_end=bool(job.durability.end_fsync) and writing,
        on_close=bool(job.durability.fsync_on_close) and closes,
    )


def payload(job: Job) -> Payload:
    """Bytes written; content that all can be compressed away is zeros, and a pattern has no stamp."""
    requests = job.payload
    compress = requests.compress.percent if requests.compress else 0
    fill: FillZero | FillPattern | FillRandom = FillRandom()
    pattern = job.verification.verify_pattern or requests.buffer_pattern
    if pattern is not None and not compress:
        fill = FillPattern(bytes=pattern)
    elif requests.zero_buffers or compress == 100:
        fill = FillZero()
    is_random = isinstance(fill, FillRandom)
    chunks, repeat = (requests.compress, requests.repeat) if is_random else (None, None)
    refill = is_random and requests.refill_buffers
    return Payload(
        fill=fill,
        refill=refill,
        stamp=is_random and requests.scramble_buffers and not (refill or chunks or repeat),
        compress_percent=chunks.percent if chunks else 0,
        compress_chunk_bytes=chunks.chunk_bytes if chunks else 0,
        dedupe_percent=repeat.percent if repeat else 0,
        dedupe_set=None,
        dedupe_unit_bytes=(repeat.unit_bytes or 0) if repeat else 0,
    )


def dedupe_set(job: Job, seed: int, shared_seed: int, total_bytes: int) -> DedupeSet | None:
    """Return the contents that writes repeat from, None for the last ones of the stream."""
    repeat = job.payload.repeat
    if repeat is None or repeat.set_percent is None:
        return None
    blocks = total_bytes // max(smallest(sizes(job)[1]), 1)
    return DedupeSet(
        contents=max(1, blocks * repeat.set_percent // 100),
        seed=shared_seed if repeat.set_is_shared else seed,
    )


@dataclass(frozen=True, slots=True)
class Once:
    """Bytes of one pass of a clone; trims of `trimwrite` count once."""

    moved: int
    """In whole blocks."""
    asked: int
    """As the job says it."""
    region: int
    """What its files have; 0 in a tree."""


def limits(job: Job, once: Once, notes: Notes, chance: random.Random) -> plan.Limits:
    """When the clone starts and ends."""
    loops = job.limits.loops or 1
    runtime = job.limits.runtime_ns or 0
    time_based = bool(job.limits.time_based)
    if time_based and not runtime:
        notes.trap(
            job,
            "limits.time_based",
            say("plan.notes.ends_by_size"),
        )
        time_based = False
    twice = 2 if trims_then_writes(job) else 1
    low, high = job.schedule.start_delay_ns or (0, 0)
    return plan.Limits(
        start_delay_ns=chance.randint(low, high),
        ramp_ns=ramp_ns(job),
        runtime_ns=runtime,
        time_based=time_based,
        bytes=0 if time_based else _bounded(_moved_bytes(job, once) * twice),
        ops=0 if time_based else _bounded((job.limits.number_ios or 0) * loops * twice),
        ends_stage=bool(job.schedule.exitall),
        ends_stage_on_error=bool(job.schedule.exitall_on_error),
        max_latency_ns=tuple(int(longest or 0) for longest in job.limits.max_latency_ns),  # type: ignore[arg-type] # three
        prepare_only=bool(job.files.create_only),
    )


def _moved_bytes(job: Job, once: Once) -> int:
    """Return what all passes move: where one touches all of the region once, it ends there.

    More than the region then takes as many passes as that needs, and at least those that are asked for.
    What each pass moves beyond what is asked for, in its last block, the last one has less.
    """
    loops = job.limits.loops or 1
    if loops == 1:
        return once.moved
    moved = once.moved * loops
    if once.asked < once.moved:
        moved = min(moved, -(-once.asked * loops // max_block(job)) * max_block(job))
    if not 0 < once.region < once.moved or _touches_again(job):
        return moved
    # In sequence each direction goes through it by itself, and at identical addresses several times.
    walks = 1 if not walks_only(job) else sum(share > 0 for share in shares(job))
    runs = job.blocks.addresses if job.blocks else None
    times = runs.run_length if runs and runs.run_identical else 1
    pass_bytes = walks * times * once.region
    enough = (once.moved - max_block(job)) // pass_bytes + 1
    return min(moved, max(loops, enough) * pass_bytes)


def _touches_again(job: Job) -> bool:
    """Whether a pass may touch a place again: no map is kept of what it has touched."""
    if walks_only(job):
        return False
    addresses = blocks_of(job).addresses
    uneven = any(one.kind != "random" for one in addresses.random_distribution)
    return addresses.random_generator != "lfsr" and (addresses.norandommap or uneven)


def ramp_ns(job: Job) -> int:
    """Return what is left out at the start; a search's way to its depth is its ramp."""
    searches = job.search.latency_target_ns and not job.search.latency_run
    return 0 if searches else job.limits.ramp_ns or 0


def _bounded(value: int) -> int:
    return min(value, 2**63 - 1)


def errors(job: Job) -> plan.ErrorPolicy:
    """Return what happens on an error."""
    go_on = job.errors.continue_on_error
    return plan.ErrorPolicy(
        continue_read=go_on in ("read", "io", "all"),
        continue_write=go_on in ("write", "io", "all"),
        ignore_read=job.errors.ignore_read_errors,
        ignore_write=job.errors.ignore_write_errors,
        continue_after=job.errors.continue_after,
    )


def batch(job: Job, iodepth: int, pattern: plan.Pattern, notes: Notes) -> plan.Batch | None:
    """Batch sizes when any was asked for, within the depth; else none.

    Neighbours that are handed over together are merged, and the device sees fewer and larger I/Os
    than the job asks for: without a batch asked for, no more go at once than the kernel leaves alone.
    """
    batch_sizes = job.engine.batch
    if iodepth == 1:
        return None
    if batch_sizes is None:
        apart = plan.Batch(submit=UNMERGED, complete_min=1, complete_max=iodepth, low=iodepth)
        return apart if job.engine.direct and _makes_neighbours(pattern) else None
    least = min(batch_sizes.complete_min, iodepth)
    most = min(max(batch_sizes.complete_max, least), iodepth)
    if batch_sizes.low is not None and batch_sizes.low > iodepth:
        notes.info(job, "engine.iodepth_low", say("plan.notes.low_above_depth", iodepth=iodepth))
    return plan.Batch(
        submit=min(batch_sizes.submit, iodepth),
        complete_min=least,
        complete_max=max(most, 1),
        low=min(batch_sizes.low or iodepth, iodepth),
    )


def _makes_neighbours(pattern: plan.Pattern) -> bool:
    """Whether I/Os follow each other at adjacent addresses."""
    if pattern.rows is not None:
        return any(row.random_percent < 100 for row in pattern.rows)
    does = (
        (pattern.read_percent, pattern.read),
        (pattern.write_percent, pattern.write),
        (pattern.trim_percent, pattern.trim),
    )
    return any(share and order.random_percent < 100 for share, order in does)


def open_files(job: Job, files: int) -> int | None:
    """How many files a clone is at work on; None: all of them, or one after the other."""
    most, service = job.placement.openfiles, job.placement.file_service
    in_order = service is not None and service.kind == "sequential"
    return None if most is None or most >= files or in_order else most


def file_choice(job: Job) -> plan.FileChoice:
    """How the next file is chosen."""
    service = job.placement.file_service
    every = (service.every if service else None) or 1
    if service is None or service.kind == "roundrobin":
        return plan.FileChoiceRoundRobin(every=every)
    if service.kind == "random":
        return plan.FileChoiceRandom(every=every)
    return plan.FileChoiceSequential()
