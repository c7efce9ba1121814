"""An experiment done, or gone on with: a study whose runs each have the machine set for them.

Knows the order: devices are checked, consent is asked once, then run by run; what was set and what
became of it is written down before and after each. However it ends, the machine is put back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from blake3 import blake3
from pydantic import BaseModel, ValidationError

from loadstone import exitcodes
from loadstone.analysis.summary import summarise
from loadstone.bundle import experiment as on_disk
from loadstone.bundle import members, seal
from loadstone.bundle import study as study_on_disk
from loadstone.bundle.experiment import UnsetLevel
from loadstone.bundle.write import BundleWriter
from loadstone.control.control_kind import Setting
from loadstone.engine.interrupts import Interrupts, leave
from loadstone.errors import BundleError, InputError, LoadstoneError, RefusedError, Where
from loadstone.experiment import allocation, attempts, claims, layout_devices
from loadstone.experiment.controller import ExperimentController
from loadstone.experiment.known_targets import KnownTargets, TargetsElsewhere, others_here
from loadstone.experiment.ledger import BudgetLedger
from loadstone.experiment.machine_state import Machine
from loadstone.experiment.observe import spoilt as spoilt_by
from loadstone.experiment.prepared import ReadOptionsOfExperiment, load_s, prepare, why_refused
from loadstone.experiment.read_file import line_of, with_lines
from loadstone.experiment.rehearsal import Rehearsal, RehearsedLevels
from loadstone.experiment.target_watch import TargetWatch
from loadstone.experiment.writes import least_written, written_refusal
from loadstone.messages import make_error, say
from loadstone.path.child import run_in_child
from loadstone.plan.safety import guard
from loadstone.study.controller import Done, Next
from loadstone.study.run import EarlierStudy, Hooks, StudyRequest, remembered, run_study
from loadstone.study.run_maker import RunMaker, RunsHere
from loadstone.study.time_estimate import TimeEstimate
from loadstone.workload.model import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.bundle.experiment import (
        ExperimentDocument,
        ExperimentRun,
        ExperimentSession,
        MachineSetting,
    )
    from loadstone.bundle.study import Point, StudyRecord
    from loadstone.experiment.levels import WantedSetting
    from loadstone.experiment.prepared import PreparedExperiment
    from loadstone.plan.model import Plan
    from loadstone.plan.resolve import Resolution
    from loadstone.study.run import StudyOutcome, StudyProgress
    from loadstone.watch.address import WatchedAddress


class RunsElsewhere(RunMaker, TargetsElsewhere, Protocol):
    """Makes each run on other hosts, and knows the targets that these see."""


@dataclass(frozen=True, slots=True)
class ExperimentMeans:
    """What an experiment is done with; a test puts its own resolver and machine in their place."""

    progress: StudyProgress | None = None
    tell: Callable[[str], None] = lambda _: None
    checked: Callable[[PreparedExperiment], None] = lambda _: None
    """Called when no run is refused, before the first, with what will run."""
    result: Callable[[Path, StudyRecord, list[Done]], dict[str, Any]] | None = None
    resolve: Callable[[Next], Resolution] | None = None
    machine: Callable[[PreparedExperiment, Callable[[str], None]], Machine] | None = None
    around: Callable[[Next], contextlib.AbstractContextManager[None]] = field(
        default=lambda _: contextlib.nullcontext()
    )
    """Entered for each run when the machine is set: commands of job files."""
    elsewhere: RunsElsewhere | None = None
    """Who makes the runs where they are made on other hosts; None: they are made on this one."""
    other_targets: guard.Consent = field(default_factory=guard.Consent)
    """Which targets may be others than those that the sessions before were measured on."""


@dataclass(frozen=True, slots=True)
class ExperimentOutcome:
    """How it ended. `exit_code` is 1 where the machine could not be put back."""

    study: StudyOutcome
    document: ExperimentDocument
    exit_code: int
    still_changed: tuple[MachineSetting, ...]


@dataclass(frozen=True, slots=True)
class StoppedExperiment:
    """What is on disk of an experiment that is to be gone on with."""

    path: Path
    document: ExperimentDocument
    earlier: EarlierStudy
    notes: tuple[Note, ...] = ()
    """What is to be known before: runs that are done again, and runs of another host or kernel."""
    seal: str | None = None
    """Hash that its study had of itself: another one may go on with it before this one does."""

    @property
    def was_killed(self) -> bool:
        """Whether its last session ended in the middle of a run."""
        points = self.earlier.study.points
        return bool(points) and points[-1].status is None

    def other_targets(self) -> list[tuple[str, str]]:
        """Return targets of this host other than those of the sessions before, and why."""
        return others_here(self.document.targets, killed=self.was_killed)


def run_experiment(
    prepared: PreparedExperiment,
    *,
    out_dir: Path,
    request: Mapping[str, Any],
    consent: guard.Consent,
    means: ExperimentMeans | None = None,
    calibration: bool = True,
    watch: tuple[WatchedAddress, ...] = (),
    stopped: StoppedExperiment | None = None,
    rehearsed: RehearsedLevels | None = None,
) -> ExperimentOutcome:
    """Do all of its runs into a study at `out_dir`, or those that are missing of one that stopped.

    `rehearsed`: what was set once before some levels were left out.
    Raises RefusedError for devices and targets that may not be written, and what `run_study` raises.
    """
    means, rehearsed = means or ExperimentMeans(), rehearsed or RehearsedLevels()
    session = _agreed_session(prepared, out_dir, remembered(consent), means, stopped)
    consent, outcome = session.consent, None
    try:
        not_taken = session.rehearse(rehearsed) if stopped is None else ()
        if not not_taken:
            outcome = run_study(
                session.controller,
                request=_study_request(prepared, request, watch),
                out_dir=out_dir,
                hooks=session.hooks(),
                consent=consent,
                after_failure="go_on",
                calibration=calibration,
                earlier=None if stopped is None else stopped.earlier,
            )
    finally:
        with contextlib.suppress(BundleError):  # That was told when the study ended.
            session.end()
    if outcome is None:
        return run_experiment(
            _without_levels(prepared, not_taken),
            out_dir=out_dir,
            request=request,
            consent=consent,
            means=means,
            calibration=calibration,
            watch=watch,
            rehearsed=rehearsed,
        )
    left = tuple(session.machine.still_changed)
    code = exitcodes.FAILED if left or session.machine.disturbed else outcome.exit_code
    return ExperimentOutcome(outcome, session.document, code, left)


def refusal(
    prepared: PreparedExperiment,
    consent: guard.Consent,
    stopped: StoppedExperiment | None = None,
    other_targets: guard.Consent | None = None,
) -> LoadstoneError | None:
    """Return what an experiment would be refused with on this host before its first run; None: nothing.

    Sets, mounts and touches nothing. `stopped`, `other_targets`: as when it is gone on with.
    """
    done = () if stopped is None else stopped.earlier.done
    finished = {one.point.name for one in done if one.point.status == "complete"}
    known = [one for one in prepared.known if one.name not in finished]
    try:
        left = layout_devices.consent_of_runs(prepared, remembered(consent))
        if stopped is not None:
            _refuse_others(stopped, other_targets or guard.Consent())
        runs = RunsHere(prepared.resolve, calibration=False, only_told=True)
        runs.check(known, left, TimeEstimate())
    except (InputError, RefusedError) as error:
        return error
    return None


def _refuse_others(stopped: StoppedExperiment, agreed: guard.Consent) -> None:
    before = stopped.document.targets
    own = tuple(one for one in before if not one.host and not one.layout)
    if len(own) < len(before):
        # What a layout mounts is not there to be looked at: it may be what was agreed to.
        agreed = dataclasses.replace(
            agreed, paths=agreed.paths & {path for path, _ in stopped.other_targets()}
        )
    targets = KnownTargets(own, killed=stopped.was_killed)
    targets.look(one.path for one in own)
    targets.refuse_others(agreed)


def _agreed_session(
    prepared: PreparedExperiment,
    out_dir: Path,
    consent: guard.Consent,
    means: ExperimentMeans,
    stopped: StoppedExperiment | None,
) -> _Session:
    """Return a session that has its directory and devices for itself, and consent to write on them."""
    if stopped is None:
        BundleWriter.check(out_dir)
    # Before anybody looks: what is built on later is what was looked at, and as it was then.
    agreed = layout_devices.states(layout_devices.used_devices(prepared))
    session = _Session(prepared, out_dir, layout_devices.consent_of_runs(prepared, consent), means, stopped)
    session.machine.agreed = agreed
    session.claim()
    try:
        session.know_targets(stopped)
    except BaseException:
        session.machine.end()
        raise
    return session


def _seal(path: Path) -> str | None:
    """Return the hash that a study's document has of itself."""
    digest = members.document(path, study_on_disk.STUDY).get(seal.DIGEST)
    return digest if isinstance(digest, str) else None


