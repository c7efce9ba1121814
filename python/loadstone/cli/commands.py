"""Commands that a job file asks to run before and after the load.

Knows only jobs whose commands the user permitted (`--allow-exec`); a reader that was not
given that permission has refused the file already. Output goes to standard error.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from loadstone.cli import talk
from loadstone.errors import RunError

if TYPE_CHECKING:
    from loadstone.errors import Where
    from loadstone.workload.model import Workload


def before(workload: Workload) -> None:
    """Run every `exec_prerun`, in the order of the jobs; raise `RunError` if one fails."""
    for job in workload.jobs:
        if job.exec_prerun is not None:
            _run(job.exec_prerun, job.at("exec_prerun"))


def after(workload: Workload) -> None:
    """Run every `exec_postrun`, in the order of the jobs; raise `RunError` if one fails."""
    for job in workload.jobs:
        if job.exec_postrun is not None:
            _run(job.exec_postrun, job.at("exec_postrun"))


def _run(command: str, where: Where) -> None:
    talk.say(f"{where}: runs {command}")
    # A shell, as fio's system(3): the command is the user's own, permitted by --allow-exec.
    done = subprocess.run(["/bin/sh", "-c", command], stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise RunError(f"{command!r} ended with exit code {done.returncode}", where=where)
