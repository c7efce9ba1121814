"""One run: a Plan in, a sealed bundle and an outcome out.

Knows the order of things: safety check, environment, bundle, engine, monitors, end. `run`,
`rerun` and `fio` all come through here. Knows no job file and no report, and judges no
number. Prints nothing: what happens goes to the bundle and to a `Progress`.

Besides the engine's events, `events.jsonl` holds the coordinator's own: `talk` (a line of
the engine's standard error), `stop` (the user asked to stop), `order` (with `text`: a part of
the run was ended before its time), `kill` (with `why`), `silent`
(with `text`), `engine_exit` (with `code`, negative for a signal, absent when it could not be
reaped), `uncaught` (with `text`: something of ours failed and nobody waited for it),
`calibration` (see `engine.calibrate`), `target_state` (see `monitor.target_files`) and
`monitor_cost` (with `cpu_ns`, `rows`, `by_collector`), and of each watched host `watch`,
`watch_lost`, `watch_back` and `watch_end` (see `watch`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loadstone import crash_note, environment, exitcodes, host_limits, temporary, uncaught
from loadstone.bundle import earlier_runs
from loadstone.bundle.disk import Disk, reason, remedy
from loadstone.bundle.write import BundleWriter
from loadstone.engine.calibrate import calibrate
from loadstone.engine.interrupts import Interrupts
from loadstone.engine.process import EngineProcess
from loadstone.engine.run_state import Began, Instruction, Kill, Leave, RunState, Tell, how_it_ended
from loadstone.engine.suspend import Pauses
from loadstone.errors import BundleError, EngineError, LoadstoneError, RunError
from loadstone.exit_cause import Deaths
from loadstone.messages import make_error, say
from loadstone.monitor import target_files
from loadstone.monitor.sampler import MonitoredPath, Sampler
from loadstone.path.child import NoAnswerError, answering, ask_parent, run_in_child
from loadstone.plan.safety import guard, obstacles
from loadstone.plan.safety.foreign_writers import ForeignWriters
from loadstone.plan.safety.newcomers import Newcomers
from loadstone.plan.safety.run_targets import RunTargets, hold
from loadstone.watch.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.bundle.read import Bundle
    from loadstone.engine.event_summary import RunEnding, Status
    from loadstone.path.spec import Spec
    from loadstone.plan.model import Plan
    from loadstone.plan.safety.tree_mark import TreeSeen
    from loadstone.watch.address import WatchedAddress

LOOK_S = 1.0
"""How often a silent engine is looked at; one that speaks wakes us by itself."""
NOTE_S = 1.0
"""How often it is written down what the bundle's growing files hold."""
END_SILENT_S = 5.0
"""How long a target may take to tell how its files lie, while and after a run."""


class Progress(Protocol):
    """Who wants to see a run while it runs. Called from the running thread, so be quick."""

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Say that the engine is about to start."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Tell one event, the engine's or the coordinator's, after it went into the bundle."""

    def finish(self) -> None:
        """Say that the engine is done; always called once after `begin`.

        Only the coordinator's own events may still come, of which `engine_exit` is the last.
        """


class Orders(Protocol):
    """What may be ended before its time while a run goes on. Asking twice does no harm."""

    def end_stage(self, stage: int) -> None:
        """Drain a stage and go on with the next."""

    def end_stream(self, stream: int) -> None:
        """Drain one stream; the others of its stage go on."""


