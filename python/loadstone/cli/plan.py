"""`loadstone plan`: what would run, touching nothing.

Knows that standard output is the Plan, or the list of runs, and standard error everything said about it.
"""

from __future__ import annotations

import sys
from typing import Annotated

from loadstone import exitcodes
from loadstone.cli import talk
from loadstone.cli.arguments import Flag, Job, Load


def plan(job: Job, /, *more: str, load: Load = Load(), json: Annotated[bool, Flag] = False) -> int:
    """Print what would run; touch nothing. Ends with exit code 2 when `run` would refuse it.

    Parameters
    ----------
    more
        Parameter files of vdbench that go on where the first one ends.
    json
        Print the runs of a parameter file as JSON; what is a single run always is.
    """
    from loadstone.cli import commands, runlist
    from loadstone.cli.load import resolution, workload

    if (found := runlist.read(job, load, more)) is not None:
        return runlist.show(found, load, json=json)
    asked_for = workload(job, load)
    commands.check(asked_for)
    resolved = resolution(asked_for, load)
    talk.notes(resolved.notes)
    talk.memory(resolved.memory_bytes)
    refused = runlist.told_unsafe(resolved.plan, set())
    sys.stdout.write(resolved.plan.model_dump_json(indent=2) + "\n")
    return exitcodes.USAGE if refused else exitcodes.DONE
