"""What a job asks to have verified, as the Plan's Verify and the pass that reads it back.

What is written is read back when the writing is done unless `do_verify` is off; `verify_only` reads
instead of writing. Does not know how blocks are stamped: the engine does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.plan import model as plan
from loadstone.plan.model import Pace
from loadstone.plan.pattern import is_random, shares, sizes, smallest
from loadstone.plan.work_kinds import kind_of
from loadstone.workload.addresses import AddressRequests
from loadstone.workload.block_sizes import FixedSize, SizeRange
from loadstone.workload.trees import TreeWork

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.clone_files import FileRange
    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.block_sizes import BlockSizes
    from loadstone.workload.model import Job

SECTOR_BYTES: Final = 512


def is_verified(job: Job) -> bool:
    """Whether the job verifies anything."""
    return job.verification.verify is not None


def by_headers(job: Job) -> bool:
    """Whether it does so by headers before its blocks."""
    return is_verified(job) and job.verification.by == "headers"


def is_pass(job: Job) -> bool:
    """Whether it does nothing but read its targets once from start to end, and check the stamps there."""
    return is_verified(job) and not by_headers(job) and bool(job.verification.verify_only)


def by_pattern(job: Job) -> bool:
    """Whether all of every block is a pattern, with no room for stamps."""
    return job.verification.verify == "pattern"


def writes(job: Job) -> bool:
    """Whether the job writes what it verifies."""
    return shares(job)[1] > 0


def check_trims(job: Job) -> None:
    """Refuse to verify what is written after trims where it cannot be. Raises RefusedError.

    By headers the writes are listed and read back, whatever was trimmed before them. Stamps are held
    against a table of generations, in which a trim has no place, unless `verify_only` writes nothing.
    What it rehearses by headers are writes, which here come out of trims.
    """
    if not is_verified(job) or not job.work.trims_then_writes:
        return
    if by_headers(job) != bool(job.verification.verify_only):
        return
    raise job.refusal(
        "plan.verify.trimwrite",
        "verification.verify",
        rw=job.option("mix.rw"),
        verify=job.option("verification.verify"),
    )


def reads_back(job: Job) -> bool:
    """Whether what the job wrote is read back after it, in a stage of its own; in trees it is not."""
    stamped = is_verified(job) and not by_headers(job) and kind_of(job).can_be_read_back
    return stamped and writes(job) and job.verification.do_verify is not False


def keeps_table(jobs: Sequence[Job]) -> bool:
    """Whether what blocks must hold has to be remembered: they are written here, and read."""
    verified = [job for job in jobs if is_verified(job) and not by_headers(job)]
    return any(writes(job) for job in verified) and any(
        reads_back(job) or reads_beside_writes(job) or job.verification.verify_only or shares(job)[0]
        for job in verified
    )


def reads_beside_writes(job: Job) -> bool:
    """Whether the job's writes bring reads of their place with them."""
    return (
        is_verified(job)
        and writes(job)
        and bool(job.verification.verify_before_write or job.verification.verify_after_write)
    )


def verification(
    job: Job, ranges: Sequence[FileRange], run: int, notes: Notes, *, table: bool
) -> plan.Verify:
    """Return how a job verifies; `table`: what this run wrote is known.

    Raises RefusedError when block sizes and offsets leave no room for stamps.
    """
    if isinstance(job.work, TreeWork):
        return _in_tree(job, job.work, run, notes)
    check_trims(job)
    if job.engine.ioengine == "null":
        raise job.refusal("plan.verify.null", "verification.verify", verify=job.option("verification.verify"))
    if job.payload.repeat:
        raise job.refusal(
            "plan.verify.repeat",
            "payload.repeat",
            repeat=job.option("payload.repeat"),
            verify=job.option("verification.verify"),
        )
    return plan.Verify(
        block_bytes=_block_bytes(job, ranges, notes),
        run=run,
        content=_content(job, notes),
        # A pattern is the same whoever wrote it: who writes nothing needs no table.
        expect=plan.VerifyExpect.TABLE
        if table and (writes(job) or not by_pattern(job))
        else plan.VerifyExpect.STAMPS,
        only_written=False,
        fatal=bool(job.verification.verify_fatal),
        read_before_write=bool(job.verification.verify_before_write) and writes(job),
        read_after_write=bool(job.verification.verify_after_write) and writes(job),
    )


def _in_tree(job: Job, work: TreeWork, run: int, notes: Notes) -> plan.Verify:
    """Return how what the files of a tree hold is verified: whole blocks of a file, all by the table."""
    if by_pattern(job) or work.shape.around or work.operation in ("copy", "move"):
        reason = (
            say("plan.verify.reason_pattern")
            if by_pattern(job)
            else say("plan.verify.reason_around")
            if work.shape.around
            else f"operation={work.operation}"
        )
        raise job.refusal("plan.verify.files_with", "verification.verify", reason=reason)
    block = job.verification.verify_interval_bytes or SECTOR_BYTES
    if block % SECTOR_BYTES or any(size % block for size, _ in work.shape.sizes):
        raise job.refusal("plan.verify.whole_blocks", "verification.verify", block=block)
    writing = (work.operation == "transfer" and writes(job)) or (work.operation == "create" and work.fill)
    return plan.Verify(
        block_bytes=block,
        run=run,
        content=_content(job, notes),
        expect=plan.VerifyExpect.TABLE,
        only_written=False,
        fatal=bool(job.verification.verify_fatal),
        read_before_write=bool(job.verification.verify_before_write) and writing,
        read_after_write=bool(job.verification.verify_after_write) and writing,
    )


