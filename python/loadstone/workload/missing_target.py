"""A section that was meant to name a device and does not.

Knows what such a section looks like among others. It would use a file named after the job in the
current directory: a test of the wrong thing, often of the system disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import RefusedError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.workload.model import Job


def refuse_missing_target(jobs: Iterable[Job]) -> None:
    """Raise `RefusedError` for a job without a target beside jobs that name devices."""
    jobs = list(jobs)
    devices = [
        (job, t.written) for job in jobs for t in job.placement.targets if t.written.startswith("/dev/")
    ]
    if not devices:
        return
    for job in jobs:
        blank = not job.placement.targets and not job.placement.directories and not job.stem.startswith("/")
        if blank and job.placement.filename_format is None and job.engine.ioengine != "null":
            named, device = devices[0]
            raise make_error(
                RefusedError,
                "workload.target.no_filename",
                where=job.where,
                section=job.stem,
                other=named.name,
                device=device,
            )
