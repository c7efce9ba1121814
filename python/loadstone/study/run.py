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
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from loadstone import exitcodes, file_name
from loadstone.audit.run import SealedFigures
from loadstone.bundle import study as on_disk
from loadstone.bundle.study import Point, StudyRecord
from loadstone.bundle.write import BundleWriter
from loadstone.engine.interrupts import Interrupts
from loadstone.errors import BundleError, LoadstoneError
from loadstone.plan.safety import guard
from loadstone.session import RunRequest
from loadstone.study.controller import Controller, Done, Next
from loadstone.study.random_seeds import own_sequence
from loadstone.study.run_maker import Resolved, RunMaker, RunsHere, StudyStep
from loadstone.study.time_estimate import TimeEstimate
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.analysis.summary import Summary
    from loadstone.path.spec import Spec
    from loadstone.session import Outcome, Progress
    from loadstone.verdict import Audited
    from loadstone.watch.address import WatchedAddress

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


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the caller does in between."""

    resolve: Callable[[Next], Resolved]
    progress: StudyProgress | None = None
    around: Callable[[Next], AbstractContextManager[None]] = lambda _: contextlib.nullcontext()
    """Entered before a run is resolved, left after it: commands, settings of the machine."""
    checked: Callable[[], None] = lambda: None
    """Called when no run is refused and the study has its place, before the first run."""
    result: Callable[[Path, StudyRecord, list[Done]], dict[str, Any]] | None = None
    """Computes the study's `result.json`, once, at the end."""
    closing: Callable[[], list[Any]] | None = None
    """Notes that can only be said at the end."""
    maker: RunMaker | None = None
    """Who makes each run; None: it is made on this host, of what `resolve` says."""
    figures: Callable[[], SealedFigures] = SealedFigures
    """Makes who computes the figures of a run that is measured, and may do more before."""


@dataclass(frozen=True, slots=True)
class EarlierStudy:
    """A study that ended before its time: its record, and a `Done` for each of its points."""

    study: StudyRecord
    done: list[Done]


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """How a study ended. `error`: of the last run that failed, or why the study cannot be written."""

    path: Path
    study: StudyRecord
    done: list[Done]
    exit_code: int
    error: LoadstoneError | None
    result: dict[str, Any] | None
    """What its `result.json` says, also where that cannot be written; None where nobody computed one."""


def run_study(
    controller: Controller,
    *,
    request: StudyRequest,
    out_dir: Path,
    hooks: Hooks,
    consent: guard.Consent | None = None,
    after_failure: AfterFailure = "stop",
    calibration: bool = True,
    earlier: EarlierStudy | None = None,
) -> StudyOutcome:
    """Run a study into a new directory at `out_dir`, or go on with the one that is there.

    Every run that is certain to come is resolved and checked before the first, and consent is
    asked once. Raises what that check raises, and `BundleError` for an unusable `out_dir`; any
    other end, a disk that fills up among them, is a `StudyOutcome`.
    """
    if earlier is None:
        BundleWriter.check(out_dir)
    consent = remembered(consent or guard.Consent())
    clock = TimeEstimate()
    # Asked once: to make every run of a long list anew after each of them takes its square.
    known = controller.known()
    maker = hooks.maker or RunsHere(hooks.resolve, calibration=calibration)
    with maker.hold():
        maker.check(known, consent, clock)
        # From its first file on a study is worth its end, as a run is.
        with Interrupts():
            study = (
                earlier.study.model_copy(update={"status": "running", "result_seal": None})
                if earlier is not None
                else _begun(request, out_dir)
            )
            hooks.checked()
            runner = _Runner(
                controller,
                known=known,
                request=request,
                directory=out_dir,
                hooks=hooks,
                consent=consent,
                study=study,
                clock=clock,
                maker=maker,
                done=[] if earlier is None else earlier.done,
            )
            return runner.go(after_failure)