Steer = Callable[[Mapping[str, Any], Orders], None]
"""Sees every event after it went into the bundle, and may end parts of the run."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user gave, for the bundle."""

    request: dict[str, Any]
    """argv, working directory, front end, every option."""
    inputs: dict[str, bytes]
    """Name to content of every file read, byte for byte."""
    workload_json: str
    notes: list[Any]
    spec: Spec | None = None
    """What its data sheet says of the storage."""
    watch: tuple[WatchedAddress, ...] = ()
    """Hosts that are watched meanwhile."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a run is done with; a test puts its own clock, engine, files and signals in their place."""

    monotonic: Callable[[], float] = time.monotonic
    engine: Callable[[Path, Path], EngineProcess] = EngineProcess
    interrupts: Callable[[Callable[[], None], Callable[[], None]], Interrupts] = Interrupts
    sampler: Callable[..., Sampler] = Sampler
    look: Callable[..., Any] = run_in_child
    """Does what touches a target, and gives it up when that does not answer."""
    disk: Disk = dataclasses.field(default_factory=Disk)
    watching: Callable[[Sequence[WatchedAddress]], Watching] = Watching.connect


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `status` is the bundle's; `partial` when it was left at once."""

    bundle_path: Path
    status: Status | str
    exit_code: int
    error: LoadstoneError | None


def run_plan(
    plan: Plan,
    *,
    request: RunRequest,
    out_dir: Path,
    progress: Progress | None = None,
    consent: guard.Consent | None = None,
    check_content: bool = True,
    result: Callable[[Bundle], dict[str, Any]] | None = None,
    calibration: bool | dict[str, Any] = False,
    steer: Steer | None = None,
    means: Means | None = None,
) -> Outcome:
    """Run a Plan into a new bundle at `out_dir`.

    Raises `RefusedError` from the safety check, `RunError` when a file cannot be created, or a
    target or a host that is to be watched does not answer, and `BundleError` for an unusable
    `out_dir`; every other end, an engine that cannot be started and a disk that fills up among
    them, is an `Outcome`: where the bundle could not be completed its error has the figures.
    `check_content=False` writes over regular files whatever they hold (what `loadstone fio` may
    be told to do).
    `result` computes the bundle's `result.json`.
    `calibration` may be the event of an earlier run whose Plan has the same shape. `steer` sees
    the engine's events and may end stages and streams early. The first SIGINT, SIGTERM or
    SIGHUP asks the engine to stop and keeps what was measured; the second kills it and returns
    at once.
    """
    means = means or Means()
    # Before files are claimed and their content is looked at: a run without a bundle leaves no trace.
    BundleWriter.check(out_dir)
    consent = consent or guard.Consent()
    # Before anything is claimed: who asked for a host to be watched wants no run without it.
    with contextlib.closing(means.watching(request.watch)) as watching, ForeignWriters() as writers:
        run_targets = _hold_targets(plan, consent, means, writers, content=check_content)
        plan, sealing = run_targets.plan, _Sealing(run_targets, consent, means, writers)
        with sealing.sealed_on_failure():
            if calibration is True:
                calibration = calibrate(plan)
            around, under = _looked_around(plan, request, out_dir, means)
        # What was measured is worth its result: one request to end does not cost it, the next does.
        # Nor does it leave a bundle that was begun and says nothing.
        with Interrupts():
            with sealing.sealed_on_failure():
                writer = _begin_bundle(plan, request, out_dir, means, around)
            run = _Run(
                plan, writer, means, sealing, under=under, watching=watching, progress=progress, steer=steer
            )
            calibrated = calibration if isinstance(calibration, dict) else None
            return _run_to_its_end(run, writer, calibrated, result)


def _run_to_its_end(
    run: _Run,
    writer: BundleWriter,
    calibrated: dict[str, Any] | None,
    result: Callable[[Bundle], dict[str, Any]] | None,
) -> Outcome:
    try:
        verdict = run.go(calibrated)
    finally:
        if not run.is_settled:
            writer.close()
    if verdict is not None and not run.writes:
        writer.leave(result)
        return unsealed(writer.directory, run.measured(), run.unwritten, verdict.error)
    return _ended(writer, verdict, run.measured(), result)


def _begin_bundle(
    plan: Plan, request: RunRequest, out_dir: Path, means: Means, around: dict[str, Any]
) -> BundleWriter:
    """Begin the bundle with what is known before the run."""
    limits = [_note(limit) for limit in host_limits.of_run(rings=_rings(plan))]
    return BundleWriter.create(
        out_dir,
        request=request.request,
        inputs=request.inputs,
        workload_json=request.workload_json,
        plan_json=plan.model_dump_json(),
        notes=[*request.notes, *limits],
        environment=around,
        disk=means.disk,
    )


