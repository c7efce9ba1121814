"""From a word or a text to a Workload: a job file by path, its text, or a named workload.

Knows how a word is told to be one or the other, and what is near when it is neither.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import input_file
from loadstone.api.jobs.job_changes import Job, JobChanges, JobText
from loadstone.errors import InputError, Where
from loadstone.formats.fio.numbers import SECOND_NS, Reading, amount, size, time_ns
from loadstone.formats.fio.read import FileSource, ReadOptions, TextSource, read_jobfiles
from loadstone.formats.recognise import Language, recognise
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.plan.model import RateProcess
from loadstone.plan.options import ResolveOptions
from loadstone.plan.resolve import Resolution, resolve
from loadstone.plan.stream import TotalRate
from loadstone.workload import catalogue

if TYPE_CHECKING:
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


def nanoseconds(time: str | float, where: Where) -> int:
    """Read a time: seconds, or a text such as 5m. Raises `InputError`."""
    if isinstance(time, str):
        return time_ns(time, Reading(where), SECOND_NS)
    if not 0 < time < 10**9:
        raise make_error(InputError, "api.amount.seconds", where=where, found=str(time))
    return round(time * SECOND_NS)


def resolution(work: Workload, changes: JobChanges) -> Resolution:
    """Resolve every default against this host. Touches nothing."""
    return resolution_at(work, changes, total_rate(changes))


def resolution_at(work: Workload, changes: JobChanges, rate: TotalRate | None) -> Resolution:
    """Resolve with a total rate that is not among the changes, None for a closed loop."""
    options = ResolveOptions(keep_ioengine=changes.keep_ioengine, rate=rate, journal=changes.journal)
    resolved = resolve(work, options=options)
    if changes.ramp_until_steady and len({worker.stage for worker in resolved.plan.workers}) > 1:
        raise make_error(InputError, "api.job.no_settling", where=changes.caller.at("ramp_until_steady"))
    return resolved


def total_rate(changes: JobChanges) -> TotalRate | None:
    """Read the rate of all jobs and what belongs to it; None without one."""
    caller = changes.caller
    if changes.rate is None:
        for name in ("rate_process", "rate_profile"):
            if getattr(changes, name) is not None:
                raise make_error(
                    InputError,
                    "api.option.no_effect_without",
                    where=caller.at(name),
                    option=caller.name_of("rate"),
                )
        return None
    return TotalRate(
        iops=_per_second(changes.rate, caller.at("rate")),
        process=rate_process(changes, RateProcess.LINEAR),
        profile=(
            () if changes.rate_profile is None else _profile(changes.rate_profile, caller.at("rate_profile"))
        ),
        where=caller.at("rate"),
    )


def rate_process(changes: JobChanges, unless_given: RateProcess) -> RateProcess:
    """Return how I/Os of a rate are spaced."""
    known = [one.value for one in RateProcess]
    if changes.rate_process is None:
        return unless_given
    if changes.rate_process not in known:
        raise make_error(
            InputError,
            "api.amount.rate_process",
            where=changes.caller.at("rate_process"),
            found=repr(changes.rate_process),
            known=" or ".join(known),
        )
    return RateProcess(changes.rate_process)


def _per_second(amount_per_second: str | float, where: Where) -> float:
    rate = (
        float(size(amount_per_second, Reading(where, kb_base=1000)))
        if isinstance(amount_per_second, str)
        else float(amount_per_second)
    )
    if not 0 < rate < float("inf"):
        raise make_error(InputError, "api.amount.rate", where=where, found=str(amount_per_second))
    return rate


def _profile(text: str, where: Where) -> tuple[tuple[int, float], ...]:
    """Read `TIME:SHARE%,...`, times ascending; nanoseconds and shares of 1."""
    points: list[tuple[int, float]] = []
    for word in text.split(","):
        time, colon, share = word.partition(":")
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)%\s*", share)
        if not colon or match is None:
            raise make_error(InputError, "api.rate_course.point", where=where, found=repr(word))
        points.append((time_ns(time, Reading(where), SECOND_NS), float(match[1]) / 100))
    if points != sorted(points, key=lambda point: point[0]):
        raise make_error(InputError, "api.rate_course.order", where=where)
    if not any(share for _, share in points):
        raise make_error(InputError, "api.rate_course.zero", where=where)
    return tuple(points)


def language_of(job: Job, changes: JobChanges) -> Language | None:
    """Return the language of a job file, None for a named workload."""
    if (name := named(job)) is not None:
        if changes.language is not None:
            raise make_error(InputError, "api.job.named", where=changes.caller.at("language"), name=name)
        return None
    if changes.language is not None:
        return _language(changes.language, changes)
    job_source = source(job, changes)
    if isinstance(job_source, JobText):
        return recognise(job_source.content, job_source.name)
    try:
        return recognise(input_file.read(job_source, "job file"), job_source.name)
    except InputError:
        return Language.FIO  # Its reader says why it cannot be read.


def _language(text: str, changes: JobChanges) -> Language:
    known = [one.value for one in Language]
    if text not in known:
        raise make_error(
            InputError,
            "api.amount.one_of",
            where=changes.caller.at("language"),
            hint=nearest(text, known),
            found=repr(text),
            known=", ".join(known),
        )
    return Language(text)


def source(job: Job, changes: JobChanges) -> Path | JobText:
    """Return a job file's path, or what lies in no file. Raises `InputError` where there is no such file."""
    if isinstance(job, JobText):
        return job
    if not Path(job).exists():
        raise _neither(job, changes)
    return Path(job)


def named(job: Job) -> str | None:
    """Return the name of a workload; None for a job file."""
    is_one = isinstance(job, str) and job in catalogue.names() and not Path(job).is_file()
    return str(job) if is_one else None


def seconds(time: str | float | None, changes: JobChanges, name: str) -> int | None:
    """Read a change that is whole seconds; None without it."""
    if time is None:
        return None
    with changes.caller.given(name) as where:
        duration_ns = nanoseconds(time, where)
        if duration_ns % SECOND_NS:
            raise make_error(InputError, "api.amount.whole_seconds", where=where, found=str(time))
        return duration_ns // SECOND_NS


def _read(job: Job, changes: JobChanges) -> Workload:
    caller = changes.caller
    language = language_of(job, changes)
    if language not in (None, Language.FIO):
        raise make_error(
            InputError, "api.job.list_of_runs", where=caller.at(), job=str(job), language=language
        )
    if (name := named(job)) is not None:
        changes.refuse(("allow_exec",), "a named workload")
        with caller.given("parameters"):
            return _sections(catalogue.load(name).workload(changes.parameters), changes)
    if changes.parameters:
        raise make_error(InputError, "api.job.no_parameters", where=caller.at("parameters"), job=str(job))
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


def _neither(word: str, changes: JobChanges) -> InputError:
    """Say that nothing has this name, and what is nearest: a workload, or a file beside it."""
    folder = Path(word).parent
    files = [str(folder / entry.name) if str(folder) != "." else entry.name for entry in _entries(folder)]
    near = difflib.get_close_matches(word, [*catalogue.names(), *files], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`loadstone workloads` lists the named workloads"
    return make_error(InputError, "api.job.unknown", where=changes.caller.at(), hint=hint, found=repr(word))


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []
