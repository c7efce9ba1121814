"""What a job asks to have verified as fio does it, as the Plan's Headers.

Knows fio's verify options (HOWTO, "Verification") and what fio 3.42 makes of them: which
interval it takes, in which order it reads back, when a pass is over. Does not know what a
header looks like: the engine does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.plan import model as plan
from loadstone.plan.pattern import is_random, largest, max_block, shares, sizes, smallest
from loadstone.plan.verification import verify, verify_state

if TYPE_CHECKING:
    from loadstone.plan.model import Limits
    from loadstone.plan.notes import Notes
    from loadstone.workload.model import Job

_ONLY_HEADERS: Final = {
    "verify_pattern_interval_bytes": "verify_pattern_interval",
    "trim_percent": "trim_percentage",
    "trim_verify_zero": "trim_verify_zero",
    "trim_backlog": "trim_backlog",
    "trim_backlog_batch": "trim_backlog_batch",
}
_NOT_FOR_STAMPS: Final = {
    "verify_offset_bytes": "every 512 bytes have a stamp: there is no header to move",
    "verify_backlog": "all that was written is read back when the writing is done",
    "verify_backlog_batch": "all that was written is read back when the writing is done",
    "verify_dump": "what was expected and found is in the events",
    "verify_header_seed": "stamps do not depend on a seed",
    "verify_write_sequence": "stamps hold the number of the write",
    "verify_state_save": "stamps say themselves what was written",
    "verify_state_load": "stamps say themselves what was written",
    "verify_policy": "stamps say themselves what was written",
    "experimental_verify": "what was written is kept in a table of 4 bytes for each block",
}


def by_stamps(job: Job, notes: Notes) -> None:
    """Say what a job asks of headers that verifies by stamps.

    Raises RefusedError for what stamps cannot do.
    """
    hint = "run it with `loadstone fio`, which verifies by fio's headers"
    for field, option in _ONLY_HEADERS.items():
        if getattr(job, field):
            raise RefusedError(
                f"{option} has no effect: blocks are verified by stamps", where=job.at(field), hint=hint
            )
    if job.verify_pattern_offsets:
        raise RefusedError(
            "a pattern with %o is for fio's headers", where=job.at("verify_pattern"), hint=hint
        )
    if job.verify == "null":
        raise RefusedError("verify=null checks nothing", where=job.at("verify"), hint="remove it")
    for field, why in _NOT_FOR_STAMPS.items():
        if getattr(job, field) is not None:
            notes.info(job, field, f"{field.removesuffix('_bytes')} changes nothing: {why}")


def rehearsed(job: Job) -> Job:
    """Return the job whose I/Os are drawn: with `verify_only` what it would write is read."""
    if verify.is_verified(job) and job.verify_only:
        return job.model_copy(update={"verify_only": None})
    return job


def overlaps_itself(job: Job) -> bool:
    """Whether two writes of the job in flight may be to the same place."""
    return verify.is_verified(job) and verify.writes(job) and is_random(job) and not _writes_once(job)


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
    writing = shares(does)[1] > 0
    if job.dedupe_percent:
        notes.info(job, "dedupe_percent", "dedupe_percentage has no effect with verify, as in fio")
    numbered = (
        writing and _one_size(does) and not limits.time_based and job.verify_write_sequence is not False
    )
    # Of writes to one place experimental_verify reads the place as often, and finds the last each time.
    once = _writes_once(does) if is_random(does) else not (does.rw_number or does.io_size)
    last_alone = once or not job.experimental_verify
    return plan.Headers(
        sum=_sum(job),
        layout=layout,
        interval_bytes=_interval_bytes(does),
        offset_bytes=job.verify_offset_bytes or 0,
        pattern=_pattern(job),
        compress_percent=job.compress_percent or 0,
        read_back=writing and job.do_verify is not False,
        only=bool(job.verify_only) and writing,
        by_address=not (is_random(does) and _writes_once(does)) and not job.experimental_verify,
        passes=0 if limits.time_based else job.loops or 1,
        enough_bytes=_enough_bytes(job),
        backlog=_backlog(job) if writing else None,
        trim=_trim(job) if writing else None,
        fatal=bool(job.verify_fatal),
        go_on=job.continue_on_error in ("verify", "all"),
        dump_dir=(aux_directory or "") if job.verify_dump else None,
        check_seed=job.verify_header_seed is not False and last_alone,
        check_number=numbered and last_alone,
        thread=thread % 2**16,
        until=verify_state.load(job, thread, aux_directory) if job.verify_state_load else None,
        tell_state=job.verify_state_save is not False and writing and not job.verify_only,
        flushed_only=job.verify_policy == "fsynced",
    )


def _writes_once(job: Job) -> bool:
    """Whether fio keeps a map of what random writes touched: then each is read back in its turn."""
    order = job.random_distribution[1] if job.random_distribution else None
    uniform = order is None or order.kind == "random"
    return not job.norandommap and uniform and job.random_generator != "lfsr"


def _one_size(job: Job) -> bool:
    blocks = sizes(job)
    return len({bound(block) for block in blocks for bound in (smallest, largest)}) == 1


def _sum(job: Job) -> plan.HeaderSum:
    name = "pattern" if verify.by_pattern(job) else (job.verify or "").replace("-", "")
    if name in ("pattern", "pattern_hdr") and job.verify_pattern is None:
        raise RefusedError(
            f"verify={name} has no pattern", where=job.at("verify"), hint="add verify_pattern=0x..."
        )
    return plan.HeaderSum(name.replace("crc32cintel", "crc32c_intel"))


def _interval_bytes(job: Job) -> int:
    """Bytes between headers: what divides the smallest and the largest write, as fio corrects it."""
    if job.bs_unaligned:
        return 0
    reads, writes, _ = sizes(job)
    low, high = smallest(writes), largest(writes)
    interval = job.verify_interval_bytes or (low if low != high else 0)
    if interval > low:
        interval = low
    elif shares(job)[0] and interval > smallest(reads):
        interval = smallest(reads)
    if not interval or low % interval or high % interval:
        interval = math.gcd(low, high)
    return interval


def _pattern(job: Job) -> plan.HeaderPattern | None:
    if job.verify_pattern is None:
        return None
    return plan.HeaderPattern(
        bytes=job.verify_pattern,
        offsets_at=job.verify_pattern_offsets,
        interval_bytes=job.verify_pattern_interval_bytes or 0,
    )


def _backlog(job: Job) -> plan.HeaderBacklog | None:
    if not job.verify_backlog:
        return None
    return plan.HeaderBacklog(writes=job.verify_backlog, batch=job.verify_backlog_batch or job.verify_backlog)


def _trim(job: Job) -> plan.HeaderTrim | None:
    if not job.trim_percent or not job.trim_backlog:
        return None
    return plan.HeaderTrim(
        percent=job.trim_percent,
        writes=job.trim_backlog,
        batch=job.trim_backlog_batch or job.trim_backlog,
        zeros=bool(job.trim_verify_zero),
    )


def _enough_bytes(job: Job) -> int:
    """Bytes up to which fio makes passes anew; it counts what is read back."""
    if job.io_size is None or job.io_size.bytes is None or job.number_ios:
        return 0
    return job.io_size.bytes


def limits(job: Job, limits: Limits, size_bytes: int, io_bytes: int) -> Limits:
    """Return the limits of a pass; `size_bytes` is what its files have, `io_bytes` what it is to move."""
    does = rehearsed(job)
    # Without a map a pass begins at the front again until io_size is moved.
    unbounded = shares(does)[1] and not (is_random(does) and _writes_once(does))
    loops = job.loops or 1
    one_pass = io_bytes if unbounded else min(io_bytes, size_bytes)
    twice = 2 if (job.rw or "").endswith("trimwrite") else 1
    ops = 0 if limits.time_based else (job.number_ios or 0) * loops * twice
    return limits.model_copy(update={"bytes": max(one_pass, max_block(does)) * twice, "ops": ops})
