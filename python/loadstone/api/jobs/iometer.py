"""Iometer's configuration files.

Knows which changes mean what for them: `targets_instead` says what a drive is here, `targets` takes the
place of all of them, `warmup` that of the ramp up time, `sections` keeps access specifications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone import input_file, units
from loadstone.api.jobs.job_changes import Job, JobChanges, JobText
from loadstone.api.jobs.job_source import source
from loadstone.api.jobs.read_workload import sized
from loadstone.api.jobs.run_list import RunList
from loadstone.api.jobs.times_and_rates import seconds
from loadstone.formats import iometer
from loadstone.formats.recognise import Language
from loadstone.messages import say
from loadstone.messages.suggest import nearest
from loadstone.study.controller import Next
from loadstone.study.list_controller import ListController
from loadstone.workload.rows import RowWork, WorkloadRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.formats.iometer import TestRun
    from loadstone.workload.model import Job as WorkloadJob
    from loadstone.workload.model import Note

_WITHOUT_EFFECT: Final = ("parameters", "interval", "allow_exec")
_SECOND_NS: Final = 1_000_000_000


def read(job: Job, changes: JobChanges) -> RunList:
    """Read a configuration and everything it runs."""
    changes.refuse(_WITHOUT_EFFECT, "a configuration of Iometer")
    content, name = _content(job, changes)
    configuration = iometer.read_icf(content, name)
    runtime_s = seconds(changes.runtime, changes, "runtime")
    ramp_s = seconds(changes.warmup, changes, "warmup")
    overrides = iometer.CommandLineChanges(
        mapping=dict(changes.targets_instead),
        targets=list(changes.targets),
        runtime_ns=None if runtime_s is None else runtime_s * _SECOND_NS,
        ramp_ns=None if ramp_s is None else ramp_s * _SECOND_NS,
    )
    runs = _chosen_runs(iometer.runs(configuration, overrides), changes)
    nexts = [Next(run.name, sized(run.workload, changes), factors={**run.factors}) for run in runs]
    return RunList(
        language=Language.IOMETER,
        name=runs[0].workload.name,
        made=lambda: ListController(nexts),
        listing=[_listed(number, run) for number, run in enumerate(runs, start=1)],
        lines=[_line(number, len(runs), run) for number, run in enumerate(runs, start=1)],
        inputs={name: content},
        notes=_notes(runs),
    )


def _content(job: Job, changes: JobChanges) -> tuple[bytes, str]:
    job_source = source(job, changes)
    if isinstance(job_source, JobText):
        return job_source.content, job_source.name
    return input_file.read(job_source, "job file", where=changes.caller.at()), str(job_source)


def _chosen_runs(runs: Sequence[TestRun], changes: JobChanges) -> list[TestRun]:
    """Keep the runs of the access specifications that were chosen; all without a choice."""
    names = changes.sections
    known = {str(run.factors["access_specification"]) for run in runs}
    for name in names:
        if name not in known:
            raise changes.caller.error(
                "api.job.no_specification", "sections", hint=nearest(name, known), name=repr(name)
            )
    return [run for run in runs if not names or run.factors["access_specification"] in names]


def _notes(runs: Sequence[TestRun]) -> list[Note]:
    """Return what was said about any run, each thing once."""
    return list(dict.fromkeys(note for run in runs for note in run.workload.notes))


def _listed(number: int, run: TestRun) -> dict[str, Any]:
    first = run.workload.jobs[0]
    return {
        "number": number,
        "name": run.name,
        **run.factors,
        "runtime_s": (first.limits.runtime_ns or 0) / _SECOND_NS,
        "ramp_s": (first.limits.ramp_ns or 0) / _SECOND_NS,
        "workers": [_worker(job) for job in run.workload.jobs],
    }


def _rows(job: WorkloadJob) -> tuple[WorkloadRow, ...]:
    return job.work.rows if isinstance(job.work, RowWork) else ()


def _worker(job: WorkloadJob) -> dict[str, Any]:
    options = job.own_options
    return {
        "manager": options["manager"],
        "worker": options["worker"],
        "targets": [target.path for target in job.placement.targets],
        "access_specification": options["access_specification"],
        "outstanding_ios": int(options["outstanding_ios"]),
        "starting_sector": int(options["starting_sector"]),
        "maximum_size_sectors": int(options["maximum_size"]),
        "rows": [row.model_dump(mode="json") for row in _rows(job)],
        "delay_ms": (job.pacing.thinktime_ns or 0) / 1e6,
    }


def _line(number: int, count: int, run: TestRun) -> str:
    jobs = run.workload.jobs
    workers = len({(job.own_options["manager"], job.own_options["worker"]) for job in jobs})
    targets = len({target.path for job in jobs for target in job.placement.targets})
    outstanding = sum(job.engine.iodepth or 0 for job in jobs)
    lasts = units.whole_seconds((jobs[0].limits.runtime_ns or 0) / _SECOND_NS)
    return say(
        "api.job.iometer_run",
        number=number,
        count=count,
        name=run.name,
        workers=workers,
        targets=targets,
        outstanding=outstanding,
        length=lasts,
    )
