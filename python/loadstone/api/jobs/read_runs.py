"""Job files and named procedures that are several runs: how they are read.

Knows which changes make sense for them. A language's runs come from its own reader and controller.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from loadstone.api.jobs import job_files
from loadstone.api.jobs.job_source import language_of, named
from loadstone.api.jobs.run_list import verifies
from loadstone.formats.recognise import Language
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.api.jobs.job_changes import Job, JobChanges
    from loadstone.api.jobs.run_list import RunList


def read(
    job: Job, changes: JobChanges, more: Sequence[Job] = (), shuffle: int | None = None
) -> RunList | None:
    """Read a job file of several runs; None when the job is one run.

    `more`: files that go on with it, or are runs of their own; `shuffle`: draws their order.
    """
    if job_files.apart([job, *more], changes):
        runs = job_files.read([job, *more], changes, lambda one: _of_file(one, changes), shuffle)
        return _with_journal(runs, changes)
    changes.caller.refuse("runs of one job file", shuffle=shuffle)
    return _of_file(job, changes, more)


def _of_file(job: Job, changes: JobChanges, more: Sequence[Job] = ()) -> RunList | None:
    language = language_of(job, changes)
    if any(language_of(one, changes) is Language.VDBENCH for one in more):
        language = Language.VDBENCH  # The first may have little but comments.
    module = None if language is None else _READERS.get(language)
    name = named(job)
    if name is not None and language is None and catalogue.load(name).is_procedure:
        module = "loadstone.api.jobs.procedure"
    if module is None:
        changes.refuse(("interval", "warmup"), "a fio job file or a named workload")
        return None
    reader = importlib.import_module(module)
    runs: RunList = reader.read(job, changes, more) if more else reader.read(job, changes)
    return _with_journal(runs, changes)


def _with_journal(run_list: RunList, changes: JobChanges) -> RunList:
    """Refuse a journal that nothing would be written to."""
    if changes.journal and not any(verifies(wanted) for wanted in run_list.made().known()):
        raise changes.caller.error("api.job.no_journal", "journal")
    return run_list


_READERS: Final = {
    Language.VDBENCH: "loadstone.api.jobs.vdbench",
    Language.IOMETER: "loadstone.api.jobs.iometer",
}
"""The modules that read a language of several runs, each with `read(job, changes)`."""