def _hold_targets(
    plan: Plan, consent: guard.Consent, means: Means, writers: ForeignWriters, *, content: bool
) -> RunTargets:
    """Check and hold the targets; questions come through to the user."""
    asking, questions = through_parent(consent)

    def check() -> RunTargets:
        # A Plan that ran before was resolved when all might be written.
        obstacles.check(plan, asking.places, naming=True)
        checked = hold(plan, asking, content=content)
        own = [checked.plan.targets[index] for index in sorted(checked.own & checked.written)]
        writers.attend(one for one in own if one.path not in consent.changed_elsewhere)
        return checked

    with answering(*questions):
        run_targets: RunTargets = means.look(check, doing=_looking(plan), keep=writers.descriptors)
    consent.left.take(run_targets.left)
    return run_targets


def through_parent(consent: guard.Consent) -> tuple[guard.Consent, list[Callable[..., Any]]]:
    """Return a consent that a child may use, and the questions its parent then answers for it."""
    ask, tell = consent.ask, consent.tell
    asking = consent
    if ask is not None:
        asking = dataclasses.replace(asking, ask=lambda *words: ask_parent(ask, *words))
    if tell is not None:
        asking = dataclasses.replace(asking, tell=lambda *words: ask_parent(tell, *words))
    return asking, [one for one in (ask, tell) if one is not None]


class _Sealing:
    """Vouches for what a run left behind, once, when nothing writes to it any more."""

    def __init__(
        self, held: RunTargets, consent: guard.Consent, means: Means, writers: ForeignWriters
    ) -> None:
        self.held = held
        self.consent = consent
        self.writers = writers
        self._means = means

    def seal(
        self,
        trees: Mapping[int, TreeSeen] | None = None,
        give_up: Callable[[], bool] = lambda: False,
        engine: int = 0,
    ) -> list[str]:
        """Do it; a target that does not answer stays marked as being written.

        Returns the paths of targets that others than the engine's process wrote to: these are not
        vouched for.
        """
        self.writers.note(engine)
        run_targets, foreign = self.held, self.writers.written

        def work() -> tuple[frozenset[int], guard.Left]:
            changed = run_targets.of_handles(foreign)
            return changed, run_targets.seal(trees, changed)

        with contextlib.suppress(LoadstoneError):
            changed, left = self._means.look(
                work,
                doing=_looking(run_targets.plan),
                silent_s=END_SILENT_S,
                give_up=give_up,
            )
            self.consent.left.take(left)
            return [run_targets.plan.targets[index].path for index in sorted(changed)]
        return []

    @contextlib.contextmanager
    def sealed_on_failure(self) -> Iterator[None]:
        """Seal when what is done before the engine starts fails or is interrupted."""
        try:
            yield
        except BaseException:
            self.seal()
            raise


def _looked_around(
    plan: Plan, request: RunRequest, out_dir: Path, means: Means
) -> tuple[dict[str, Any], MonitoredPath]:
    """Return `environment.json`, and what the monitors will watch."""

    def look() -> tuple[dict[str, Any], MonitoredPath]:
        same = earlier_runs.same_sequence(plan, out_dir.absolute().parent, out_dir.absolute())
        return {**environment.describe(plan, request.spec), "same_sequence": same}, MonitoredPath.of(plan)

    surroundings: tuple[dict[str, Any], MonitoredPath] = means.look(look, doing=_looking(plan))
    return surroundings


def _rings(plan: Plan) -> bool:
    return any(worker.backend.type == "io_uring" for worker in plan.workers)


def _note(limit: host_limits.HostLimit) -> dict[str, Any]:
    return {"kind": "trap", "text": f"{limit.found}; {limit.remedy}", "where": None}