def _begun(request: StudyRequest, out_dir: Path) -> StudyRecord:
    return on_disk.begin(
        out_dir,
        StudyRecord(
            kind=request.kind,
            name=request.name,
            front_end=request.front_end,
            loadstone_version=__version__,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            request=request.request,
            settings=request.settings,
            notes=request.notes,
        ),
        request.inputs,
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


class _Runner:
    """A study while it runs."""

    def __init__(
        self,
        controller: Controller,
        *,
        known: Sequence[Next],
        request: StudyRequest,
        directory: Path,
        hooks: Hooks,
        consent: guard.Consent,
        study: StudyRecord,
        clock: TimeEstimate,
        maker: RunMaker,
        done: Sequence[Done],
    ) -> None:
        self._controller = controller
        self._known = known
        self._asked = request
        self._directory = directory
        self._hooks = hooks
        self._consent = consent
        self._study = study
        self._clock = clock
        self._maker = maker
        self._done: list[Done] = list(done)
        self._earlier = len(self._done)
        """Of these runs of earlier sessions, whose ends were told then."""
        self._error: LoadstoneError | None = None
        self._unwritten: BundleError | None = None
        """Why no more can be written of the study, or of a run: the end of it."""
        self._interrupts = Interrupts()

    def go(self, after_failure: AfterFailure) -> StudyOutcome:
        """Run to the end, whatever end it is."""
        try:
            with self._interrupts:
                while not self._interrupted and (wanted := self._controller.next(self._done)) is not None:
                    done = self._one(wanted)
                    if self._unwritten is not None:
                        return self._end("failed", exitcodes.FAILED)
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
            with contextlib.suppress(BundleError):
                self._write(status=status)
            raise
        if self._interrupted:
            return self._end("interrupted", exitcodes.INTERRUPTED)
        own = self._done[self._earlier :]
        codes = [done.point.exit_code for done in own if done.point.exit_code]
        failed = any(done.point.status == "failed" for done in own)
        return self._end("failed" if failed else "complete", codes[-1] if codes else exitcodes.DONE)

    @property
    def _interrupted(self) -> bool:
        return self._interrupts.asked

    def _end(self, status: Literal["complete", "interrupted", "failed"], exit_code: int) -> StudyOutcome:
        """End it; what cannot be written any more is told, and costs no figure."""
        self._guarded(self._close)
        ended = {"status": "failed" if self._unwritten else status, "expected": self._controller.expected()}
        self._study = self._study.model_copy(update=ended)
        result = None
        if self._hooks.result is not None:
            result = self._hooks.result(self._directory, self._study, self._done)
            self._guarded(partial(self._write_result, result))
        self._guarded(self._write)
        if self._unwritten is None:
            return StudyOutcome(self._directory, self._study, self._done, exit_code, self._error, result)
        failed = self._study.model_copy(update={"status": "failed"})
        return StudyOutcome(self._directory, failed, self._done, exitcodes.FAILED, self._unwritten, result)

    def _write_result(self, result: dict[str, Any]) -> None:
        sealed = on_disk.write_result(self._directory, result)
        self._study = self._study.model_copy(update={"result_seal": sealed})

    def _close(self) -> None:
        if self._hooks.closing is not None:
            notes = [*self._study.notes, *self._hooks.closing()]
            self._study = self._study.model_copy(update={"notes": notes})

    def _guarded(self, write: Callable[[], object]) -> None:
        """Do what writes; remember the first error."""
        try:
            write()
        except BundleError as error:
            self._unwritten = self._unwritten or error

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
        # Its place is written down before it is there: whoever is killed in a run does not come to it.
        place = bundle.relative_to(self._directory).as_posix()
        begun = Point(name=wanted.name, factors=wanted.factors, role=wanted.role, bundle=place)
        self._guarded(partial(self._write, points=(*self._study.points, begun)))
        if self._unwritten is not None:
            return None
        began_s = time.monotonic()
        point, summary = self._run(wanted, begun, bundle, number)
        self._clock.ran(wanted, time.monotonic() - began_s)
        done = Done(point, summary)
        self._done.append(done)
        self._guarded(partial(self._write, points=(*self._study.points[:-1], point)))
        if self._hooks.progress is not None:
            expected = self._controller.expected()
            left_s = self._clock.left_s(self._known, expected)
            self._hooks.progress.end(done, number, expected, left_s)
        return done

    def _run(self, wanted: Next, begun: Point, path: Path, number: int) -> tuple[Point, Summary | None]:
        figures = SealedFigures() if wanted.role == "prepare" else self._hooks.figures()
        outcome: Outcome | None = None
        failed: LoadstoneError | None = None

        def begin() -> Progress | None:
            if self._hooks.progress is None:
                return None
            return self._hooks.progress.begin(wanted, number, self._controller.expected())

        try:
            with self._hooks.around(wanted):
                step = StudyStep(wanted, self._asked_of(wanted), path, begin, self._consent, figures)
                outcome = self._maker.make(step, self._clock)
        except BundleError as error:
            self._unwritten = failed = error
        except LoadstoneError as error:
            failed, outcome = error, None
        if outcome is not None:
            self._error = outcome.error or self._error
            return self._ended_point(begun, outcome, figures), figures.summary
        assert failed is not None  # noqa: S101 - there is an outcome or an error
        self._error = failed
        # Of a study that was checked and begun: refused is what stopped a run, not what was asked.
        update: dict[str, Any] = {"status": "failed", "exit_code": exitcodes.FAILED, "error": str(failed)}
        if not on_disk.is_bundle(path):
            update["bundle"] = None
        return begun.model_copy(update=update), figures.summary

    def _ended_point(self, begun: Point, outcome: Outcome, figures: SealedFigures) -> Point:
        """Return the point of a run that has a bundle."""
        return begun.model_copy(
            update={
                "seal": on_disk.seal_of(self._directory / str(begun.bundle)),
                "status": outcome.status,
                "exit_code": outcome.exit_code,
                "error": None if outcome.error is None else str(outcome.error),
                **({} if begun.role == "prepare" else _judged(figures.audited)),
            }
        )

    def _asked_of(self, wanted: Next) -> RunRequest:
        return RunRequest(
            request={
                **self._asked.request,
                "study": {
                    "name": self._asked.name,
                    "kind": self._asked.kind,
                    "point": wanted.name,
                    "factors": wanted.factors,
                },
            },
            inputs=self._asked.inputs,
            workload_json=wanted.workload.model_dump_json(),
            notes=[],
            spec=self._asked.spec,
            watch=self._asked.watch,
        )

    def _waited(self, pause_s: float) -> bool:
        """Wait, and tell whether nobody interrupted it."""
        until_s = time.monotonic() + pause_s
        while not self._interrupted and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, PAUSE_LOOK_S))
        return not self._interrupted

    def _write(self, **changes: object) -> None:
        self._study = self._study.model_copy(update=changes)
        on_disk.write(self._directory, self._study)


def _judged(audited: Audited | None) -> dict[str, str | None]:
    """Return what a point keeps of its verdict."""
    if audited is None:
        return {}
    rule, why = audited.verdict.decided_by or (None, None)
    return {"verdict": audited.verdict.kind, "decided_by": rule, "why": why}
