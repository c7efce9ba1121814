"""Which job asks for what in a Plan, told from the Plan and the Workload that it was made of.

Knows the order in which the planner writes units. So it also tells of a Plan that ran before, and of one
that another host runs, where the jobs were last named.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING

from loadstone.plan.derived import cells_of, targets_of
from loadstone.plan.model import BackendMoveExtents

if TYPE_CHECKING:
    from loadstone.errors import Where
    from loadstone.plan.model import Plan
    from loadstone.workload.model import Job, Workload


def jobs_of_units(plan: Plan, workload: Workload) -> list[Job | None]:
    """Return the job of each unit; None where the Workload has none of its name.

    The planner writes units job by job, clones in order; a unit that is no later clone
    starts the next job. Of several hosts the jobs begin again with each.
    """
    jobs = cycle(workload.jobs)
    asking: list[Job | None] = []
    for unit in plan.units:
        before = asking[-1] if asking else None
        if unit.clone and before is not None and before.name == unit.name:
            asking.append(before)
        else:
            round_of_jobs = islice(jobs, len(workload.jobs))
            asking.append(next((job for job in round_of_jobs if job.name == unit.name), None))
    return asking


def target_places(plan: Plan, workload: Workload) -> dict[str, Where]:
    """Return where each target was first named, by its path, as far as that is known."""
    jobs = jobs_of_units(plan, workload)
    places: dict[str, Where] = {}
    for stream in plan.streams:
        job = jobs[plan.cells[min(cells_of(stream))].unit]
        if job is None:
            continue
        backend = plan.workers[stream.worker].backend
        donor = (backend.donor,) if isinstance(backend, BackendMoveExtents) else ()
        for target in (*targets_of(plan, stream), *donor):
            places.setdefault(plan.targets[target].path, job.at("placement.targets"))
    return places
