"""Controlled experiments: planned, run, gone on with, and read again.

Knows the order: read, check, ask, run, analyse. What is set on the machine and put back is `experiment`'s.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from loadstone import exitcodes
from loadstone.api.jobs import exec_commands, schedulers
from loadstone.api.jobs.job_changes import PYTHON
from loadstone.api.on_hosts import experiment_maker, given_hosts
from loadstone.api.one_run import consent_of, request_of, watched
from loadstone.api.place import default_directory
from loadstone.api.planning import obstacles_of
from loadstone.api.results import REPORT, Study, open_study
from loadstone.api.studies.ended import EndedStudy
from loadstone.api.studies.prepared_study import StudyMeans, result_document
from loadstone.bundle import experiment as on_disk
from loadstone.errors import BundleError, InputError, RefusedError, RunError
from loadstone.experiment.announce import (
    announce,
    check_levels,
    over_budget_of_rest,
    planned_s,
    prepared_or_all_mistakes,
)
from loadstone.experiment.announcement_lines import lines
from loadstone.experiment.prepared import ReadOptionsOfExperiment, why_refused
from loadstone.experiment.recorded_times import RecordedTimes, recorded
from loadstone.experiment.rehearsal import RehearsalSize
from loadstone.experiment.report_content import measured_runs, story_of, story_on_disk
from loadstone.experiment.run import ExperimentMeans, open_stopped, prepared_again, refusal
from loadstone.experiment.run import run_experiment as run_prepared
from loadstone.messages import make_error
from loadstone.plan.safety.guard import Consent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.api.on_hosts import GivenHosts
    from loadstone.api.studying import HowArguments
    from loadstone.bundle.experiment import MachineSetting
    from loadstone.errors import LoadstoneError, Where
    from loadstone.experiment.announce import Announcement
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.experiment.run import ExperimentOutcome, StoppedExperiment
    from loadstone.hosts.study_runs import RunsOnHosts
    from loadstone.report.experiment.story import ExperimentStory
    from loadstone.screen import Screen
    from loadstone.study.run_maker import RunMaker
    from loadstone.workload.model import Note


class PlannedExperiment:
    """What an experiment would do here, or what is missing of one that stopped; nothing is touched."""

    def __init__(self, prepared: PreparedExperiment, stopped: StoppedExperiment | None = None) -> None:
        self.prepared, self.stopped = prepared, stopped

    @property
    def title(self) -> str:
        """What the file calls it."""
        return self.prepared.whole.title

    @property
    def runs(self) -> list[str]:
        """The names of all its runs, in their order."""
        return [one.name for one in self.prepared.nexts]

    @property
    def missing(self) -> list[str]:
        """Those that are still to be done."""
        done = () if self.stopped is None else self.stopped.earlier.done
        finished = {one.point.name for one in done if one.point.status == "complete"}
        return [name for name in self.runs if name not in finished]

    @property
    def length_s(self) -> float | None:
        """How long all of it takes, or what is missing; None where a run ends by its bytes, or nobody knows.

        Where runs are complete it is as they took, without any what is beside the loads is assumed.
        """
        recorded = self._recorded
        return planned_s(self.prepared) if recorded is None else recorded.rest_s

    @property
    def _recorded(self) -> RecordedTimes | None:
        """What the sessions before took; None: no run is complete."""
        return None if self.stopped is None else recorded(self.prepared, self.stopped)

    @property
    def notes(self) -> list[Note]:
        """What is to be said of its job files."""
        return [*self.prepared.notes, *(() if self.stopped is None else self.stopped.notes)]

    @property
    def refused(self) -> RefusedError | None:
        """Why it would not begin: levels that cannot be set here, and nobody said to leave them out."""
        return why_refused(self.prepared)

    @property
    def would_run(self) -> bool:
        """Whether it would begin: nothing is refused, and no consent is missing."""
        return self.refusal() is None

    def refusal(
        self,
        accept_data_loss: Sequence[Path | str] | Consent = (),
        other_targets: Sequence[Path | str] | Consent = (),
    ) -> LoadstoneError | None:
        """Return what would be raised here, with this consent, before its first run; None: it would run."""
        prepared = self.prepared
        try:
            for wanted in prepared.nexts:
                exec_commands.check(wanted.workload)
                schedulers.refuse(wanted.workload)
        except (InputError, RefusedError) as error:
            return self.refused or error
        others = _others(other_targets)
        return self.refused or refusal(prepared, consent_of(accept_data_loss), self.stopped, others)

    @property
    def lines(self) -> list[str]:
        """Runs, time, bytes and changes of the machine, for people."""
        return list(lines(self._announced))

    def document(self) -> dict[str, Any]:
        """Return the same as `loadstone experiment plan --json` prints it."""
        return self._announced.document()

    @cached_property
    def _announced(self) -> Announcement:
        announcement = announce(self.prepared)
        announcement.recorded = self._recorded
        if self.stopped is not None:
            announcement.begun, announcement.rehearsal = True, RehearsalSize()
        if announcement.recorded is not None:
            announcement.over_budget = over_budget_of_rest(self.prepared, announcement.recorded)
        looked_at: set[str] = set()
        for plan in announcement.plans.values():
            for one in obstacles_of(plan, looked_at):
                consent = "needed" if one.needs_consent else "refused"
                announcement.consent.append({"device": one.what, "found": one.why, "consent": consent})
        for path, why in () if self.stopped is None else self.stopped.other_targets():
            announcement.consent.append({"device": path, "found": why, "consent": "needed"})
        return announcement


class Experiment:
    """What an experiment measured and found: of one that has just ended, or read from its directory."""

    def __init__(
        self,
        path: Path,
        story: ExperimentStory | None,
        outcome: ExperimentOutcome | None = None,
        unread: Sequence[str] = (),
    ) -> None:
        self.path, self._story, self._outcome = path, story, outcome
        self.unread = tuple(unread)

    def __repr__(self) -> str:
        return f"<loadstone.Experiment {self.path}>"

    @property
    def has_figures(self) -> bool:
        """Whether a run completed: without one nothing was found."""
        return self._story is not None

    @property
    def study(self) -> Study:
        """Its runs. Raises `BundleError`."""
        return open_study(self.path)

    @property
    def is_complete(self) -> bool:
        """Whether every run is done; `resume_experiment` does those that are missing."""
        return self._outcome is None or self._outcome.study.study.status == "complete"

    @property
    def error(self) -> LoadstoneError | None:
        """What its last run failed with, or why its study cannot be written."""
        return None if self._outcome is None else self._outcome.study.error

    @property
    def ended_because(self) -> str | None:
        """Why it ended before its last run, where it knows: its budget."""
        return None if self._outcome is None else self._outcome.document.ended_because

    def exit_code(self, *, require_valid: bool = False) -> int:
        """Return what the command line ends with after such an experiment; 0 for one that was opened."""
        if self._outcome is None:
            return 0
        if self.still_changed:
            return exitcodes.FAILED
        return EndedStudy(self._outcome.study).exit_code(require_valid=require_valid)

    @property
    def still_changed(self) -> tuple[MachineSetting, ...]:
        """What could not be put back on this machine; `restore_settings` tries again."""
        return () if self._outcome is None else self._outcome.still_changed

    def document(self) -> dict[str, Any]:
        """Return the document of `--json`. Raises `BundleError` where no run completed."""
        from loadstone.report.experiment import document

        return document.document(self._whole_story())

    def print(self, screen: Screen | None = None) -> None:
        """Print the answer and the tables as the command line does. Raises as `document` does."""
        from loadstone.report.experiment import terminal
        from loadstone.screen import Screen

        terminal.terminal(self._whole_story(), screen or Screen(highlight=False))

    def report(self, path: Path | str | None = None) -> Path:
        """Write the page (.html, .md or .pdf) and return where; in its directory by default."""
        from loadstone import output
        from loadstone.report.article.files import as_file
        from loadstone.report.experiment.article import article

        where = self.path / REPORT if path is None else Path(path)
        ending = check_report(where)
        output.write(where, as_file(article(self._whole_story()), ending))
        return where

    def _whole_story(self) -> ExperimentStory:
        if self._story is None:
            raise make_error(BundleError, "api.experiment.empty", path=self.path)
        return self._story


def check_report(path: Path) -> str:
    """Return the ending of a report's name. Raises `InputError` for a path that none can be written to."""
    from loadstone import output
    from loadstone.report.article.files import ending_of

    ending = ending_of(path, "experiment")
    output.check(path)
    return ending


