"""A study's runs, one after the other, each into a bundle of its own.

Knows the order: what is certain is checked, consent is asked, then run by run until the
controller has no more, with `study.json` written anew after each. Knows no language and no
screen, and does not decide what is run. A failed run is kept; whether the study goes on is
the caller's choice. A signal during a run ends that run and the study, and keeps both.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from loadstone import exitcodes, file_name
from loadstone.analysis.summary import Summary, summarise
from loadstone.audit.run import audit
from loadstone.bundle import study as on_disk
from loadstone.bundle.study import Point, StudyRecord
from loadstone.bundle.write import BundleWriter
from loadstone.engine import plan_check
from loadstone.engine.calibrate import shape
from loadstone.engine.interrupts import Interrupts
from loadstone.errors import BundleError, InputError, LoadstoneError, RefusedError
from loadstone.path.child import answering, run_in_child
from loadstone.plan.derived import changes_trees
from loadstone.plan.safety import guard
from loadstone.session import Outcome, RunRequest, run_plan, through_parent
from loadstone.study.controller import Controller, Done, Next
from loadstone.study.random_seeds import own_sequence
from loadstone.study.time_estimate import TimeEstimate
from loadstone.study.verified_blocks import KnownBlocks
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.bundle.read import Bundle
    from loadstone.path.spec import Spec
    from loadstone.plan.model import Plan
    from loadstone.session import Progress
    from loadstone.verdict import Audited
    from loadstone.watch.address import WatchedAddress
    from loadstone.workload.model import Note

AfterFailure = Literal["stop", "go_on"]
PAUSE_LOOK_S: Final = 0.1
MAX_NAME: Final = 60


class StudyProgress(Protocol):
    """Who wants to see a study while it runs."""

    def begin(self, wanted: Next, number: int, expected: int | None) -> Progress | None:
        """Say that a run is about to start; return who wants to see it."""

    def end(self, done: Done, number: int, expected: int | None, left_s: float | None) -> None:
        """Say how a run ended and how long the rest will take, None when that is not known."""


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """What the user gave. `settings`: what the kind needs to be read again."""

    kind: on_disk.Kind
    name: str
    front_end: str
    request: dict[str, Any]
    inputs: dict[str, bytes]
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[Any] = field(default_factory=list)
    spec: Spec | None = None
    watch: tuple[WatchedAddress, ...] = ()


class Resolved(Protocol):
    """What is needed of a run before it starts: `plan.resolve.Resolution`, or a Plan that ran before."""

    @property
    def plan(self) -> Plan:
        """What will run."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is to be said of it."""

    @property
    def duration_ns(self) -> int | None:
        """Longest time of the load; None when that is not known."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the caller does in between."""

    resolve: Callable[[Next], Resolved]
    progress: StudyProgress | None = None
    around: Callable[[Next], AbstractContextManager[None]] = lambda _: contextlib.nullcontext()
    """Entered before a run is resolved, left after it: commands, settings of the machine."""
    result: Callable[[Path, StudyRecord, list[Done]], dict[str, Any]] | None = None
    """Computes the study's `result.json`, once, at the end."""
    closing: Callable[[], list[Any]] | None = None
    """Notes that can only be said at the end."""


@dataclass(frozen=True, slots=True)
class EarlierStudy:
    """A study that ended before its time: its record, and a `Done` for each of its points."""

    study: StudyRecord
    done: list[Done]


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """How a study ended. `error`: of the last run that failed."""

    path: Path
    study: StudyRecord
    done: list[Done]
    exit_code: int
    error: LoadstoneError | None


def run_study(
    controller: Controller,
    *,
    asked: StudyRequest,
    out_dir: Path,
    hooks: Hooks,
    consent: guard.Consent | None = None,
    after_failure: AfterFailure = "stop",
    calibration: bool = True,
    earlier: EarlierStudy | None = None,
) -> StudyOutcome:
    """Run a study into a new directory at `out_dir`, or go on with the one that is there.

    Every run that is certain to come is resolved and checked before the first, and consent is
    asked once. Raises what that check raises, and `BundleError` for an unusable `out_dir` or a
    full disk; any other end is a `StudyOutcome`.
    """
    if earlier is None:
        BundleWriter.check(out_dir)
    consent = remembered(consent or guard.Consent())
    clock = TimeEstimate()
    # Asked once: to make every run of a long list anew after each of them takes its square.
    known = controller.known()
    _check(known, hooks.resolve, consent, clock)
    study = (
        earlier.study.model_copy(update={"status": "running"})
        if earlier is not None
        else _begun(asked, out_dir)
    )
    runner = _Runner(
        controller,
        known=known,
        asked=asked,
        directory=out_dir,
        hooks=hooks,
        consent=consent,
        study=study,
        clock=clock,
        calibration=calibration,
        done=[] if earlier is None else earlier.done,
    )
    return runner.go(after_failure)