def _without_levels(prepared: PreparedExperiment, not_taken: tuple[UnsetLevel, ...]) -> PreparedExperiment:
    """Read the file again without these levels. Raises RefusedError where nobody said to leave them out."""
    options = dataclasses.replace(prepared.options, not_taken=not_taken)
    again = prepare(prepared.path, options)
    if (why := why_refused(again)) is not None:
        raise why
    return again


def _study_request(
    prepared: PreparedExperiment, request: Mapping[str, Any], watch: tuple[WatchedAddress, ...]
) -> StudyRequest:
    return StudyRequest(
        kind="experiment",
        name=prepared.whole.title,
        front_end="experiment",
        request=dict(request),
        inputs=prepared.inputs,
        settings=_settings(prepared.options),
        notes=[note.model_dump(mode="json") for note in prepared.notes],
        watch=watch,
    )


def open_stopped(path: Path, prepared: PreparedExperiment) -> StoppedExperiment:
    """Open an experiment that ended before its last run. Raises InputError where its file changed since."""
    seal_then, document = _seal(path), on_disk.read(path)
    study = study_on_disk.read(path)
    if blake3(prepared.content).hexdigest() != document.file_blake3:
        own = study.inputs.get(document.file)
        if own is None or not _differ_in_budget(members.content(path, own), prepared.content):
            raise make_error(
                InputError, "experiment.again.other_file", where=Where(str(prepared.path)), path=path
            )
        # Its runs are what they were: more of them may be done now.
        document = document.model_copy(update={"budget": prepared.document.budget})
    for name, file in study.inputs.items():
        now = None if name == document.file else prepared.inputs.get(name)
        if now is not None and now != members.content(path, file):
            raise make_error(InputError, "experiment.again.other_input", where=Where(name))
    planned, prepared_names = (
        {run.name for run in document.runs},
        {run.name for run in prepared.document.runs},
    )
    if planned != prepared_names:
        other = min(planned ^ prepared_names)
        raise make_error(
            InputError, "experiment.again.other_runs", where=Where(str(prepared.path)), name=other
        )
    document = document.model_copy(update={"sessions": _sessions(path, document, study.points)})
    read = [_done(path, point) for point in study.points]
    lost = [one.point.name for one in read if attempts.counts(one.point) and one.summary is None]
    spoilt = {one.point.name: why for one in read if (why := _spoilt(one, document.studied)) is not None}
    disturbed = attempts.disturbed(document, study.points, spoilt)
    points = attempts.renamed([_without_figures(point, lost) for point in study.points], disturbed)
    done = [Done(point, one.summary) for point, one in zip(points, read, strict=True)]
    earlier = EarlierStudy(study.model_copy(update={"points": points}), done)
    notes = tuple(_notes(document, lost, disturbed))
    names = zip(read, points, strict=True)
    spoilt = {now.name: spoilt[one.point.name] for one, now in names if one.point.name in spoilt}
    return StoppedExperiment(
        path, attempts.with_attempts(document, points, spoilt), earlier, notes, seal_then
    )