def plan_experiment(
    file: Path | str,
    *,
    parameters: Mapping[str, object] | None = None,
    leave_out_unset: bool = False,
    allow_exec: bool = False,
) -> PlannedExperiment:
    """Read an experiment's file and tell what it would do here; nothing is touched.

    `parameters` are those of the file. `leave_out_unset` goes on without the levels that cannot be set here,
    `allow_exec` permits commands of factors and job files. Raises `InputError` or `RefusedError`.
    """
    parameter_texts = {name: str(value) for name, value in (parameters or {}).items()}
    at = PYTHON.at("parameters")
    return planned(Path(file), parameter_texts, at, leave_out_unset=leave_out_unset, allow_exec=allow_exec)


def planned(
    file: Path, parameters: Mapping[str, str], at: Where, *, leave_out_unset: bool, allow_exec: bool
) -> PlannedExperiment:
    """Tell what a file would do here; `at` is where its parameters were given."""
    return PlannedExperiment(
        prepared_or_all_mistakes(file, ReadOptionsOfExperiment(parameters, allow_exec, leave_out_unset, at))
    )


def plan_rest(
    directory: Path | str, file: Path | str | None = None, *, allow_exec: bool
) -> PlannedExperiment:
    """Tell what is missing of an experiment that stopped; `file` where its own lies elsewhere now."""
    path = Path(directory)
    prepared = prepared_again(path, Path(file or on_disk.read(path).file), allow_exec=allow_exec)
    return PlannedExperiment(prepared, open_stopped(path, prepared))


