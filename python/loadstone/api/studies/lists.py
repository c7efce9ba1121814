"""Several runs of job files as a study, in their order or repeated.

Knows which arguments make sense for them. What a language runs is told by its reader in `jobs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.api.jobs.read_workload import resolution
from loadstone.api.jobs.run_list import changes_of
from loadstone.api.studies.prepared_study import PreparedStudy, times
from loadstone.study.list_controller import RepeatedList
from loadstone.study.run import StudyRequest

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.api.jobs.job_changes import JobChanges
    from loadstone.api.jobs.run_list import RunList, Say
    from loadstone.api.jobs.spec_option import DataSheet


def prepare_list(
    run_list: RunList,
    changes: JobChanges,
    *,
    repeat: int | None,
    vdbench_output: Path | None,
    sheet: DataSheet,
    request: dict[str, Any],
    say: Say = lambda _: None,
) -> PreparedStudy:
    """Prepare the runs of job files.

    `vdbench_output` gets vdbench's own files; `say` hears of trouble there.
    """
    caller = changes.caller
    if run_list.output is None:
        caller.refuse("what is no parameter file of vdbench", vdbench_output=vdbench_output)
    repeats = times(repeat, caller)
    if repeats is not None and run_list.once:
        raise caller.error("api.job.once", "repeat", name=run_list.name, reason=run_list.once)
    controller = run_list.made() if repeats is None else RepeatedList(run_list.made, repeats)
    closing = run_list.closing
    return PreparedStudy(
        controller,
        StudyRequest(
            kind="list",
            name=run_list.name,
            front_end=str(run_list.language),
            request=request,
            inputs={**run_list.inputs, **sheet.inputs},
            settings=run_list.settings | ({} if repeats is None else {"repeats": repeats}),
            notes=[note.model_dump(mode="json") for note in run_list.notes],
            spec=sheet.spec,
        ),
        lambda wanted: resolution(wanted.workload, changes_of(wanted, changes, run_list)),
        notes=run_list.notes,
        closing=None if closing is None else lambda: closing(controller),
        changes_of=lambda wanted: changes_of(wanted, changes, run_list),
        watch=run_list.watch,
        beside=None
        if vdbench_output is None or run_list.output is None
        else run_list.output(vdbench_output, say),
    )
