"""vdbench's parameter files.

Knows which changes mean what for them: `runtime`, `warmup` and `interval` are vdbench's `-e`,
`-w` and `-i`, `parameters` gives variables, `sections` keeps run definitions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone.api.jobs.job_changes import Job, JobChanges, JobText
from loadstone.api.jobs.job_source import source
from loadstone.api.jobs.run_list import RunList
from loadstone.api.jobs.times_and_rates import seconds
from loadstone.api.jobs.vdbench_live import watch
from loadstone.api.jobs.vdbench_output import Output
from loadstone.errors import InputError, RefusedError
from loadstone.formats import vdbench
from loadstone.formats.recognise import Language
from loadstone.formats.vdbench.values import Number
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.plan.host_facts import HostFacts
from loadstone.report.vdbench.wording import run_line
from loadstone.study.parameter_file import ParameterFileController
from loadstone.workload.model import Note
from loadstone.workload.other_hosts import elsewhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.formats.vdbench import FileWork, ParameterFile, ParameterFileRun
    from loadstone.formats.vdbench.rundef import LoopValue
    from loadstone.workload.model import Workload


_WITHOUT_EFFECT: Final = ("targets", "size", "rate", "rate_process", "rate_profile", "keep_ioengine")
_NAMES: Final = ("wd", "sd", "lun", "xfersizes")


def read(job: Job, changes: JobChanges, more: Sequence[Job] = ()) -> RunList:
    """Read a parameter file, and those that go on with it, and everything they run."""
    changes.refuse(_WITHOUT_EFFECT, "a parameter file")
    file = _file([job, *more], changes)
    overrides = vdbench.Overrides(
        elapsed=seconds(changes.runtime, changes, "runtime"),
        interval=seconds(changes.interval, changes, "interval"),
        warmup=seconds(changes.warmup, changes, "warmup"),
    )
    runs = _chosen(vdbench.expand(file, overrides), changes)
    run_facts = [vdbench.facts(run) for run in runs]
    refused = _refused(file, runs, allow_exec=changes.allow_exec)
    return RunList(
        language=Language.VDBENCH,
        name=file.name,
        made=lambda: ParameterFileController(file, runs, allow_exec=changes.allow_exec),
        listing=[
            {**_listed(number, run), "refused": refused.get(run.title)}
            for number, run in enumerate(runs, start=1)
        ],
        lines=[run_line(facts, "Simulating") for facts in run_facts],
        inputs=dict(file.sources),
        notes=list(file.notes),
        refused=refused,
        journal=file.general.journal,
        watch=watch,
        output=lambda out, say: Output(out, _lowered(file, runs, allow_exec=changes.allow_exec), say),
    )


def _lowered(file: ParameterFile, runs: Sequence[ParameterFileRun], *, allow_exec: bool) -> list[Workload]:
    """Return what every run does; any rate will do where it follows from a run before."""
    assumptions = vdbench.Given(rate_iops=1000.0, allow_exec=allow_exec)
    return [vdbench.lower(file, run, assumptions) for run in runs]


def _size_bytes(lun: str) -> int | None:
    """Return the size of what stands at a path; None where nothing does, or nothing that has one."""
    try:
        return HostFacts.here().target(str(Path(lun).absolute()), None).size_bytes or None
    except InputError:
        return None  # Where it is a target, it is looked at again and said why.


def _refused(file: ParameterFile, runs: Sequence[ParameterFileRun], *, allow_exec: bool) -> dict[str, str]:
    """Return the runs that are understood and will not be done, and why."""
    refusals: dict[str, str] = {}
    for run in runs:
        try:
            if (place := vdbench.host_away(file)) is not None:
                raise elsewhere(place)
            # Any rate will do where it follows from a run before.
            vdbench.lower(file, run, vdbench.Given(rate_iops=1000.0, allow_exec=allow_exec))
        except RefusedError as error:
            refusals[run.title] = f"{error}: {error.hint}" if error.hint else str(error)
    return refusals


def single(job: Job, changes: JobChanges) -> Workload:
    """Read a parameter file of one run, for the verbs that make several of one."""
    file = _file([job], changes)
    if file.general.journal:
        raise make_error(RefusedError, "api.vdbench.journal", where=file.general.at["journal"])
    chosen = _chosen(vdbench.expand(file), changes)
    formats = [run for run in chosen if run.is_format]
    runs = [run for run in chosen if not run.is_format] or formats
    if len(runs) != 1:
        raise changes.caller.error(
            "api.vdbench.several", job=str(job), runs=len(runs), name=runs[0].definition.name
        )
    workload = vdbench.lower(file, runs[0], vdbench.Given(allow_exec=changes.allow_exec))
    if formats in ([], runs):
        return workload
    note = Note(where=runs[0].definition.where, text=say("api.vdbench.formatted_before"), kind="changed")
    return workload.model_copy(update={"notes": (*workload.notes, note)})


def _file(jobs: Sequence[Job], changes: JobChanges) -> ParameterFile:
    """Read files as one, with hosts and luns as they are replaced and sizes as they are here."""
    sources = [
        vdbench.ParameterText(job_source.content, job_source.name)
        if isinstance(job_source, JobText)
        else job_source
        for job_source in (source(job, changes) for job in jobs)
    ]
    file = vdbench.read(sources, variables=dict(changes.parameters))
    if mapping := dict(changes.targets_instead):
        with changes.caller.given("targets_instead"):
            file, mapping = vdbench.map_hosts(file, mapping)
            file = file.map_luns(mapping) if mapping else file
    return file.with_sizes(_size_bytes)


def _chosen(runs: list[ParameterFileRun], changes: JobChanges) -> list[ParameterFileRun]:
    """Keep the runs of some run definitions; all of them without a choice."""
    if not changes.sections:
        return runs
    known = {run.definition.name for run in runs}
    for name in changes.sections:
        if name not in known:
            raise changes.caller.error(
                "api.vdbench.no_run", "sections", hint=nearest(name, known), name=repr(name)
            )
    return [run for run in runs if run.definition.name in changes.sections]


def _listed(number: int, run: ParameterFileRun) -> dict[str, Any]:
    row: dict[str, Any] = {"number": number, "name": run.title, **vdbench.facts(run)}
    for word in ("elapsed", "warmup", "interval"):
        row[f"{word}_s"] = int(row.pop(word))
    row["pause_s"] = run.times.pause
    row["values"] = {loop: _plain(value) for loop, value in run.turn.values.items()}
    row["workloads"] = [
        {
            word: value if word in _NAMES else _typed(value)
            for word, value in vdbench.workload_facts(work, run).items()
        }
        for work in run.works
    ]
    if run.file_works:
        row["format"] = None if run.formats is None else list(run.formats)
        row["file_workloads"] = [_file_work(work, run) for work in run.file_works]
    return row


def _file_work(work: FileWork, run: ParameterFileRun) -> dict[str, Any]:
    tree = vdbench.shape(work.system, run.turn)
    return {
        "fwd": work.workload.name,
        "fsd": work.system.name,
        "anchor": work.system.anchor,
        "operation": work.operation,
        "threads": work.threads,
        "skew": work.skew,
        "target": None if work.goal is None else work.goal.name,
        "directories": tree.directories,
        "files": tree.total_files,
        "expected_bytes": tree.expected_bytes,
    }


def _plain(value: LoopValue) -> str | int | float:
    """Return a loop's value as JSON has it; a percentage as text."""
    if isinstance(value, Number):
        return f"{value.value:g}%" if value.percent else _whole(value.value)
    return _typed(str(value))


def _typed(text: str) -> str | int | float:
    return _whole(float(text)) if text.lstrip("-").replace(".", "", 1).isdigit() else text


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value
