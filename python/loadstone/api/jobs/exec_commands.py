"""Commands that a job file asks to run before and after the load.

Knows only jobs whose commands the user permitted (`--allow-exec`); a reader that was not
given that permission has refused the file already. Output goes to standard error.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

from loadstone.errors import RunError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.errors import Where
    from loadstone.workload.model import Workload


def check(workload: Workload) -> None:
    """Refuse commands that could not run beside the stage they belong to.

    All stages are one run of the engine, so commands run before the first or after the last.
    """
    walls = [index for index, job in enumerate(workload.jobs) if job.schedule.stonewall and index]
    for index, job in enumerate(workload.jobs):
        if job.process.exec_prerun is not None and walls and index >= walls[0]:
            raise job.refusal("api.command.before", "process.exec_prerun", name=job.name)
        if job.process.exec_postrun is not None and walls and index < walls[-1]:
            raise job.refusal("api.command.after", "process.exec_postrun", name=job.name)


@contextlib.contextmanager
def around(workload: Workload, say: Callable[[str], None]) -> Iterator[None]:
    """Run the commands of a run: the last ones only when it came to its end."""
    before(workload, say)
    yield
    after(workload, say)


def before(workload: Workload, say: Callable[[str], None]) -> None:
    """Run every `exec_prerun`, in the order of the jobs; raise `RunError` if one fails."""
    for job in workload.jobs:
        if job.process.exec_prerun is not None:
            _run(job.process.exec_prerun, job.at("process.exec_prerun"), say)


def after(workload: Workload, say: Callable[[str], None]) -> None:
    """Run every `exec_postrun`, in the order of the jobs; raise `RunError` if one fails."""
    for job in workload.jobs:
        if job.process.exec_postrun is not None:
            _run(job.process.exec_postrun, job.at("process.exec_postrun"), say)


def _run(command: str, where: Where, say: Callable[[str], None]) -> None:
    say(f"{where}: runs {command}")
    # A shell, as fio's system(3): the command is the user's own, permitted by --allow-exec.
    done = subprocess.run(["/bin/sh", "-c", command], stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise make_error(
            RunError, "api.command.failed", where=where, command=repr(command), code=done.returncode
        )