def _looking(plan: Plan) -> str:
    paths = list(dict.fromkeys(target.path for target in plan.targets))
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"looking at {paths[0]}{more}" if paths else say("engine.run.looking_at_host")


def _ended(
    writer: BundleWriter,
    verdict: RunEnding | None,
    measured: Sequence[str],
    result: Callable[[Bundle], dict[str, Any]] | None,
) -> Outcome:
    """Seal the bundle and say how the run ended; what cannot be sealed is told with its figures."""
    if verdict is None:
        writer.close()
        return Outcome(writer.directory, "partial", exitcodes.INTERRUPTED, None)
    try:
        writer.seal(verdict.status, exit_code=verdict.exit_code, result=result)
    except BundleError as error:
        return unsealed(writer.directory, measured, error, verdict.error)
    return Outcome(writer.directory, verdict.status, verdict.exit_code, verdict.error)


def unsealed(directory: Path, measured: Sequence[str], *errors: LoadstoneError | None) -> Outcome:
    """Say why there is no complete bundle, what else went wrong, and what was measured."""
    known_errors = list(dict.fromkeys(error for error in errors if error is not None))
    figures = ["measured until then:", *measured] if measured else ["nothing was measured"]
    lines = [*(str(error) for error in known_errors), *figures]
    hint = next((error.hint for error in known_errors if error.hint), None)
    failure = RunError("\n  ".join(lines), hint=hint)
    return Outcome(directory, "failed", failure.exit_code, failure)