def _differ_in_budget(before: bytes, now: bytes) -> bool:
    """Return whether two texts of an experiment's file have another budget, and all else alike."""
    try:
        tables = [tomllib.loads(text.decode()) for text in (before, now)]
    except ValueError:
        return False
    first, second = ({key: one[key] for key in one if key != "budget"} for one in tables)
    return first == second


def _spoilt(one: Done, studied: Sequence[str]) -> attempts.Disturbance | None:
    """Return what outside the load made a run that completed not valid; None: nothing did."""
    if one.summary is None or one.point.status != "complete" or one.point.verdict != "not_valid":
        return None
    return spoilt_by(one.summary.bundle, studied)


def _without_figures(point: Point, lost: Collection[str]) -> Point:
    """Return a run as one that is still to be done where it completed and nothing can be read of it."""
    if point.name not in lost:
        return point
    return point.model_copy(update={"status": "failed", "error": say("experiment.again.unreadable_run")})


def _notes(
    document: ExperimentDocument, lost: Sequence[str], disturbed: Mapping[str, attempts.Disturbance]
) -> Iterator[Note]:
    if lost:
        text = say("experiment.again.unreadable", runs="; ".join(lost))
        yield Note(where=None, text=text, kind="info")
    for key, by_rule in (("disturbed", False), ("spoilt", True)):
        runs = "; ".join(
            f"{name} ({one.why.rstrip('.')})" for name, one in disturbed.items() if bool(one.rule) is by_rule
        )
        if runs:
            yield Note(where=None, text=say(f"experiment.again.{key}", runs=runs), kind="info")
    before = sorted({one.system for one in document.sessions if one.system is not None} - {system()})
    if before:
        text = say("experiment.again.other_system", before="; ".join(before), now=system())
        yield Note(where=None, text=text, kind="info")


