"""`loadstone plan`: what would run, touching nothing.

Knows that standard output is the Plan, or the list of runs, in lines or as JSON, and standard error
everything said about it.
"""

from __future__ import annotations

import sys
from typing import Annotated

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import Flag, Job, LoadOptions


def plan(
    job: Job, /, *more: str, load: LoadOptions = LoadOptions(), json: Annotated[bool, Flag] = False
) -> int:
    """Print what would run; touch nothing. Ends with exit code 2 when `run` would refuse it.

    Parameters
    ----------
    more
        More job files, of any language, or directories of them. Parameter files of vdbench alone go on where
        the first one ends.
    json
        Print the Plan, or the runs of a job file of several, as JSON.
    """
    from loadstone.cli.jobs import runlist
    from loadstone.cli.jobs.read_workload import resolution, workload
    from loadstone.cli.running import commands
    from loadstone.engine.plan_check import memory_bytes

    if (found := runlist.read(job, load, more)) is not None:
        return runlist.show(found, load, json=json)
    asked_for = workload(job, load)
    commands.check(asked_for)
    resolved = resolution(asked_for, load)
    console.notes(resolved.notes)
    console.memory(memory_bytes(resolved.plan))
    refused = runlist.told_unsafe(resolved.plan, set())
    if json:
        sys.stdout.write(resolved.plan.model_dump_json(indent=2) + "\n")
    else:
        from loadstone.cli.display.plan_lines import lines

        sys.stdout.write("".join(f"{line}\n" for line in lines(resolved.plan)))
    return exitcodes.USAGE if refused else exitcodes.DONE