def run_experiment(
    file: Path | str,
    *,
    parameters: Mapping[str, object] | None = None,
    leave_out_unset: bool = False,
    allow_exec: bool = False,
    **arguments: Unpack[HowArguments],
) -> Experiment:
    """Run a controlled experiment, put the machine back as it was, and return what was found.

    Arguments are those of `plan_experiment`, and of `run` for how it is done. Raises as `run` does; and with
    `check` also where something could not be put back.
    """
    planned = plan_experiment(
        file, parameters=parameters, leave_out_unset=leave_out_unset, allow_exec=allow_exec
    )
    return _done(planned, arguments)


def resume_experiment(
    directory: Path | str,
    *,
    allow_exec: bool = False,
    other_targets: Sequence[Path | str] | Consent = (),
    **arguments: Unpack[HowArguments],
) -> Experiment:
    """Do the runs that are missing of an experiment that stopped. Raises as `run_experiment` does.

    `other_targets`: paths of targets that may be others than those of the runs so far.
    """
    return _done(plan_rest(directory, allow_exec=allow_exec), arguments, _others(other_targets))


def _others(consent: Sequence[Path | str] | Consent) -> Consent:
    if isinstance(consent, Consent):
        return consent
    return Consent(
        frozenset(str(one) for one in consent),
        remedy=lambda needed: f"other_targets=[{', '.join(map(repr, needed))}]",
        where=PYTHON.at("other_targets"),
    )


def open_experiment(directory: Path | str) -> Experiment:
    """Open the directory of an experiment and analyse it anew. Raises `BundleError`."""
    path = Path(directory)
    on_disk.read(path)
    return Experiment(path, story_on_disk(path))


def _done(
    planned: PlannedExperiment, arguments: HowArguments, other_targets: Consent | None = None
) -> Experiment:
    out, calibration = arguments.get("out"), arguments.get("calibration", True)
    on = given_hosts(arguments.get("hosts"), divide=arguments.get("divide", False))
    consent = consent_of(arguments.get("accept_data_loss", ()))
    directory = Path(out) if out is not None else default_directory(planned.title)
    ended = run_planned_experiment(
        planned,
        StudyMeans(
            directory if planned.stopped is None else planned.stopped.path,
            consent,
            calibration=calibration,
            watch=watched(arguments.get("watch", ())),
            progress=arguments.get("progress"),
            maker=checked(planned, on, calibration=calibration),
        ),
        experiment_request("python", planned, on),
        other_targets,
    )
    if arguments.get("check", True):
        _raise_what_went_wrong(ended)
    return ended


def _raise_what_went_wrong(ended: Experiment) -> None:
    """Raise what could not be put back first: it changes what is measured here from now on."""
    if ended.still_changed:
        names = ", ".join(one.control for one in ended.still_changed)
        raise make_error(RunError, "api.experiment.still_changed", names=names)
    if ended.error is not None:
        raise ended.error
    if not ended.is_complete:
        raise make_error(RunError, "api.experiment.ended", path=repr(str(ended.path)))


def checked(
    planned: PlannedExperiment,
    on: GivenHosts | None,
    *,
    calibration: bool,
    say: Callable[[str], None] = lambda _: None,
) -> RunMaker | None:
    """Refuse what cannot be done, and return who makes the runs on hosts; None: they are made here."""
    if (refused := planned.refused) is not None:
        raise refused
    prepared = planned.prepared
    for wanted in prepared.nexts:
        exec_commands.check(wanted.workload)
        schedulers.refuse(wanted.workload)
    maker = experiment_maker(on, prepared, calibration=calibration, say_to=say)
    if maker is None:
        check_levels(prepared, say)
    return maker


def experiment_request(front_end: str, planned: PlannedExperiment, on: GivenHosts | None) -> dict[str, Any]:
    """Return `request.json` of an experiment."""
    options = planned.prepared.options
    return request_of(
        front_end,
        {
            "file": str(planned.prepared.path),
            "set": dict(options.parameters),
            "allow_exec": options.allow_exec,
            **({} if on is None else on.document()),
        },
    )


def run_planned_experiment(
    planned: PlannedExperiment,
    means: StudyMeans,
    request: dict[str, Any],
    other_targets: Consent | None = None,
) -> Experiment:
    """Do the runs that are missing, and analyse all.

    `other_targets`: which targets may be others than those of the runs so far.
    """

    def checked(prepared: PreparedExperiment) -> None:
        planned.prepared = prepared  # Without the levels that the kernel does not take.
        means.checked()

    outcome = run_prepared(
        planned.prepared,
        out_dir=means.out,
        request=request,
        consent=means.consent,
        means=ExperimentMeans(
            progress=means.progress,
            tell=means.say,
            checked=checked,
            result=result_document,
            around=lambda wanted: exec_commands.around(wanted.workload, means.say),
            # `experiment_maker` makes no other kind.
            elsewhere=cast("RunsOnHosts | None", means.maker),
            other_targets=other_targets or Consent(),
        ),
        watch=means.watch,
        calibration=means.calibration,
        stopped=planned.stopped,
    )
    runs, unread = measured_runs(outcome.study.done)
    story = story_of(outcome.document, outcome.study.study, runs)
    return Experiment(outcome.study.path, story, outcome, unread)
