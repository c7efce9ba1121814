"""The I/O schedulers that jobs ask for: set before the run, put back after it.

Knows the queues of the devices under a run's targets, and that a scheduler is the host's, not the
job's: whoever uses the device meanwhile has it, too. A run that is killed puts nothing back.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.cli import talk
from loadstone.errors import RefusedError, RunError
from loadstone.path.under import under_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.plan.model import Plan
    from loadstone.workload.model import Workload


@contextlib.contextmanager
def as_asked(workload: Workload, plan: Plan) -> Iterator[None]:
    """Set the schedulers of a workload's jobs for the devices under its targets, while it runs.

    Raises RunError for a device that does not take one; what was set is put back then, too.
    """
    wanted = [job for job in workload.jobs if job.ioscheduler]
    with contextlib.ExitStack() as back:
        for job in wanted:
            for queue in _queues(plan):
                before = _current(queue)
                if before is None or before == job.ioscheduler:
                    continue
                try:
                    queue.write_text(str(job.ioscheduler))
                except OSError as error:
                    raise RunError(
                        f"{queue} does not take {job.ioscheduler!r}: {error.strerror}",
                        where=job.at("ioscheduler"),
                        hint=f"it has: {queue.read_text().strip()}",
                    ) from None
                talk.say(f"{queue}: {job.ioscheduler} instead of {before}, until the run is over")
                back.callback(queue.write_text, before)
        yield


def refuse(workload: Workload) -> None:
    """Refuse a scheduler where many runs follow each other: it belongs to the host then."""
    for job in workload.jobs:
        if job.ioscheduler:
            raise RefusedError(
                "is not set for the runs of a study",
                where=job.at("ioscheduler"),
                hint="set it in /sys/block/*/queue/scheduler",
            )


def _queues(plan: Plan) -> list[Path]:
    found = []
    for target in plan.targets:
        path = Path(target.path)
        under = under_path(path if path.exists() else path.absolute().parent) if target.path else ()
        found += [Path("/sys/block") / device.disk().name / "queue" / "scheduler" for device in under[:1]]
    return [queue for queue in dict.fromkeys(found) if os.access(queue, os.R_OK)]


def _current(queue: Path) -> str | None:
    """Return the scheduler a queue has; None where there is only `none`."""
    words = queue.read_text().split()
    return next((word[1:-1] for word in words if word.startswith("[")), None) if len(words) > 1 else None
