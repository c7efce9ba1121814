"""Iometer's configuration files on the command line.

Knows which options mean what for them: `--map` says what a drive is here, `--target` takes the
place of all of them, `--warmup` that of the ramp up time, `--section` keeps access specifications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.cli.jobs.read_workload import seconds, sized, source
from loadstone.cli.jobs.runlist import RunList, refuse
from loadstone.cli.options.arguments import COMMAND_LINE, LoadOptions
from loadstone.errors import InputError, Where
from loadstone.formats import iometer
from loadstone.formats.recognise import Language
from loadstone.formats.suggest import nearest
from loadstone.study.controller import Next
from loadstone.study.run_list import ListController
from loadstone.workload.rows import RowWork, WorkloadRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.formats.iometer import TestRun
    from loadstone.workload.model import Job, Note

_WITHOUT_EFFECT: Final = ("set", "interval", "allow_exec")
_SECOND_NS: Final = 1_000_000_000


def read(word: str, load: LoadOptions) -> RunList:
    """Read a configuration and everything it runs."""
    refuse(load, _WITHOUT_EFFECT, "a configuration of Iometer")
    content, name = _content(word)
    configuration = iometer.read_icf(content, name)
    runtime_s, ramp_s = seconds(load.runtime, "--runtime"), seconds(load.warmup, "--warmup")
    asked = iometer.CommandLineChanges(
        mapping=load.mapping(),
        targets=load.target,
        runtime_ns=None if runtime_s is None else runtime_s * _SECOND_NS,
        ramp_ns=None if ramp_s is None else ramp_s * _SECOND_NS,
    )
    runs = _kept(iometer.runs(configuration, asked), load.section)
    nexts = [Next(run.name, sized(run.workload, load), factors={**run.factors}) for run in runs]
    return RunList(
        language=Language.IOMETER,
        name=runs[0].workload.name,
        made=lambda: ListController(nexts),
        listing=[_listed(number, run) for number, run in enumerate(runs, start=1)],
        lines=[_line(number, len(runs), run) for number, run in enumerate(runs, start=1)],
        inputs={name: content},
        notes=_notes(runs),
    )


def _content(word: str) -> tuple[bytes, str]:
    found = source(word)
    if isinstance(found, tuple):
        return found
    try:
        return found.read_bytes(), str(found)
    except OSError as error:
        raise InputError(f"{word}: cannot be read: {error.strerror}", where=Where(COMMAND_LINE)) from error


def _kept(runs: Sequence[TestRun], names: Sequence[str]) -> list[TestRun]:
    """Keep the runs of these access specifications; all without any."""
    known = {str(run.factors["access_specification"]) for run in runs}
    for name in names:
        if name not in known:
            raise InputError(
                f"no run has the access specification {name!r}",
                where=Where(COMMAND_LINE, option="--section"),
                hint=nearest(name, known),
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


def _rows(job: Job) -> tuple[WorkloadRow, ...]:
    return job.work.rows if isinstance(job.work, RowWork) else ()


def _worker(job: Job) -> dict[str, Any]:
    said = job.own_options
    return {
        "manager": said["manager"],
        "worker": said["worker"],
        "targets": [target.path for target in job.placement.targets],
        "access_specification": said["access_specification"],
        "outstanding_ios": int(said["outstanding_ios"]),
        "starting_sector": int(said["starting_sector"]),
        "maximum_size_sectors": int(said["maximum_size"]),
        "rows": [row.model_dump(mode="json") for row in _rows(job)],
        "delay_ms": (job.pacing.thinktime_ns or 0) / 1e6,
    }


def _line(number: int, count: int, run: TestRun) -> str:
    jobs = run.workload.jobs
    workers = len({(job.own_options["manager"], job.own_options["worker"]) for job in jobs})
    targets = len({target.path for job in jobs for target in job.placement.targets})
    outstanding = sum(job.engine.iodepth or 0 for job in jobs)
    lasts = units.whole_seconds((jobs[0].limits.runtime_ns or 0) / _SECOND_NS)
    return (
        f"run {number} of {count}: {run.name}: {workers} {'worker' if workers == 1 else 'workers'} on "
        f"{targets} {'target' if targets == 1 else 'targets'}, {outstanding} outstanding in all, {lasts}"
    )
