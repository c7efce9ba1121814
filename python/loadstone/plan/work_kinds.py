"""What planning has to know of a kind of work, one row each.

A step that does something else altogether for one kind (where a clone works, what its pattern is) asks
for the kind itself. Knows no job and no file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.workload.model import Job


@dataclass(frozen=True, slots=True)
class WorkKind:
    """How a kind of work is done."""

    engine: str | None = None
    """The only engine that does it; None: a job chooses."""
    one_rate: bool = False
    """All it does has one rate, not each direction one."""
    can_be_read_back: bool = True
    """A pass from start to end reads what was written."""
    locks: bool = False
    """It keeps I/Os in flight off each other's place itself."""


KINDS: Final = {
    "blocks": WorkKind(),
    "rows": WorkKind(),
    "tree": WorkKind(engine="files", one_rate=True, can_be_read_back=False, locks=True),
}


def kind_of(job: Job) -> WorkKind:
    """Return the row of a job's work."""
    return KINDS[job.work.kind]
