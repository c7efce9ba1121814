"""What a job asks to have verified by headers, as the Plan's Headers.

Knows what belongs to their format (fio's, as of 3.42) besides the bytes: which interval between
headers it takes, in which order is read back, when a pass is over. Does not know what a header looks
like: the engine does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.messages import say
from loadstone.plan import model as plan
from loadstone.plan.pattern import (
    blocks_of,
    is_random,
    largest,
    max_block,
    shares,
    sizes,
    smallest,
    strided_zones,
    trims_then_writes,
)
from loadstone.plan.verification import verify, verify_state

if TYPE_CHECKING:
    from loadstone.plan.model import Limits
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job


def rehearsed(job: Job) -> Job:
    """Return the job whose I/Os are drawn: with `verify_only` what it would write is read."""
    if verify.by_headers(job) and job.verification.verify_only:
        return job.changed({"verification.verify_only": None})
    return job


def overlaps_itself(job: Job) -> bool:
    """Whether two writes of the job in flight may be to the same place."""
    return verify.is_verified(job) and verify.writes(job) and is_random(job) and not _writes_once(job)


def reads_back(job: Job) -> bool:
    """Whether the job itself reads what it wrote, among its writes or after them."""
    return verify.by_headers(job) and verify.writes(job) and job.verification.do_verify is not False


def headers(
    job: Job,
    limits: Limits,
    thread: int,
    aux_directory: str | None,
    notes: Notes,
    *,
    layout: plan.HeaderLayout,
) -> plan.Headers:
    """Return how a job verifies; `thread` is its number from 1 in the run.

    Raises RefusedError when a state that is to be loaded is not there.
    """
    does = rehearsed(job)
    verify.check_trims(job)
    writing = shares(does)[1] > 0
    if job.payload.repeat:
        notes.info(job, "payload.repeat", say("plan.notes.no_dedupe"))
    in_sequence = not limits.time_based and job.headers.verify_write_sequence is not False
    numbered = writing and _one_size(does) and in_sequence
    last_alone = not job.headers.experimental_verify or _each_place_once(does)
    return plan.Headers(
        sum=_sum(job),
        layout=layout,
        interval_bytes=_interval_bytes(does),
        offset_bytes=job.headers.verify_offset_bytes or 0,
        pattern=_pattern(job),
        compress_percent=job.payload.compress.percent if job.payload.compress else 0,
        read_back=writing and job.verification.do_verify is not False,
        only=bool(job.verification.verify_only) and writing,
        by_address=_by_address(does) and not job.headers.experimental_verify,
        passes=0 if limits.time_based else job.limits.loops or 1,
        enough_bytes=_enough_bytes(job),
        backlog=_backlog(job) if writing else None,
        trim=_trim(job) if writing else None,
        fatal=bool(job.verification.verify_fatal),
        go_on=job.errors.continue_on_error in ("verify", "all"),
        dump_dir=(aux_directory or "") if job.headers.verify_dump else None,
        check_seed=job.headers.verify_header_seed is not False and last_alone,
        check_number=numbered and last_alone,
        thread=thread % 2**16,
        until=verify_state.load(job, thread, aux_directory) if job.headers.verify_state_load else None,
        tell_state=job.headers.verify_state_save is not False
        and writing
        and not job.verification.verify_only,
        flushed_only=job.headers.verify_policy == "fsynced",
    )


def _each_place_once(job: Job) -> bool:
    """Whether no place is written twice in a pass.

    Of several writes to one place experimental_verify reads the place as often, and finds the last each time.
    """
    if is_random(job):
        return _writes_once(job)
    return not (blocks_of(job).addresses.stride_bytes or job.limits.io_size)


def _writes_once(job: Job) -> bool:
    """Whether a map is kept of what random writes touched: then each is read back in its turn.

    Windows that move come to the same places again within a pass.
    """
    addresses = blocks_of(job).addresses
    uniform = addresses.random_distribution[1].kind == "random"
    mapped = not addresses.norandommap and addresses.random_generator != "lfsr"
    return uniform and mapped and strided_zones(job) is None


def _by_address(job: Job) -> bool:
    """Whether places are read back in their order: where fio takes two writes of one place for possible."""
    size, moved = job.placement.size, job.limits.io_size
    again = bool(moved and size and moved.bytes and size.bytes and moved.bytes > size.bytes)
    return again or blocks_of(job).addresses.run_length > 1 or not (is_random(job) and _writes_once(job))


def _one_size(job: Job) -> bool:
    blocks = sizes(job)
    return len({bound(block) for block in blocks for bound in (smallest, largest)}) == 1


def _sum(job: Job) -> plan.HeaderSum:
    name = "pattern" if verify.by_pattern(job) else (job.verification.verify or "").replace("-", "")
    if name in ("pattern", "pattern_hdr") and job.verification.verify_pattern is None:
        raise job.refusal("plan.verify.no_header_pattern", "verification.verify", name=name)
    return plan.HeaderSum(name.replace("crc32cintel", "crc32c_intel"))


def _interval_bytes(job: Job) -> int:
    """Bytes between headers: what divides the smallest and the largest write."""
    if blocks_of(job).sizes.bs_unaligned:
        return 0
    reads, writes, trims = sizes(job)
    if trims_then_writes(job):
        writes = trims
    low, high = smallest(writes), largest(writes)
    interval = job.verification.verify_interval_bytes or (low if low != high else 0)
    if interval > low:
        interval = low
    elif shares(job)[0] and interval > smallest(reads):
        interval = smallest(reads)
    if not interval or low % interval or high % interval:
        interval = math.gcd(low, high)
    return interval


def _pattern(job: Job) -> plan.HeaderPattern | None:
    if job.verification.verify_pattern is None:
        return None
    return plan.HeaderPattern(
        bytes=job.verification.verify_pattern,
        offsets_at=job.verification.verify_pattern_offsets,
        interval_bytes=job.headers.verify_pattern_interval_bytes or 0,
    )


def _backlog(job: Job) -> plan.HeaderBacklog | None:
    if not job.headers.verify_backlog:
        return None
    return plan.HeaderBacklog(
        writes=job.headers.verify_backlog,
        batch=job.headers.verify_backlog_batch or job.headers.verify_backlog,
    )


def _trim(job: Job) -> plan.HeaderTrim | None:
    if not job.headers.trim_percent or not job.headers.trim_backlog:
        return None
    return plan.HeaderTrim(
        percent=job.headers.trim_percent,
        writes=job.headers.trim_backlog,
        batch=job.headers.trim_backlog_batch or job.headers.trim_backlog,
        zeros=bool(job.headers.trim_verify_zero),
    )


def _enough_bytes(job: Job) -> int:
    """Bytes up to which passes are made anew; what is read back counts."""
    if job.limits.io_size is None or job.limits.io_size.bytes is None or job.limits.number_ios:
        return 0
    return job.limits.io_size.bytes


def limits(job: Job, limits: Limits, size_bytes: int, io_bytes: int) -> Limits:
    """Return the limits of a pass; `size_bytes` is what its files have, `io_bytes` what it is to move."""
    does = rehearsed(job)
    # Without a map a pass begins at the front again until io_size is moved.
    unbounded = shares(does)[1] and not (is_random(does) and _writes_once(does))
    loops = job.limits.loops or 1
    one_pass = io_bytes if unbounded else min(io_bytes, size_bytes)
    twice = 2 if trims_then_writes(job) else 1
    ops = 0 if limits.time_based else (job.limits.number_ios or 0) * loops * twice
    return limits.model_copy(update={"bytes": max(one_pass, max_block(does)) * twice, "ops": ops})
