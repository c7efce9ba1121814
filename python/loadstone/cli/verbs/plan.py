"""`loadstone plan`: what would run, touching nothing.

Knows that standard output is the Plan, or the list of runs, in lines or as JSON, and standard error
everything said about it.
"""

from __future__ import annotations

import json as json_format
import sys
from typing import Annotated

from loadstone.cli.display import console
from loadstone.cli.options.arguments import Flag, Job, LoadOptions, Repeat, job_of


def plan(
    job: Job,
    /,
    *more: str,
    i_accept_data_loss: Annotated[tuple[str, ...], Repeat] = (),
    load: LoadOptions = LoadOptions(),
    json: Annotated[bool, Flag] = False,
) -> int:
    """Print what would run; touch nothing. Says what `run` would refuse it with, and ends with exit code 2.

    Parameters
    ----------
    more
        More job files, of any language, or directories of them. Parameter files of vdbench alone go on where
        the first one ends.
    i_accept_data_loss
        Path of a target whose content may be lost (repeat for several), as `run` is given it.
    json
        Print the Plan, or the runs of a job file of several, as JSON.
    """
    from loadstone.api import planning
    from loadstone.cli.running.consent import consent_without_asking, would_end

    planned = planning.planned(job_of(job), load.changes(), [job_of(one) for one in more])
    if isinstance(planned, planning.PlannedJob):
        console.notes(planned.resolved.notes)
        console.memory(planned.memory_bytes)
    else:
        console.notes(planned.found.notes)
    if json:
        sys.stdout.write(json_format.dumps(planned.document(), indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in planned.lines))
    sys.stdout.flush()
    return would_end(planned.refusal(consent_without_asking(i_accept_data_loss)))