def system() -> str:
    """Return the name of this host and its kernel, as sessions keep them."""
    uname = platform.uname()
    return f"{uname.node}, {uname.system} {uname.release}"


def _sessions(
    path: Path, document: ExperimentDocument, points: Sequence[Point]
) -> tuple[ExperimentSession, ...]:
    """Return the sessions so far; one that was killed in a run lasted until that run's last file."""
    last = points[-1] if points else None
    if not document.sessions or last is None or last.status is not None or last.bundle is None:
        return document.sessions
    *before, own = document.sessions
    files = [one.stat().st_mtime for one in (path / last.bundle).rglob("*") if one.is_file()]
    took_s = max(files, default=0.0) - datetime.fromisoformat(own.began).timestamp()
    return (*before, own.model_copy(update={"took_s": max(own.took_s, took_s)}))


class _KeptOptions(BaseModel):
    """What the settings of a study say of how its file was read."""

    parameters: dict[str, str] = {}
    leave_out_unset: bool = False
    not_taken: tuple[UnsetLevel, ...] = ()


def options_of(path: Path, *, allow_exec: bool) -> ReadOptionsOfExperiment:
    """Return how the file of a study was read. A permission to run commands is not recorded."""
    try:
        recorded = _KeptOptions.model_validate(study_on_disk.read(path).settings)
    except ValidationError as error:
        raise members.malformed(path / study_on_disk.STUDY, error) from error
    return ReadOptionsOfExperiment(
        parameters=recorded.parameters,
        allow_exec=allow_exec,
        leave_out_unset=recorded.leave_out_unset,
        not_taken=recorded.not_taken,
    )


def prepared_again(path: Path, file: Path, *, allow_exec: bool) -> PreparedExperiment:
    """Read the file of a study once more, with the parameters it was read with then."""
    return prepare(file, options_of(path, allow_exec=allow_exec))


def _settings(options: ReadOptionsOfExperiment) -> dict[str, Any]:
    return {
        "parameters": dict(options.parameters),
        "leave_out_unset": options.leave_out_unset,
        "not_taken": [one.model_dump(mode="json") for one in options.not_taken],
    }


def _done(path: Path, point: Point) -> Done:
    """Return a run of an earlier session; one that cannot be opened has nothing to say."""
    with contextlib.suppress(BundleError):
        bundle = study_on_disk.bundle_of(path, point)
        return Done(point, None if bundle is None else summarise(bundle))
    return Done(point, None)


def refuse_state(prepared: PreparedExperiment, run: ExperimentRun, plan: Plan) -> None:
    """Raise RefusedError where the targets of a run cannot be in the state that it asks for."""
    state = prepared.asked(run).allocation
    why = None if state is None else allocation.why_not(plan, state)
    if why is None:
        return
    own = next(one.name for one in prepared.varied.factors if one.what == "allocation")
    several = len(prepared.whole.patterns) > 1
    raise make_error(
        RefusedError,
        "experiment.factor.not_of_run",
        where=Where(str(prepared.path), option=f"factors.{own}.levels"),
        hint=say("experiment.factor.not_of_all_patterns") if several else None,
        name=run.name,
        reason=why,
    )


