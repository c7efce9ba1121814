"""Other random addresses for each run of a study.

Knows which jobs left the choice open. A run that reads the same addresses as the one before it
finds them in every cache on the way, and repeats of one sequence share its luck. Jobs that name
a seed, or say that every run repeats it, keep it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.workload.model import Job, Workload

NOTE: Final = "each run of the study has random addresses of its own; randseed or randrepeat=1 keeps them"
_APART: Final = 1_000_003
"""Between the seeds of two runs."""


def leaves_open(workload: Workload) -> bool:
    """Tell whether any job would get another sequence."""
    return any(_open(job) for job in workload.jobs)


def own_sequence(workload: Workload, number: int) -> Workload:
    """Return the Workload of the run with this number, from 1."""
    seed = {"seeds.randseed": number * _APART}
    jobs = tuple(job.changed(seed) if _open(job) else job for job in workload.jobs)
    return workload.model_copy(update={"jobs": jobs})


def _open(job: Job) -> bool:
    return job.seeds.randseed is None and job.seeds.repeatable is None
