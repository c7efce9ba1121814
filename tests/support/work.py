"""What kind of work a job does, where a test knows which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.workload.rows import RowWork

if TYPE_CHECKING:
    from loadstone.workload.model import Job
    from loadstone.workload.rows import WorkloadRow


def rows_of(job: Job) -> tuple[WorkloadRow, ...]:
    """Return the rows of a job that has them."""
    assert isinstance(job.work, RowWork)
    return job.work.rows
