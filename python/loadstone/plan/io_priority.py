"""I/O priorities of a job as the kernel's numbers.

Knows the bits of a priority. Knows no thread and no file; what the kernel allows is found out by the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import polars as pl

from loadstone.plan import pattern
from loadstone.plan.backends import BACKENDS
from loadstone.plan.model import PriorityOp, PriorityShare
from loadstone.workload.block_sizes import BlockSizes, FixedSize, SizeRange

if TYPE_CHECKING:
    from loadstone.workload.model import Job

Number = TypeVar("Number", int, pl.Expr)
REAL_TIME: Final = 1
BEST_EFFORT: Final = 2
_OPS: Final = (PriorityOp.READ, PriorityOp.WRITE)
ENGINES: Final = tuple(name for name, row in BACKENDS.items() if row.priorities and not row.virtual_time)
"""Those that hand a priority over with each I/O."""


def number(class_: int, level: int, hint: int) -> int:
    """Return the number of a priority; without a class it is best effort."""
    return (class_ or BEST_EFFORT) << 13 | hint << 3 | level


def class_of(priority: Number) -> Number:
    """Return the class of a number, or of a column of them."""
    return priority // (1 << 13)


def parts(priority: int) -> tuple[int, int, int]:
    """Return class, level and hint of a number."""
    return class_of(priority), priority & 7, priority >> 3 & 1023


def of_job(job: Job) -> int:
    """Return the priority of a job's threads; 0: the one the engine was started with."""
    priorities = job.priorities
    if priorities.job_class is None and priorities.job_level is None and priorities.job_hint is None:
        return 0
    return number(priorities.job_class or 0, priorities.job_level or 0, priorities.job_hint or 0)


def shares(job: Job) -> tuple[PriorityShare, ...]:
    """Return the I/Os of a job that have another priority than the rest."""
    priorities = job.priorities
    if not priorities.of_some:
        _check_used(job)
        return ()
    if any(priorities.percent) and any(priorities.by_size):
        raise job.refusal("plan.priority.both", "priorities.by_size")
    all_shares = [share for op in range(2) for share in _of_direction(job, op)]
    if not all_shares:
        field = "percent" if any(priorities.percent) else "by_size"
        raise job.refusal("plan.priority.no_io", f"priorities.{field}")
    return tuple(all_shares)


def _of_direction(job: Job, op: int) -> list[PriorityShare]:
    """Shares of reads (0) or writes (1), those of I/Os that can be."""
    priorities = job.priorities
    if not pattern.shares(job)[op]:
        return []
    own = number(priorities.classes[op] or 0, priorities.levels[op] or 0, priorities.hints[op] or 0)
    if priorities.percent[op]:
        return [
            PriorityShare(op=_OPS[op], block_bytes=None, percent=priorities.percent[op] or 0, priority=own)
        ]
    possible = pattern.sizes(job)[op]
    sums: dict[int, int] = {}
    size_shares = []
    for share in priorities.by_size[op]:
        sums[share.block_bytes] = sums.get(share.block_bytes, 0) + share.percent
        if sums[share.block_bytes] > 100:
            raise job.error(
                "plan.priority.sum",
                "priorities.by_size",
                block=share.block_bytes,
                sum=sums[share.block_bytes],
            )
        if share.percent and _can_be(share.block_bytes, possible):
            priority = own if share.priority is None else number(*share.priority)
            size_shares.append(
                PriorityShare(
                    op=_OPS[op],
                    block_bytes=share.block_bytes,
                    percent=share.percent,
                    priority=priority,
                )
            )
    return size_shares


def _can_be(block_bytes: int, sizes: BlockSizes) -> bool:
    if isinstance(sizes, FixedSize):
        return sizes.bytes == block_bytes
    if isinstance(sizes, SizeRange):
        return sizes.min_bytes <= block_bytes <= sizes.max_bytes
    return any(entry.bytes == block_bytes for entry in sizes.entries)


def _check_used(job: Job) -> None:
    """Refuse the priority of some I/Os where no I/O would have it."""
    for field in ("classes", "levels", "hints"):
        if any(part is not None for part in getattr(job.priorities, field)):
            raise job.refusal("plan.priority.no_share", f"priorities.{field}")


def check_engine(job: Job, engine: str) -> None:
    """Refuse priorities of some I/Os on an engine that has one for all."""
    if job.priorities.of_some and engine not in ENGINES:
        field = "percent" if any(job.priorities.percent) else "by_size"
        raise job.refusal("plan.priority.engine", f"priorities.{field}", engine=engine)
