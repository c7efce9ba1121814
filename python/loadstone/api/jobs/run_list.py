"""What a job file or a named procedure of several runs runs, in no tool's language.

Knows which changes are for which run. Who reads it is in `read_runs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from loadstone.study.run import StudyProgress

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.api.jobs.job_changes import JobChanges
    from loadstone.formats.recognise import Language
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


def verifies(wanted: Next) -> bool:
    """Tell whether a run verifies what it writes."""
    return any(job.verification.verify and job.verification.do_verify for job in wanted.workload.jobs)


def changes_of(wanted: Next, changes: JobChanges, run_list: RunList) -> JobChanges:
    """Return the changes of one run: only a run that verifies what it writes keeps a journal."""
    return replace(changes, journal=(changes.journal or run_list.journal) and verifies(wanted))
