"""What is stated of a system, where nothing was counted: memory, caches, data sheets.

Knows how far a size alone can settle whether a cache answered: one that is much smaller than the
data cannot have held them, and a rate that only heads can have was not memory's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.ceilings import uses
from loadstone.audit.rotating_media import random_percent, rotational, spindles

if TYPE_CHECKING:
    from loadstone.audit.case import Case, Op

MEMORIES: Final = 2.0
"""Data of so many memory sizes do not fit into it."""
SLOW: Final = 0.5
"""Less than this part of what heads can do leaves no room for answers from memory."""
SHEET: Final = (0.85, 1.15)
"""A rate this close to the data sheet of the drives is that of the drives."""


def fits_memory(case: Case) -> tuple[int, int] | None:
    """Return the size of the data and of the memory when the one may be in the other."""
    memory = case.declared.memory_bytes if case.declared is not None else None
    sizes = [job.size_bytes for job in case.jobs]
    if memory is None or not sizes or None in sizes:
        return None
    whole = sum(size for size in sizes if size is not None)
    return (whole, memory) if whole < MEMORIES * memory else None


def too_large_for_memory(case: Case) -> bool:
    """Whether the data are known to be much larger than memory."""
    memory = case.declared.memory_bytes if case.declared is not None else None
    sizes = [job.size_bytes for job in case.jobs]
    known = memory is not None and bool(sizes) and None not in sizes
    return known and fits_memory(case) is None


def only_heads(case: Case) -> bool:
    """Whether the rate is so low that heads moved for nearly every I/O."""
    one, count = spindles(case), case.declared.spindles if case.declared else None
    scattered = rotational(case) is True and (random_percent(case) or 0.0) >= 90
    if not scattered or one is None or count is None or case.total.iops is None:
        return False
    return case.total.iops.value <= SLOW * count * one.plausible_iops


def as_specified(case: Case, op: Op) -> bool:
    """Whether the rate is what the drives' data sheet says, and so not that of memory."""
    return any(
        use.op == op and SHEET[0] <= use.share <= SHEET[1] for use in uses(case, {"specified", "physical"})
    )


def written_bytes(case: Case) -> float | None:
    """Return the bytes written in all, worked out from rate and time where only those are known."""
    measured = case.ops.get("write")
    if measured is None:
        return None
    if measured.bytes is not None:
        return float(measured.bytes)
    return measured.bandwidth.value * case.seconds if measured.bandwidth and case.seconds else None


def kept_share(case: Case, cache_bytes: int) -> float | None:
    """Return the part of the written bytes that a cache may still hold at the end, at most 1.

    Data that are written again while they lie in the cache never leave it, so that a working set
    that fits says nothing.
    """
    sizes = [job.size_bytes for job in case.jobs]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes) and sum(known) <= MEMORIES * cache_bytes:
        return 1.0
    written = written_bytes(case)
    return min(1.0, cache_bytes / written) if written else None
