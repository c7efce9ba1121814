"""From a word or a text to a Workload: a job file by path, its text, or a named workload.

Knows how a word is told to be one or the other, and what is near when it is neither.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.api.jobs.job_changes import Job, JobChanges, JobText
from loadstone.api.jobs.job_source import language_of, named, source
from loadstone.api.jobs.times_and_rates import nanoseconds, total_rate
from loadstone.errors import InputError
from loadstone.formats.fio.numbers import Reading, amount
from loadstone.formats.fio.read import FileSource, ReadOptions, TextSource, read_jobfiles
from loadstone.formats.recognise import Language
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import Resolution, resolve
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from loadstone.plan.stream import TotalRate
    from loadstone.workload.model import Workload


def workload(job: Job, changes: JobChanges) -> Workload:
    """Read what is to run and change it.

    Raises `InputError` for what cannot be read, and for a change that would have no effect.
    """
    if language_of(job, changes) is Language.VDBENCH:
        from loadstone.api.jobs import vdbench

        # Its hosts and luns are mapped before anything is made of them.
        return changed(vdbench.single(job, changes), replace(changes, targets_instead={}))
    return changed(_read(job, changes), changes)


def changed(work: Workload, changes: JobChanges, *, runtime: bool = True) -> Workload:
    """Return a Workload with the changes; without `runtime` not how long it takes."""
    argument = changes.caller.given
    if changes.targets_instead:
        with argument("targets_instead"):
            work = work.map_targets(dict(changes.targets_instead))
    if changes.targets:
        with argument("targets") as where:
            work = work.with_targets(list(changes.targets))
            jobs = [job.changed({"set_at": {**job.set_at, "placement.targets": where}}) for job in work.jobs]
            work = work.model_copy(update={"jobs": tuple(jobs)})
    work = sized(work, changes)
    if runtime and changes.runtime is not None:
        with argument("runtime") as where:
            work = work.with_runtime(nanoseconds(changes.runtime, where))
    return work


def sized(work: Workload, changes: JobChanges) -> Workload:
    """Let every job use as much of its targets as `size` says."""
    if changes.size is None:
        return work
    with changes.caller.given("size") as where:
        return work.with_size(amount(changes.size, Reading(where)))


def resolution(work: Workload, changes: JobChanges) -> Resolution:
    """Resolve every default against this host. Touches nothing."""
    return resolution_at(work, changes, total_rate(changes))


def resolution_at(work: Workload, changes: JobChanges, rate: TotalRate | None) -> Resolution:
    """Resolve with a total rate that is not among the changes, None for a closed loop."""
    options = ResolveOptions(keep_ioengine=changes.keep_ioengine, rate=rate, journal=changes.journal)
    resolved = resolve(work, options=options)
    if changes.ramp_until_steady and len({worker.stage for worker in resolved.plan.workers}) > 1:
        raise changes.caller.error("api.job.no_settling", "ramp_until_steady")
    return resolved


def _read(job: Job, changes: JobChanges) -> Workload:
    caller = changes.caller
    language = language_of(job, changes)
    if language not in (None, Language.FIO):
        raise caller.error("api.job.list_of_runs", job=str(job), language=language)
    if (name := named(job)) is not None:
        changes.refuse(("allow_exec",), "a named workload")
        with caller.given("parameters"):
            return _sections(catalogue.load(name).workload(changes.parameters), changes)
    if changes.parameters:
        raise caller.error("api.job.no_parameters", "parameters", job=str(job))
    job_source = source(job, changes)
    jobfile = (
        TextSource(job_source.content, name=job_source.name)
        if isinstance(job_source, JobText)
        else FileSource(job_source)
    )
    return read_jobfiles(
        [jobfile], sections=list(changes.sections), options=ReadOptions(allow_exec=changes.allow_exec)
    )


def _sections(work: Workload, changes: JobChanges) -> Workload:
    """Keep the jobs that were chosen; all without a choice."""
    names, where = changes.sections, changes.caller.at("sections")
    known = [job.name for job in work.jobs]
    for name in names:
        if name not in known:
            raise make_error(
                InputError,
                "api.job.no_job",
                where=where,
                hint=nearest(name, known),
                workload=work.name,
                name=repr(name),
            )
    jobs = tuple(job for job in work.jobs if not names or job.name in names)
    if names and len(jobs) == len(known):
        raise make_error(InputError, "api.job.keeps_all", where=where)
    return work.model_copy(update={"jobs": jobs})
