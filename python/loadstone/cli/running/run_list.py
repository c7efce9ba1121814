"""Several runs of job files as a study: what options of `run` mean for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.api.jobs.read_workload import resolution
from loadstone.api.jobs.run_list import changes_of
from loadstone.cli.display import console
from loadstone.cli.options.arguments import COMMAND_LINE, SHELL
from loadstone.cli.running import study
from loadstone.cli.running.hosts import StudyOnHosts
from loadstone.errors import InputError, Where
from loadstone.study.run import StudyRequest
from loadstone.study.run_list import RepeatedList

if TYPE_CHECKING:
    from loadstone.api.jobs.changes import JobChanges
    from loadstone.api.jobs.data_sheet import DataSheet
    from loadstone.api.jobs.run_list import RunList
    from loadstone.cli.options.run_options import RunOptions


def execute(
    found: RunList, changes: JobChanges, options: dict[str, Any], run_options: RunOptions, sheet: DataSheet
) -> int:
    """Run all of them as a study and return the exit code; `repeat` and `vdbench_output` are options."""
    console.notes(found.notes)
    output = options.get("vdbench_output")
    if found.output is None:
        SHELL.refuse("what is no parameter file of vdbench", vdbench_output=output)
    repeats = options.get("repeat")
    if repeats is not None and found.once:
        where = Where(COMMAND_LINE, option="--repeat")
        raise InputError(f"{found.name} cannot be repeated: {found.once}", where=where, hint="leave it out")
    controller = found.made() if repeats is None else RepeatedList(found.made, repeats)
    closing = found.closing
    asked = StudyRequest(
        kind="list",
        name=found.name,
        front_end=str(found.language),
        request={
            "argv": sys.argv,
            "cwd": str(Path.cwd()),
            "front_end": str(found.language),
            "options": options,
        },
        inputs={**found.inputs, **sheet.inputs},
        settings=found.settings | ({} if repeats is None else {"repeats": repeats}),
        notes=[note.model_dump(mode="json") for note in found.notes],
        spec=sheet.spec,
    )
    return study.execute(
        controller,
        asked,
        run_options,
        lambda wanted: resolution(wanted.workload, changes_of(wanted, changes, found)),
        None if closing is None else lambda: closing(controller),
        watch=found.watch,
        beside=None if output is None or found.output is None else found.output(Path(output), console.say),
        on_hosts=StudyOnHosts(lambda wanted: changes_of(wanted, changes, found)),
    )
