"""The I/O schedulers that jobs ask for: set before the run, put back after it, also after a crash.

Knows the devices under a run's targets, and that a scheduler is the host's, not the job's: whoever
uses the device meanwhile has it, too. How it is set and put back is `control`'s.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import messages
from loadstone.control.all_controls import Controls
from loadstone.control.changes import Changes
from loadstone.errors import LoadstoneError
from loadstone.path.underlying import under_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.plan.model import Plan
    from loadstone.workload.model import Job, Workload


@contextlib.contextmanager
def as_asked(workload: Workload, plan: Plan, say: Callable[[str], None]) -> Iterator[None]:
    """Set the schedulers of a workload's jobs for the devices under its targets, while it runs.

    Raises RefusedError for a device that does not take one; what was set is put back then, too.
    """
    controls = Controls()
    wanted = list(_wanted(workload, plan, controls))
    with contextlib.ExitStack() as stack:
        # Only where one is asked for: a host whose state cannot be written down runs everything else.
        changes = stack.enter_context(Changes(controls)) if wanted else None
        for job, disk, scheduler in wanted:
            assert changes is not None  # noqa: S101 - something is wanted
            with _placed(job):
                applied = changes.set("io_scheduler", disk, scheduler)
            for change in applied:
                say(
                    messages.say(
                        "api.job.scheduler_set",
                        setting=str(change.setting),
                        now=change.after,
                        before=change.before,
                    )
                )
        yield


def check(workload: Workload, plan: Plan) -> None:
    """Raise as `as_asked` does for a scheduler that a device does not take; set nothing."""
    controls = Controls()
    for job, disk, scheduler in _wanted(workload, plan, controls):
        with _placed(job):
            Changes(controls).check("io_scheduler", disk, scheduler)


def _wanted(workload: Workload, plan: Plan, controls: Controls) -> Iterator[tuple[Job, str, str]]:
    """Yield each job that asks for a scheduler, with it and each disk that has one."""
    for job in workload.jobs:
        for disk in _disks(plan) if job.process.ioscheduler else ():
            if controls.named("io_scheduler").read(disk) is not None:
                yield job, disk, str(job.process.ioscheduler)


@contextlib.contextmanager
def _placed(job: Job) -> Iterator[None]:
    try:
        yield
    except LoadstoneError as error:
        raise type(error)(error.message, where=job.at("process.ioscheduler"), hint=error.hint) from None


def refuse(workload: Workload) -> None:
    """Refuse a scheduler where many runs follow each other: it belongs to the host then."""
    for job in workload.jobs:
        if job.process.ioscheduler:
            raise job.refusal("api.job.scheduler", "process.ioscheduler")


def _disks(plan: Plan) -> list[str]:
    """Return the kernel names of the disks nearest under a run's targets."""
    disks = []
    for target in plan.targets:
        path = Path(target.path)
        under = under_path(path if path.exists() else path.absolute().parent) if target.path else ()
        disks += [device.disk().name for device in under[:1]]
    return list(dict.fromkeys(disks))