def _content(job: Job, notes: Notes) -> plan.VerifyContent:
    if by_pattern(job):
        if job.verification.verify_pattern is None:
            raise job.refusal("plan.verify.no_pattern", "verification.verify")
        if job.payload.compress:
            raise job.refusal("plan.verify.compressible", "payload.compress")
        notes.info(job, "verification.verify", say("plan.notes.by_pattern"))
        return plan.VerifyContent.PATTERN
    notes.info(job, "verification.verify", say("plan.notes.stamped", method=job.verification.verify))
    has_payload = bool(
        job.payload.buffer_pattern
        or job.verification.verify_pattern
        or job.payload.compress
        or job.payload.zero_buffers
    )
    return plan.VerifyContent.PAYLOAD if has_payload else plan.VerifyContent.GENERATED


def _block_bytes(job: Job, ranges: Sequence[FileRange], notes: Notes) -> int:
    """Return the verify block: `verify_interval`, or the largest that divides every size and offset."""
    addresses = job.blocks.addresses if job.blocks else AddressRequests()
    numbers = [part.offset_bytes for part in ranges] + [b for b in addresses.blockalign_bytes if b]
    for block, share in zip(sizes(job), shares(job), strict=True):
        if share:
            numbers += _bytes(block)
    stride = 0 if is_random(job) else addresses.stride_bytes
    largest = math.gcd(*numbers, stride)
    if largest % SECTOR_BYTES:
        raise job.refusal(
            "plan.verify.sectors",
            "verification.verify",
            sector=SECTOR_BYTES,
            bs=job.option("sizes.bs"),
            offset=job.option("placement.offset"),
            size=job.option("placement.size"),
        )
    interval = job.verification.verify_interval_bytes or largest
    if interval > largest:
        text = say("plan.notes.interval", largest=largest)
        notes.info(job, "verification.verify_interval_bytes", text)
        interval = largest
    if interval % SECTOR_BYTES or largest % interval:
        raise job.refusal(
            "plan.verify.interval",
            "verification.verify_interval_bytes",
            interval=interval,
            sector=SECTOR_BYTES,
            largest=largest,
        )
    return interval


def _bytes(block: BlockSizes) -> list[int]:
    if isinstance(block, FixedSize):
        return [block.bytes]
    if isinstance(block, SizeRange):
        return [block.min_bytes, block.max_bytes]
    return [entry.bytes for entry in block.entries]


def pass_over(job: Job, stream: plan.Stream, ranges: Sequence[FileRange]) -> plan.Stream:
    """Return the stream that reads everything back once, from start to end.

    With a table only what was written is read.
    """
    if stream.verify is None:
        raise AssertionError("a stream without verification has nothing to read back")
    written = sizes(job)[1 if shares(job)[1] else 0]
    size = smallest(written) if isinstance(written, FixedSize) else stream.verify.block_bytes
    return reading(stream, stream.verify, size, [part.length_bytes for part in ranges])


def reading(stream: plan.Stream, verify: plan.Verify, size: int, lengths_bytes: Sequence[int]) -> plan.Stream:
    """Return a stream that reads each of its files once, from start to end, in I/Os of `size` bytes."""
    order = plan.OpPattern(
        random_percent=0,
        random=plan.RandomOrderUniform(repeat=True),
        stride_bytes=0,
        stride_spread_bytes=0,
        run_length=1,
        run_identical=False,
        sizes=plan.SizesFixed(bytes=size),
        align_bytes=size,
    )
    return stream.model_copy(
        update={
            "name": f"{stream.name}.verify",
            "file_choice": plan.FileChoiceSequential(),
            "open_files": None,
            "batch": None,
            "priorities": (),
            "pattern": plan.Pattern(
                read_percent=100,
                write_percent=0,
                trim_percent=0,
                trim_then_write=False,
                read=order,
                write=order,
                trim=order,
                strided=None,
                rows=None,
            ),
            "pace": Pace(read=None, write=None, trim=None, think=None),
            "flush": plan.Flush(fsync_every=0, fdatasync_every=0, at_end=False, on_close=False),
            "limits": _limited_to(sum(length - length % size for length in lengths_bytes)),
            "verify": verify.model_copy(
                update={
                    "only_written": verify.expect is plan.VerifyExpect.TABLE,
                    "read_before_write": False,
                    "read_after_write": False,
                }
            ),
        }
    )


def _limited_to(size_bytes: int) -> plan.Limits:
    """Return the limits of a stream that ends after so many bytes, and by nothing else."""
    return plan.Limits(
        start_delay_ns=0,
        ramp_ns=0,
        runtime_ns=0,
        time_based=False,
        bytes=size_bytes,
        ops=0,
        ends_stage=False,
        ends_stage_on_error=False,
        max_latency_ns=(0, 0, 0),
        prepare_only=False,
    )
