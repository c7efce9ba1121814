"""A study that is prepared, and how it is run.

Knows what every study has, whoever decides on its runs: requests are checked before the first run, and
commands of a job go around its runs. Prints nothing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone.api.jobs import exec_commands, schedulers
from loadstone.audit.run import SealedFigures
from loadstone.errors import InputError, RefusedError
from loadstone.messages import say
from loadstone.path.child import run_in_child
from loadstone.plan.safety.guard import Consent
from loadstone.study import random_seeds
from loadstone.study.run import Hooks, StudyRequest, remembered, run_study
from loadstone.study.run_maker import RunsHere
from loadstone.study.time_estimate import TimeEstimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.api.jobs.job_changes import Caller, Job, JobChanges
    from loadstone.api.jobs.run_list import Beside, Say
    from loadstone.api.jobs.spec_option import DataSheet
    from loadstone.bundle.study import Kind, StudyRecord
    from loadstone.errors import LoadstoneError
    from loadstone.plan.model import Plan
    from loadstone.plan.resolve import Resolution
    from loadstone.session import Progress
    from loadstone.study.controller import Controller, Done, Next
    from loadstone.study.run import AfterFailure, StudyOutcome, StudyProgress
    from loadstone.study.run_maker import Resolved, RunMaker
    from loadstone.watch.address import WatchedAddress
    from loadstone.workload.model import Note, Workload

MAX_REPEATS: Final = 1000


@dataclass(frozen=True, slots=True)
class StudyOfJob:
    """A study of one job, as it is asked for."""

    job: Job
    changes: JobChanges
    sheet: DataSheet
    request: dict[str, Any]
    """As `request.json` keeps it."""
    on_this_host: bool = True
    """Whether its runs are made on this host, which is looked at then."""

    def study_request(
        self,
        kind: Kind,
        workload: Workload,
        settings: dict[str, Any],
        first: Resolution | None,
        front_end: str = "",
    ) -> StudyRequest:
        """Return what the study keeps; `first` is its first run, where that is made here."""
        return StudyRequest(
            kind=kind,
            name=workload.name,
            front_end=front_end or kind,
            request=self.request,
            inputs={**workload.sources, **self.sheet.inputs},
            settings=settings,
            notes=notes_of(workload, first),
            spec=self.sheet.spec,
        )


@dataclass(frozen=True, slots=True)
class StudyMeans:
    """How a study is run, whatever is in it."""

    out: Path
    """Directory of the study; new or empty."""
    consent: Consent = field(default_factory=Consent)
    calibration: bool = True
    watch: tuple[WatchedAddress, ...] = ()
    progress: StudyProgress | None = None
    maker: RunMaker | None = None
    """Who makes the runs on other hosts; None: they are made here."""
    say: Say = lambda _: None
    """Who hears of commands of the jobs."""
    checked: Callable[[], None] = lambda: None
    """Called when no run is refused, before the first."""
    figures: Callable[[], SealedFigures] | None = None
    """Makes who probes a run before its figures are computed; None: no run is probed."""


@dataclass(frozen=True, slots=True)
class PreparedStudy:
    """Everything that is decided before the first run."""

    controller: Controller
    asked: StudyRequest
    resolve: Callable[[Next], Resolved]
    first: Resolution | None = None
    """The first run as it is here; None where it is not known, or made elsewhere."""
    notes: Sequence[Note] = ()
    """What is to be said of all runs before the first."""
    length: str = ""
    """How much it is, where that is known."""
    closing: Callable[[], list[Any]] | None = None
    """Notes of its end."""
    after_failure: AfterFailure = "stop"
    changes_of: Callable[[Next], JobChanges] | None = None
    """What is changed about a run that is made elsewhere; None: nothing is resolved anew."""
    again: Callable[[bool, Say], RunMaker] | None = None
    """Makes who takes Plans that ran on hosts to them again: whether to calibrate, and who hears of it."""
    check: Callable[[Plan, Next], None] = lambda _, __: None
    """Raises for a Plan that the study cannot use."""
    watch: Callable[[Next, Say], Progress | None] | None = None
    """Who tells of a run while it runs, where the language has a way of its own."""
    beside: Beside | None = None
    """Who writes something else of the study while it runs."""

    def probes(self, seconds: float) -> dict[str, Any]:
        """Return what probes would follow each run that is certain, within so many seconds after each."""
        from loadstone.probe.forecast import forecast

        measured = [one for one in self.controller.known() if one.role != "prepare"]
        plans = run_in_child(
            lambda: [self.resolve(one).plan for one in measured],
            doing=say("path.child.looking.targets_of_study"),
        )
        forecasts = {
            one.name: forecast(plan, one.workload.jobs, seconds)
            for one, plan in zip(measured, plans, strict=True)
        }
        return {
            "format": 1,
            "kind": "probes_of_runs",
            "budget_s": seconds,
            "runs": [{"name": name, **one} for name, one in forecasts.items()],
        }

    def refusal(self, consent: Consent) -> LoadstoneError | None:
        """Return what its runs on this host would be refused with before the first; touch nothing."""
        try:
            known = self.controller.known()
            _check_commands(known)
            runs = RunsHere(self.resolve, calibration=False, only_told=True)
            runs.check(known, remembered(consent), TimeEstimate())
        except (InputError, RefusedError) as error:
            return error
        return None


def run_prepared(prepared: PreparedStudy, means: StudyMeans) -> StudyOutcome:
    """Run a study. Raises what cannot be read, or would not be done, before the first run."""
    _check_commands(prepared.controller.known())
    outcome = run_study(
        prepared.controller,
        request=dataclasses.replace(prepared.asked, watch=means.watch),
        out_dir=means.out,
        hooks=Hooks(
            prepared.resolve,
            progress=means.progress,
            around=lambda wanted: exec_commands.around(wanted.workload, means.say),
            checked=means.checked,
            result=result_document,
            closing=prepared.closing,
            maker=means.maker,
            figures=means.figures or SealedFigures,
        ),
        consent=means.consent,
        after_failure=prepared.after_failure,
        calibration=means.calibration,
    )
    if prepared.beside is not None:
        prepared.beside.close(outcome.path)
    return outcome


def _check_commands(known: Sequence[Next]) -> None:
    for wanted in known:
        exec_commands.check(wanted.workload)
        schedulers.refuse(wanted.workload)


def result_document(path: Path, study: StudyRecord, done: list[Done]) -> dict[str, Any]:
    """Compute a study's `result.json`."""
    from loadstone.analysis.study.document import document

    return document(path, study, [one.run for one in done])


def notes_of(asked_for: Workload, first: Resolution | None) -> list[dict[str, Any]]:
    """Return the notes of a study of one Workload; `first` is its first run, where that is made here."""
    notes = [] if first is None else [note.model_dump(mode="json") for note in first.notes]
    if random_seeds.leaves_open(asked_for):
        notes.append({"kind": "changed", "text": random_seeds.NOTE, "where": None})
    return notes


def times(number: int | None, caller: Caller) -> int | None:
    """Read how many times; None without it."""
    if number is not None and not 1 <= number <= MAX_REPEATS:
        raise caller.error("api.amount.repeats", "repeat", found=number, most=MAX_REPEATS)
    return number