def _begun(asked: StudyRequest, out_dir: Path) -> StudyRecord:
    return on_disk.begin(
        out_dir,
        StudyRecord(
            kind=asked.kind,
            name=asked.name,
            front_end=asked.front_end,
            loadstone_version=__version__,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            request=asked.request,
            settings=asked.settings,
            notes=asked.notes,
        ),
        asked.inputs,
    )


def remembered(consent: guard.Consent) -> guard.Consent:
    """Ask for each path once: the answer holds for all runs of the study."""
    ask, answers = consent.ask, dict[str, str]()
    if ask is None:
        return consent

    def once(path: str, evidence: list[str]) -> str:
        if path not in answers:
            answers[path] = ask(path, evidence)
        return answers[path]

    return dataclasses.replace(consent, ask=once)


def _check(
    known: Sequence[Next], resolve: Callable[[Next], Resolved], consent: guard.Consent, clock: TimeEstimate
) -> None:
    """Resolve and check every run; what an earlier one makes for a later one is not there yet."""
    prepared = False
    names: set[str] = set()
    plans: list[Plan] = []
    for wanted in known:
        if wanted.name in names:
            raise InputError(f"two runs of the study are called {wanted.name!r}")
        names.add(wanted.name)
        try:
            resolved = resolve(wanted)
            plan_check.memory_bytes(resolved.plan)
        except (InputError, RefusedError) as error:
            if prepared:
                continue
            raise type(error)(
                error.message if len(known) == 1 else f"run {wanted.name}: {error.message}",
                where=error.where,
                hint=error.hint,
            ) from error
        prepared = prepared or wanted.role == "prepare" or changes_trees(resolved.plan)
        clock.planned(wanted, resolved.duration_ns)
        plans.append(resolved.plan)
    _secure(plans, consent)
    if len(plans) == len(known):
        guard.check_consent(consent, plans)


def _secure(plans: Sequence[Plan], consent: guard.Consent) -> None:
    """Check what the runs write, in a child: what does not answer is an error."""
    asking, questions = through_parent(consent)

    def look() -> None:
        looked_at: set[frozenset[str]] = set()
        for plan in plans:
            paths = frozenset(plan.targets[index].path for index in guard.written(plan))
            if paths not in looked_at:
                looked_at.add(paths)
                guard.secure(plan, asking)

    with answering(*questions):
        run_in_child(look, doing="looking at the targets of the study")


