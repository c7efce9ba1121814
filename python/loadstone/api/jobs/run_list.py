"""Job files and named procedures that are several runs: how they are read.

Knows which changes make sense for them. A language's runs come from its own reader and controller.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from loadstone.api.jobs import job_files
from loadstone.api.jobs.read_workload import language_of, named
from loadstone.errors import InputError
from loadstone.formats.recognise import Language
from loadstone.messages import make_error
from loadstone.study.run import StudyProgress
from loadstone.workload import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.api.jobs.job_changes import Job, JobChanges
    from loadstone.session import Progress
    from loadstone.study.controller import Controller, Next
    from loadstone.workload.model import Note

Say = Callable[[str], None]
"""Who hears a sentence."""


class Beside(StudyProgress, Protocol):
    """Who writes something of a study while it runs."""

    def close(self, study: Path) -> None:
        """Write what is known at its end."""


@dataclass(frozen=True, slots=True)
class RunList:
    """Everything a job file runs. `listing`: each run with its values, in order."""

    language: Language | Literal["catalogue", "files"]
    name: str
    made: Callable[[], Controller]
    """Makes a controller of all runs, at their start."""
    listing: list[dict[str, Any]]
    lines: list[str]
    """The same for people, a line per run, in the language's own words."""
    inputs: dict[str, bytes]
    notes: list[Note]
    settings: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Runs that the language's reader understands and will not do, and why."""
    once: str = ""
    """Why it cannot be repeated; empty: it can."""
    journal: bool = False
    """The job file asks for a journal of verified writes."""
    closing: Callable[[Controller], list[Any]] | None = None
    """Notes of the study's end."""
    watch: Callable[[Next, Say], Progress | None] | None = None
    """Who tells of a run while it runs, when the language has a way of its own."""
    output: Callable[[Path, Say], Beside] | None = None
    """Who writes the language's own files into a directory while the runs go on."""


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
    if changes.journal and not any(_verifies(wanted) for wanted in run_list.made().known()):
        raise make_error(InputError, "api.job.no_journal", where=changes.caller.at("journal"))
    return run_list


def _verifies(wanted: Next) -> bool:
    return any(job.verification.verify and job.verification.do_verify for job in wanted.workload.jobs)


def changes_of(wanted: Next, changes: JobChanges, run_list: RunList) -> JobChanges:
    """Return the changes of one run: only a run that verifies what it writes keeps a journal."""
    return replace(changes, journal=(changes.journal or run_list.journal) and _verifies(wanted))


_READERS: Final = {
    Language.VDBENCH: "loadstone.api.jobs.vdbench",
    Language.IOMETER: "loadstone.api.jobs.iometer",
}
"""The modules that read a language of several runs, each with `read(job, changes)`."""