class _Session:
    """One session of an experiment."""

    def __init__(
        self,
        prepared: PreparedExperiment,
        out_dir: Path,
        consent: guard.Consent,
        means: ExperimentMeans,
        stopped: StoppedExperiment | None,
    ) -> None:
        self._prepared, self._out_dir, self.consent, self._means = prepared, out_dir, consent, means
        self.document = prepared.document if stopped is None else stopped.document.model_copy(
            update={"ended_because": None}
        )  # fmt: skip
        self._before = self.document.settings
        own_system = system() if means.elsewhere is None else None
        self._ledger = BudgetLedger(self.document.budget, earlier=self.document.sessions, system=own_system)
        self._ledger.begin()
        self.machine = (means.machine or _machine)(prepared, means.tell)
        self.machine.ledger = self._ledger
        self._begun = self._refused = False
        self._targets = KnownTargets(
            before=self.document.targets,
            killed=stopped is not None and stopped.was_killed,
            elsewhere=means.elsewhere,
            commands=_has_commands(prepared),
            lost=self.machine.lose,
        )
        self.machine.stood = self._targets.stood
        self._cannot_begin: str | None = None
        self.controller = ExperimentController(
            prepared.nexts,
            prepared.known,
            self._ledger,
            done_before=[] if stopped is None else stopped.earlier.done,
            obstacle=self._obstacle,
            alike=self._alike,
            planned=self._planned,
        )

    def hooks(self) -> Hooks:
        """Return what a study of its runs calls."""
        means, prepared = self._means, self._prepared
        return Hooks(
            means.resolve or prepared.resolve,
            progress=means.progress,
            around=self.around,
            checked=self._checked,
            result=means.result,
            closing=self.closing,
            maker=means.elsewhere,
        )

    @contextlib.contextmanager
    def around(self, wanted: Next) -> Iterator[None]:
        """Set the machine for a run, and put it back after it."""
        run = self._prepared.runs[wanted.name]
        conditions = self._prepared.asked(run)
        self._record(wanted.name, started=datetime.now(UTC).isoformat(timespec="milliseconds"), settings=())
        if not self._begun:
            self._begin()
        prepares = (
            None
            if conditions.allocation is None
            else lambda: self._prepare(wanted, conditions.allocation or "")
        )

        def record(settings: Sequence[MachineSetting]) -> None:
            self._record(wanted.name, settings=tuple(settings))

        try:
            with self.machine.around(conditions, prepares, record), self._means.around(wanted):
                yield
        finally:
            self._know_files()

    def claim(self) -> None:
        """Keep from others what the runs change and use. Raises RefusedError where one of them has it."""
        prepared, machine = self._prepared, self.machine
        used = [str(self._out_dir), *layout_devices.used_devices(prepared)]
        if self._means.elsewhere is None:
            on_host = claims.targets(prepared, self._means.resolve or prepared.resolve)
            machine.targets = TargetWatch(tuple(on_host), commands=_has_commands(prepared))
            used += on_host
        machine.claim([*claims.settings(prepared, machine.controls), *claims.things(used)])

    def know_targets(self, stopped: StoppedExperiment | None) -> None:
        """Note what the targets are, or refuse others than those of the sessions before."""
        if stopped is not None and _seal(stopped.path) != stopped.seal:
            raise make_error(RefusedError, "experiment.again.went_on", path=stopped.path)
        if self._means.elsewhere is not None:
            return  # Its hosts are there later.
        self._targets.look([*layout_devices.used_devices(self._prepared), *self.machine.targets.paths])
        if stopped is not None:
            with Interrupts(leave):
                self._mount_once()
            self._targets.refuse_others(self._means.other_targets)

    def _mount_once(self) -> None:
        """Look at what layouts mount, before the first run."""
        records = len(self.machine.for_all)
        for order in layout_devices.orders(self._prepared):
            if order.description.manager == "mount":
                self.machine.stand(order.name, synchronised=False)
                self.machine.take_down()
        del self.machine.for_all[records:]

    def _checked(self) -> None:
        """Refuse other targets that only hosts could tell, before the first run."""
        if self._means.elsewhere is not None:
            try:
                self._targets.look(())
                self._targets.refuse_others(self._means.other_targets)
            except BaseException:
                self._refused = bool(self._targets.before)  # Else nothing is on record yet.
                raise
        self._means.checked(self._prepared)

    def _know_files(self) -> None:
        with contextlib.suppress(LoadstoneError):  # What does not answer is told before the next run.
            self._targets.after_run()
            self._write()

    def rehearse(self, earlier: RehearsedLevels) -> tuple[UnsetLevel, ...]:
        """Return the levels that are not taken. Raises RefusedError for what is for all runs."""
        first_block = [run for run in self.document.runs if run.block == 0]
        self._check_consent()
        with Interrupts(leave):
            return tuple(Rehearsal(self.machine, first_block, self._place, self._look, earlier).hold())

    def _check_consent(self) -> None:
        """Refuse consent without effect before a layout is built: nothing is lost for a mistyped path."""
        if self.consent.paths and self._means.elsewhere is None:
            resolve, runs = self._means.resolve or self._prepared.resolve, self._prepared.runs
            first = [one for one in self._prepared.known if runs[one.name].block == 0]
            looking = say("path.child.looking.targets")
            plans = run_in_child(lambda: [resolve(one).plan for one in first], doing=looking)
            guard.check_consent(self.consent, plans)

    def _look(self, layout: str) -> None:
        """Plan the runs of a layout while it stands: what cannot be planned is said before the first run."""
        prepared = self._prepared
        if self._means.elsewhere is not None:
            return
        with with_lines(prepared.path, prepared.content, prepared.whole):
            for one in prepared.nexts:
                run = prepared.runs[one.name]
                if run.block == 0 and prepared.asked(run).layout == layout:
                    plan = prepared.resolved(one, self._means.resolve).plan
                    refuse_state(prepared, run, plan)
                    error = written_refusal(prepared, run, plan)
                    if run.name == self.document.runs[0].name and error is not None:
                        raise error

    def _place(self, wanted: WantedSetting) -> Where:
        """Return where the file sets something for all runs."""
        every = [(one.control, one.subject) for one in self._prepared.whole.settings]
        at = every.index((wanted.control, wanted.subject))
        line = line_of(self._prepared.content.decode(), ("settings", at, "value"))
        return Where(str(self._prepared.path), line, f"settings[{at + 1}].value")

    def _begin(self) -> None:
        """Set what is for all runs; without it none is begun."""
        self._begun = True
        try:
            self.machine.begin()
        except LoadstoneError as error:
            self._cannot_begin = error.message
            raise

    def closing(self) -> list[Any]:
        """Return the notes of the end; the machine is put back first, so that they say what became of it."""
        self.end()
        why = self.controller.ended_because
        return [{"kind": "info", "text": f"ended before its last run: {why}", "where": None}] if why else []

    def end(self) -> None:
        """Put back everything that is left, and write down what became of it."""
        try:
            self.machine.end()
        finally:
            self.document = self.document.model_copy(update={"ended_because": self.controller.ended_because})
            if self._out_dir.is_dir() and not self._refused:
                self._write()

    def _alike(self, wanted: Next, before: Next | None) -> tuple[object, ...]:
        """Return what a run shares with those that take as much: a layout to build, a state, its pattern."""
        runs = self._prepared.runs
        own = self._prepared.asked(runs[wanted.name])
        last = None if before is None else self._prepared.asked(runs[before.name]).layout
        return (own.layout if own.layout != last else None, own.allocation, runs[wanted.name].pattern)

    def _planned(self, wanted: Next) -> tuple[float, int]:
        """Return how long the load of a run takes, and what it writes at least, as far as known."""
        state = self._prepared.asked(self._prepared.runs[wanted.name]).allocation
        count = 0
        if self.document.budget.written_bytes is not None and wanted in self._prepared.known:
            count = least_written((self._means.resolve or self._prepared.resolve)(wanted).plan, state)
        return load_s(wanted.workload) or 0.0, count

    def _prepare(self, wanted: Next, state: str) -> None:
        plan = (self._means.resolve or self._prepared.resolve)(wanted).plan
        count = allocation.written_bytes(plan, state)
        self._ledger.refuse(say("experiment.allocation.bringing", state=repr(state)), more_bytes=count)
        self._ledger.wrote(count)
        allocation.prepare(plan, state, self.consent, Interrupts.pending)

    def _obstacle(self) -> str | None:
        if self._cannot_begin is not None:
            return say("experiment.machine.not_set", reason=self._cannot_begin)
        if self.machine.lost is not None:
            return say("experiment.machine.changed", reason=self.machine.lost)
        if not self.machine.still_changed:
            return None
        names = ", ".join(str(Setting(one.control, one.subject)) for one in self.machine.still_changed)
        return say("experiment.machine.not_put_back", settings=names)

    def _record(self, name: str, **changes: object) -> None:
        runs = tuple(
            run.model_copy(update=changes) if run.name == name else run for run in self.document.runs
        )
        self.document = self.document.model_copy(update={"runs": runs})
        self._write()

    def _write(self) -> None:
        settings = (*self._before, *self.machine.for_all)
        self.document = self.document.model_copy(
            update={
                "settings": settings,
                "sessions": self._ledger.sessions,
                "targets": self._targets.now,
            }
        )
        on_disk.write(self._out_dir, self.document)


def _has_commands(prepared: PreparedExperiment) -> bool:
    """Return whether commands of levels or of job files go around runs: they may make the targets anew."""
    processes = [job.process for wanted in prepared.nexts for job in wanted.workload.jobs]
    return any(one.what == "command" for one in prepared.whole.factors) or any(
        one.exec_prerun or one.exec_postrun for one in processes
    )


def _machine(prepared: PreparedExperiment, tell: Callable[[str], None]) -> Machine:
    return Machine(prepared.varied, prepared.label, give_up=Interrupts.pending, tell=tell)
