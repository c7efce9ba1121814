"""A journal of verified writes: kept by one Plan, read back by another.

Knows when an acknowledged write must survive a crash, and how a Plan that wrote becomes one that
reads what it wrote. The format of a journal and what may be lost are the engine's
(`crates/verification/src/verify/journal.rs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.plan import model as plan
from loadstone.plan.verification.verify import reading

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.workload.model import Workload

LIMIT_BYTES: Final = 256 << 20
"""A longer journal is replaced by what is known at that moment, where that is possible."""
LARGEST_READ_BYTES: Final = 128 << 10
READ_DEPTH: Final = 16


def keep(run_plan: plan.Plan) -> tuple[plan.Plan, str]:
    """Return the Plan with a journal, and what that promises.

    Raises InputError when nothing is verified that a journal could tell of, or when jobs verify
    in blocks of different sizes.
    """
    writers = _writers(run_plan)
    if not writers:
        raise make_error(InputError, "plan.journal.empty")
    sizes = {stream.verify.block_bytes for stream in writers if stream.verify is not None}
    if len(sizes) > 1:
        size_list = ", ".join(str(size) for size in sorted(sizes))
        raise make_error(InputError, "plan.journal.sizes", sizes=size_list)
    durable, text = _durable(run_plan, writers)
    journal = plan.Journal(durable=durable, limit_bytes=LIMIT_BYTES)
    return run_plan.model_copy(update={"journal": journal}), text


def read_back(written: plan.Plan, journal: Path) -> plan.Plan:
    """Return the Plan that reads once, from start to end, all that `written` may have written.

    Targets keep their numbers, which the journal has; none is written, made or prepared.
    Raises InputError when the Plan kept no journal.
    """
    if written.journal is None:
        raise make_error(InputError, "plan.journal.none")
    targets = tuple(
        target.model_copy(
            update={
                "read_only": True,
                "create": False,
                "layout": None,
                "sync": plan.OpenSync.NONE,
                "identity": None,
                "invalidate": not target.direct,
                "unlink": False,
            }
        )
        for target in written.targets
    )
    workers: list[plan.Worker] = []
    streams: list[plan.Stream] = []
    places: set[tuple[int, int, int]] = set()
    for stream in _writers(written):
        fresh = [use for use in stream.files if _place(use) not in places]
        places |= {_place(use) for use in fresh}
        if fresh and stream.verify is not None:
            workers.append(written.workers[stream.worker].model_copy(update={"stage": 0}))
            streams.append(_reading(stream, stream.verify, fresh, len(workers) - 1))
    return written.model_copy(
        update={
            "targets": targets,
            "workers": tuple(workers),
            "streams": tuple(streams),
            "journal": None,
            "recover": str(journal.resolve()),
        }
    )


def asked_back(workload: Workload) -> Workload:
    """Return what is asked for when a Plan that kept a journal is read back: nothing is written."""
    jobs = tuple(job.changed({"verification.verify_only": True}) for job in workload.jobs)
    return workload.model_copy(update={"jobs": jobs})


def _reading(stream: plan.Stream, verify: plan.Verify, uses: list[plan.FileUse], worker: int) -> plan.Stream:
    size = verify.block_bytes
    while size * 2 <= LARGEST_READ_BYTES and all(use.length_bytes % (size * 2) == 0 for use in uses):
        size *= 2
    back = reading(stream, verify, size, [use.length_bytes for use in uses])
    return back.model_copy(
        update={
            "worker": worker,
            "files": tuple(uses),
            "iodepth": READ_DEPTH,
            "flow": None,
            "serialize_overlap": False,
        }
    )


def _place(use: plan.FileUse) -> tuple[int, int, int]:
    return use.target, use.offset_bytes, use.length_bytes


def _writers(run_plan: plan.Plan) -> list[plan.Stream]:
    return [
        stream
        for stream in run_plan.streams
        if stream.verify is not None
        and stream.verify.expect is plan.VerifyExpect.TABLE
        and stream.pattern.write_percent
    ]


def _durable(run_plan: plan.Plan, writers: list[plan.Stream]) -> tuple[plan.Durable, str]:
    """Tell from how the jobs write when their writes must be there."""
    used = [run_plan.targets[use.target] for stream in writers for use in stream.files]
    if all(target.sync is not plan.OpenSync.NONE for target in used):
        return plan.Durable.ACKNOWLEDGED, say("plan.journal.synchronous")
    flush = [stream.flush for stream in writers]
    if any(one.fsync_every or one.fdatasync_every or one.at_end or one.on_close for one in flush):
        return plan.Durable.FLUSHED, say("plan.journal.flushed")
    return plan.Durable.ACKNOWLEDGED, say("plan.journal.no_flush")