class _Run:
    """The part between the first event and the last: does what `RunState` says."""

    def __init__(
        self,
        plan: Plan,
        writer: BundleWriter,
        means: Means,
        sealing: _Sealing,
        *,
        under: MonitoredPath,
        watching: Watching,
        progress: Progress | None,
        steer: Steer | None,
    ) -> None:
        self._plan = plan
        self._writer = writer
        self._under = under
        self._watching = watching
        self._progress = progress
        self._steer = steer
        self._means = means
        self._sealing = sealing
        self._state = RunState(plan, means.monotonic())
        self._sampler: Sampler | None = None
        self._engine: EngineProcess | None = None
        self._interrupts: Interrupts | None = None
        self._pauses: Pauses | None = None
        self._left = False
        self._newcomers: Newcomers | None = None
        self._long_layout = False
        self._note_due_s = -math.inf
        self._host_error: OSError | MemoryError | None = None
        """Why the monitors' rows cannot be written."""
        self.unwritten: LoadstoneError | None = None
        """Why the bundle takes nothing more of what is written to it."""
        self.is_settled = False
        """It came to a verdict, whatever that is."""

    @property
    def writes(self) -> bool:
        """Whether the bundle takes what is written to it."""
        return self.unwritten is None

    def measured(self) -> list[str]:
        """Return what was measured, a line for each operation."""
        return self._state.tally.lines()

    def go(self, calibrated: dict[str, Any] | None) -> RunEnding | None:
        """Run the engine to its end; `None` when the user insisted on leaving at once."""
        before, code, uncaught_count = Deaths.now(), None, uncaught.so_far()
        try:
            if calibrated is not None:
                self._tell(calibrated)
            if self.writes:
                code = self._through()
        except EngineError as error:
            self._do(self._state.failed(error, self._means.monotonic()))
        if code is not None or self._engine is None:
            self._seal()
        for text in uncaught.since(uncaught_count):
            self._tell({"type": "uncaught", "text": text})
        self._tell({"type": "engine_exit"} if code is None else {"type": "engine_exit", "code": code})
        cpu_s = 0.0 if self._engine is None else self._engine.cpu_s
        verdict = self._state.verdict(code, how_it_ended(code, before, Deaths.now(), cpu_s))
        self.is_settled = True
        return verdict

    def _seal(self) -> None:
        """Vouch for what only this run wrote to; say what is left out."""
        engine = 0 if self._engine is None else self._engine.pid
        paths = self._sealing.seal(self._state.trees_left, self._is_insisted_on, engine)
        for path in dict.fromkeys(paths):
            self._tell({"type": "note", "text": say("engine.run.written_by_others", path=path)})

    def _through(self) -> int | None:
        """Start the engine, listen to its end, return its exit code."""
        plan_file = self._writer.engine_dir / "plan.json"
        with self._means.engine(plan_file, self._writer.engine_dir) as self._engine:
            interrupts = self._means.interrupts(self._engine.stop, self._engine.kill)
            with Pauses(self._engine.pid) as self._pauses, interrupts as self._interrupts:
                if self._progress is not None:
                    self._progress.begin(self._plan, self._writer.engine_dir)
                try:
                    self._listen(self._engine, self._interrupts)
                finally:
                    self._end_monitors()
                    if self._progress is not None:
                        self._progress.finish()
                if self._is_insisted_on():
                    self._do(self._state.asked_to_end(self._interrupts.count, self._means.monotonic()))
            return self._engine.wait(0.0 if self._left else 5.0)

    def _listen(self, engine: EngineProcess, interrupts: Interrupts) -> None:
        now = self._means.monotonic
        for event in engine.events(LOOK_S):
            if self._pauses is not None and (paused_s := self._pauses.taken_s()):
                self._do(self._state.paused(paused_s))
            # Not told by the signal handler: it may run in the middle of another write.
            self._do(self._state.asked_to_end(interrupts.count, now()))
            if self._host_error is not None:
                self._give_up(self._host_error)
            if event is not None and not self._left:
                self._long_layout |= event.get("type") == "layout"
                self._do(self._state.heard(event, now()))
                self._tell_watched(show=event.get("type") == "tick")
                if event.get("type") == "tick":
                    crash_note.note("\n".join([*self.measured(), self._place()]))
                    self._note_growth(now())
                if self._steer is not None:
                    self._steer(event, _Told(engine, self._state, self._do))
            if not self._left:
                self._look_for_newcomers(engine.pid)
                self._do(self._state.passed(now(), engine.state()))
            if self._left:
                return

    def _look_for_newcomers(self, engine: int) -> None:
        """End the run when a target that it writes has come into use."""
        newcomers, now_s = self._newcomers, self._means.monotonic()
        self._sealing.writers.note(engine)
        if newcomers is None or self._state.is_over or not newcomers.is_due(now_s):
            return
        uses: frozenset[tuple[str, str]] = frozenset()
        with contextlib.suppress(LoadstoneError):
            uses = self._means.look(
                lambda: newcomers.look(engine),
                doing=_looking(self._plan),
                silent_s=END_SILENT_S,
                give_up=self._is_insisted_on,
            )
        if (confirmed := newcomers.judge(uses, now_s)) is not None:
            path, use = confirmed
            error = make_error(RunError, "refusals.in_use.began", path=path, use=use)
            self._do(self._state.failed(error, now_s))

    def _note_growth(self, now_s: float) -> None:
        if self.writes and now_s >= self._note_due_s:
            self._note_due_s = now_s + NOTE_S
            self._writer.note_growth()

    def _place(self) -> str:
        """Say where the bundle would be found, were this the end."""
        path = self._writer.engine_dir
        return say("engine.run.goes_again", path=path) if temporary.holds(path) else f"bundle: {path}"

    def _do(self, instructions: Sequence[Instruction]) -> None:
        for one in instructions:
            match one:
                case Tell(event):
                    self._tell(event)
                case Began(unix_ns):
                    self._begin_monitors(unix_ns)
                case Kill():
                    if self._engine is not None:
                        self._engine.kill()
                case Leave():
                    # Killed, but it may be stuck in the kernel and never close its output.
                    self._left = True

    def _tell(self, event: dict[str, Any]) -> None:
        self._write(self._writer.event, event)
        if self._progress is not None:
            self._progress.event(event)

    def _write(self, write: Callable[[dict[str, Any]], None], row: dict[str, Any]) -> None:
        if not self.writes:
            return
        try:
            write(row)
        except (OSError, MemoryError) as error:
            self._give_up(error)

    def _tell_watched(self, *, show: bool) -> None:
        """Tell what became of the watched hosts; their figures are only shown."""
        for event in self._watching.events():
            self._tell(event)
        if show and self._progress is not None:
            for line in self._watching.lines():
                self._progress.event({"type": "watched", "text": line})

    def _write_watched(self, name: str, row: dict[str, int]) -> None:
        """Write a row of a watched host, whose thread must not end the run: `_listen` does."""
        if self._host_error is None:
            try:
                self._writer.watched(name, row)
            except (OSError, MemoryError) as error:
                self._host_error = error

    def _write_host(self, row: dict[str, Any]) -> None:
        """Write a row of the monitors, whose thread must not end the run: `_listen` does."""
        if self._host_error is None:
            try:
                self._writer.host(row)
            except (OSError, MemoryError) as error:
                self._host_error = error

    def _give_up(self, error: OSError | MemoryError) -> None:
        """End the run because the bundle cannot be written."""
        if self.unwritten is None:
            self.unwritten = make_error(
                RunError,
                "bundle.directory.not_written_any_more",
                hint=remedy(error),
                directory=self._writer.directory,
                reason=reason(error),
            )
            self._do(self._state.failed(self.unwritten, self._means.monotonic()))

    def _begin_monitors(self, origin_unix_ns: int) -> None:
        origin_ns = time.monotonic_ns() - (time.time_ns() - origin_unix_ns)
        if self._engine is not None:
            self._sampler = self._means.sampler(
                self._plan, self._engine.pid, origin_ns, self._write_host, self._under
            )
            self._sampler.start()
            for event in self._watching.begin(origin_ns, self._write_watched):
                self._write(self._writer.event, event)

        self._newcomers = newcomers = Newcomers(
            self._sealing.held,
            self._sealing.consent.changed_elsewhere,
            long_layout=self._long_layout,
        )

        def look() -> list[dict[str, Any]]:
            self._sealing.held.prepared()
            states = target_files.states(self._plan, "begin")
            newcomers.attend()
            return states

        self._sealing.held.laid_out = True
        self._look_at_targets(look, keep=newcomers.descriptors)

    def _end_monitors(self) -> None:
        if self._sampler is None:
            return
        cost = self._sampler.stop()
        if self._newcomers is not None:
            self._newcomers.close()
        for event in self._watching.end():
            self._write(self._writer.event, event)
        if self._host_error is not None:
            self._give_up(self._host_error)
        self._write(self._writer.event, {"type": "monitor_cost", **cost})
        self._look_at_targets(lambda: target_files.states(self._plan, "end"))

    def _look_at_targets(self, look: Callable[[], list[dict[str, Any]]], keep: Sequence[int] = ()) -> None:
        """Look while the engine runs or after it: what does not answer is told and left."""
        try:
            events = self._means.look(
                look,
                doing=_looking(self._plan),
                silent_s=END_SILENT_S,
                give_up=self._is_insisted_on,
                keep=keep,
            )
        except NoAnswerError as error:
            events = [{"type": "note", "text": str(error)}]
        except LoadstoneError as error:
            events = [{"type": "note", "text": f"the files are not looked at: {error}"}]
        for event in events:
            self._write(self._writer.event, event)

    def _is_insisted_on(self) -> bool:
        return self._interrupts is not None and self._interrupts.count > 1


class _Told:
    """Orders to the engine, each told in the bundle."""

    def __init__(
        self, engine: EngineProcess, state: RunState, do: Callable[[Sequence[Instruction]], None]
    ) -> None:
        self._engine = engine
        self._state = state
        self._do = do

    def end_stage(self, stage: int) -> None:
        self._do(self._state.ordered(stage=stage))
        self._engine.end_stage(stage)

    def end_stream(self, stream: int) -> None:
        self._do(self._state.ordered(stream=stream))
        self._engine.end_stream(stream)
