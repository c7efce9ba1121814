"""`loadstone plan`: what would run, touching nothing.

Knows that standard output is the Plan, or the list of runs, in lines or as JSON, and standard error
everything said about it.
"""

from __future__ import annotations

import json as json_format
import sys
from typing import Annotated

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import Flag, Job, LoadOptions, job_of


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
    from loadstone.api import planning

    planned = planning.planned(job_of(job), load.changes(), [job_of(one) for one in more])
    if isinstance(planned, planning.PlannedJob):
        console.notes(planned.resolved.notes)
        console.memory(planned.memory_bytes)
    else:
        console.notes(planned.found.notes)
    why: dict[str, list[str]] = {}
    for one in planned.obstacles:
        does = f"need --i-accept-data-loss {one.what}" if one.needs_consent else f"be refused: {one.what}"
        why.setdefault(does, []).append(one.why)
    for does, reasons in why.items():
        console.say(f"would {does}: {'; '.join(reasons)}")
    if json:
        sys.stdout.write(json_format.dumps(planned.document(), indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in planned.lines))
    refused = any(not one.needs_consent for one in planned.obstacles)
    return exitcodes.USAGE if refused else exitcodes.DONE
