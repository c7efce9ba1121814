"""`loadstone plan`: what would run, as JSON, touching nothing.

Knows that standard output is the Plan and standard error everything said about it.
"""

from __future__ import annotations

import sys

from loadstone import exitcodes
from loadstone.cli import commands, talk
from loadstone.cli.arguments import Load
from loadstone.cli.load import resolution, workload
from loadstone.plan import guard
from loadstone.plan.in_use import Snapshot


def plan(job: str, /, *, load: Load = Load()) -> int:
    """Print what would run, as JSON; touch nothing.

    Parameters
    ----------
    job
        A fio job file, `-` for one on standard input, or a name from `loadstone workloads`.
    """
    asked_for = workload(job, load)
    commands.check(asked_for)
    resolved = resolution(asked_for, load)
    talk.notes(resolved.notes)
    talk.memory(resolved.memory_bytes)
    host = Snapshot()
    for index in sorted(guard.written(resolved.plan)):
        finding = guard.examine(resolved.plan.targets[index], host)
        for reason in finding.in_use:
            talk.say(f"would be refused: {finding.path}: {reason}")
        for reason in finding.needs_consent if not finding.in_use else []:
            talk.say(f"would need --i-accept-data-loss {finding.path}: {reason}")
    sys.stdout.write(resolved.plan.model_dump_json(indent=2) + "\n")
    return exitcodes.DONE