class _Runner:
    """A study while it runs."""

    def __init__(
        self,
        controller: Controller,
        *,
        known: Sequence[Next],
        asked: StudyRequest,
        directory: Path,
        hooks: Hooks,
        consent: guard.Consent,
        study: StudyRecord,
        clock: TimeEstimate,
        calibration: bool,
        done: Sequence[Done],
    ) -> None:
        self._controller = controller
        self._known = known
        self._asked = asked
        self._directory = directory
        self._hooks = hooks
        self._consent = consent
        self._study = study
        self._clock = clock
        self._calibration = calibration
        self._calibrations: dict[str, dict[str, Any]] = {}
        self._done: list[Done] = list(done)
        self._earlier = len(self._done)
        """Of these runs of earlier sessions, whose ends were told then."""
        self._blocks = KnownBlocks()
        self._error: LoadstoneError | None = None
        self._interrupts = Interrupts()

    def go(self, after_failure: AfterFailure) -> StudyOutcome:
        """Run to the end, whatever end it is."""
        try:
            with self._interrupts:
                while not self._interrupted and (wanted := self._controller.next(self._done)) is not None:
                    done = self._one(wanted)
                    if done is None or done.point.status in {"interrupted", "partial"}:
                        return self._end("interrupted", exitcodes.INTERRUPTED)
                    # A maximum that was cut short is none to take shares of.
                    lost = wanted.role == "maximum" and done.point.status == "failed"
                    if done.point.exit_code and (lost or after_failure == "stop"):
                        return self._end("failed", done.point.exit_code)
        except BaseException as error:
            status: Literal["interrupted", "failed"] = (
                "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            )
            with contextlib.suppress(OSError):
                self._write(status=status)
            raise
        if self._interrupted:
            return self._end("interrupted", exitcodes.INTERRUPTED)
        own = self._done[self._earlier :]
        codes = [done.point.exit_code for done in own if done.point.exit_code]
        # As with a run: one that did all that was asked is complete, whatever its I/Os ended with.
        failed = any(done.point.status == "failed" for done in own)
        return self._end("failed" if failed else "complete", codes[-1] if codes else exitcodes.DONE)

    @property
    def _interrupted(self) -> bool:
        return self._interrupts.asked

    def _end(self, status: Literal["complete", "interrupted", "failed"], exit_code: int) -> StudyOutcome:
        try:
            if self._hooks.closing is not None:
                notes = [*self._study.notes, *self._hooks.closing()]
                self._study = self._study.model_copy(update={"notes": notes})
            if self._hooks.result is not None:
                document = self._hooks.result(
                    self._directory, self._study.model_copy(update={"status": status}), self._done
                )
                on_disk.write_result(self._directory, document)
            self._write(status=status)
        except OSError as error:
            raise BundleError(f"{self._directory}: the study cannot be written: {error.strerror}") from error
        return StudyOutcome(self._directory, self._study, self._done, exit_code, self._error)

    def _one(self, wanted: Next) -> Done | None:
        """Do one run and record it; None when it was not begun because of a signal."""
        number = len(self._done) + 1
        wanted = dataclasses.replace(wanted, workload=own_sequence(wanted.workload, number))
        if not self._waited(wanted.pause_s):
            return None
        bundle = (
            self._directory
            / on_disk.RUNS
            / f"{number:03d}-{file_name.safe(wanted.name, most_bytes=MAX_NAME)}"
        )
        begun = Point(name=wanted.name, factors=wanted.factors, role=wanted.role)
        self._write(points=(*self._study.points, begun))
        began_s = time.monotonic()
        point, summary = self._run(wanted, begun, bundle, number)
        self._clock.ran(wanted, time.monotonic() - began_s)
        self._write(points=(*self._study.points[:-1], point))
        done = Done(point, summary)
        self._done.append(done)
        if self._hooks.progress is not None:
            expected = self._controller.expected()
            left_s = self._clock.left_s(self._known, expected)
            self._hooks.progress.end(done, number, expected, left_s)
        return done

    def _run(self, wanted: Next, begun: Point, path: Path, number: int) -> tuple[Point, Summary | None]:
        relative = path.relative_to(self._directory).as_posix()
        result = _Result()
        try:
            with self._hooks.around(wanted):
                resolved = self._hooks.resolve(wanted)
                self._clock.planned(wanted, resolved.duration_ns)
                progress = None
                if self._hooks.progress is not None:
                    progress = self._hooks.progress.begin(wanted, number, self._controller.expected())
                outcome = self._plan(wanted, resolved, path, progress, result)
        except BundleError:
            raise
        except LoadstoneError as error:
            self._error = error
            made = {"status": "failed", "exit_code": error.exit_code, "error": str(error)}
            return begun.model_copy(
                update={**made, "bundle": relative if on_disk.is_bundle(path) else None}
            ), result.made
        self._error = outcome.error or self._error
        return begun.model_copy(
            update={
                "bundle": relative,
                "seal": on_disk.seal_of(self._directory / relative),
                "status": outcome.status,
                "exit_code": outcome.exit_code,
                "error": None if outcome.error is None else str(outcome.error),
                **({} if wanted.role == "prepare" else _judged(result.audited)),
            }
        ), result.made

    def _plan(
        self, wanted: Next, resolved: Resolved, path: Path, progress: Progress | None, result: _Result
    ) -> Outcome:
        alike = shape(resolved.plan) if self._calibration else ""
        plan = self._blocks.before(resolved.plan)
        outcome = run_plan(
            plan,
            asked=RunRequest(
                request={
                    **self._asked.request,
                    "study": {"name": self._asked.name, "point": wanted.name, "factors": wanted.factors},
                },
                inputs=self._asked.inputs,
                workload_json=wanted.workload.model_dump_json(),
                notes=[note.model_dump(mode="json") for note in resolved.notes],
                spec=self._asked.spec,
                watch=self._asked.watch,
            ),
            out_dir=path,
            progress=progress,
            consent=self._consent,
            result=result.document,
            calibration=self._calibrations.get(alike, self._calibration),
        )
        self._blocks.after(plan, path)
        if self._calibration and result.made is not None:
            told = result.made.bundle.event("calibration")
            if told is not None and "skipped" not in told:
                self._calibrations.setdefault(alike, {**told, "taken_over_from": path.name})
        return outcome

    def _waited(self, pause_s: float) -> bool:
        """Wait, and tell whether nobody interrupted it."""
        until_s = time.monotonic() + pause_s
        while not self._interrupted and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, PAUSE_LOOK_S))
        return not self._interrupted

    def _write(self, **changes: object) -> None:
        self._study = self._study.model_copy(update=changes)
        on_disk.write(self._directory, self._study)


class _Result:
    """A run added up and judged, once: for its `result.json` and for the controller."""

    made: Summary | None = None
    audited: Audited | None = None

    def document(self, bundle: Bundle) -> dict[str, Any]:
        """Compute `result.json`."""
        self.made = summarise(bundle)
        self.audited = audit(self.made)
        return self.made.document(self.audited)


def _judged(audited: Audited | None) -> dict[str, str | None]:
    """Return what a point keeps of its verdict."""
    if audited is None:
        return {}
    rule, why = audited.verdict.decided_by or (None, None)
    return {"verdict": audited.verdict.kind, "decided_by": rule, "why": why}
