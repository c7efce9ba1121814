"""I/O priorities: what was asked, before anything is resolved.

Knows class, level and hint as the kernel's `ioprio_set(2)` has them (classes: 1 real time,
2 best effort, 3 idle), for all I/Os of a job and for some of them. Knows no job-file
language and no engine.
"""

from __future__ import annotations

from loadstone.frozen_model import FrozenModel

Pair = tuple[int | None, int | None]
"""For reads and for writes."""


class SizePriority(FrozenModel):
    """A share of the I/Os of one size."""

    block_bytes: int
    percent: int
    priority: tuple[int, int, int] | None
    """Class, level and hint; none: those of `PriorityRequests`."""


class PriorityRequests(FrozenModel):
    """Priorities a job asks for."""

    job_class: int | None = None
    """Of all I/Os that have none of their own, as the next two."""
    job_level: int | None = None
    job_hint: int | None = None
    percent: Pair = (None, None)
    """Share of the I/Os with the following priority."""
    classes: Pair = (None, None)
    levels: Pair = (None, None)
    hints: Pair = (None, None)
    by_size: tuple[tuple[SizePriority, ...], tuple[SizePriority, ...]] = ((), ())
    """Shares of reads and writes of some sizes."""

    @property
    def of_some(self) -> bool:
        """Whether some I/Os have another priority than the rest."""
        return any(self.percent) or any(share.percent for shares in self.by_size for share in shares)
