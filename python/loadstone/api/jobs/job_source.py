"""What a job is read from: a file, a text or a name, and in which language.

Reads no more of a file than tells its language.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from loadstone import input_file
from loadstone.api.jobs.job_changes import Job, JobChanges, JobText
from loadstone.errors import InputError
from loadstone.formats.recognise import Language, recognise
from loadstone.messages import say
from loadstone.messages.suggest import nearest
from loadstone.workload import catalogue


def language_of(job: Job, changes: JobChanges) -> Language | None:
    """Return the language of a job file, None for a named workload."""
    if (name := named(job)) is not None:
        if changes.language is not None:
            raise changes.caller.error("api.job.named", "language", name=name)
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
        raise changes.caller.error(
            "api.amount.one_of",
            "language",
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


def _neither(word: str, changes: JobChanges) -> InputError:
    """Say that nothing has this name, and what is nearest: a workload, or a file beside it."""
    folder = Path(word).parent
    files = [str(folder / entry.name) if str(folder) != "." else entry.name for entry in _entries(folder)]
    near = difflib.get_close_matches(word, [*catalogue.names(), *files], n=1)
    hint = say("api.job.near", name=repr(near[0])) if near else say("api.job.workloads")
    return changes.caller.error("api.job.unknown", hint=hint, found=repr(word))


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return []
