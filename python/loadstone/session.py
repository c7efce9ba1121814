"""One run: a Plan in, a sealed bundle and an outcome out.

Knows the order of things: safety check, environment, bundle, engine, monitors, end. `run`,
`rerun` and `fio` all come through here. Knows no job file and no report, and judges no
number. Prints nothing: what happens goes to the bundle and to a `Progress`.

Besides the engine's events, `events.jsonl` holds the coordinator's own: `talk` (a line of
the engine's standard error), `stop` (the user asked to stop), `order` (with `text`: a part of
the run was ended before its time), `kill` (with `why`), `silent`
(with `text`), `engine_exit` (with `code`, negative for a signal, absent when it could not be
reaped), `calibration` (see `engine.calibrate`), `target_state` (see `monitor.files`) and
`monitor_cost` (with `cpu_ns`, `rows`, `by_collector`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loadstone import environment, exitcodes
from loadstone.bundle import earlier
from loadstone.bundle.write import BundleWriter
from loadstone.engine.calibrate import calibrate
from loadstone.engine.interrupts import Interrupts
from loadstone.engine.ledger import Ledger, Status, Verdict
from loadstone.engine.process import EngineProcess
from loadstone.engine.watch import Act, Watch
from loadstone.errors import EngineError, LoadstoneError, RunError
from loadstone.monitor import files
from loadstone.monitor.sampler import Sampler
from loadstone.plan import guard

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.bundle.read import Bundle
    from loadstone.path.spec import Spec
    from loadstone.plan.model import Plan

LOOK_S = 1.0
"""How often a silent engine is looked at; one that speaks wakes us by itself."""


class Progress(Protocol):
    """Who wants to see a run while it runs. Called from the running thread, so be quick."""

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Say that the engine is about to start."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Tell one event, the engine's or the coordinator's, after it went into the bundle."""

    def finish(self) -> None:
        """Say that no more events will come; always called once after `begin`."""


class Orders(Protocol):
    """What may be ended before its time while a run goes on. Asking twice does no harm."""

    def end_stage(self, stage: int) -> None:
        """Drain a stage and go on with the next."""

    def end_stream(self, stream: int) -> None:
        """Drain one stream; the others of its stage go on."""


Steer = Callable[[Mapping[str, Any], Orders], None]
"""Sees every event after it went into the bundle, and may end parts of the run."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user gave, for the bundle."""

    request: dict[str, Any]
    """argv, working directory, front end, every option."""
    inputs: dict[str, bytes]
    """Name to content of every file read, byte for byte."""
    workload_json: str
    notes: list[Any]
    spec: Spec | None = None
    """What its data sheet says of the storage."""


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
    asked: Asked,
    out_dir: Path,
    progress: Progress | None = None,
    consent: guard.Consent | None = None,
    guard_files: bool = True,
    result: Callable[[Bundle], dict[str, Any]] | None = None,
    calibration: bool | dict[str, Any] = False,
    steer: Steer | None = None,
) -> Outcome:
    """Run a Plan into a new bundle at `out_dir`.

    Raises `RefusedError` from the safety check, `RunError` when a file cannot be created or
    the bundle's disk is full, and `BundleError` for an unusable `out_dir`; every other end,
    an engine that cannot be started among them, is an `Outcome`. `guard_files=False` checks
    devices only (what `loadstone fio` does). `result` computes the bundle's `result.json`.
    `calibration` may be the event of an earlier run whose Plan has the same shape. `steer` sees
    the engine's events and may end stages and streams early. The first SIGINT, SIGTERM or
    SIGHUP asks the engine to stop and keeps what was measured; the second kills it and returns
    at once.
    """
    # Before files are claimed and their content is looked at: a run without a bundle leaves no trace.
    BundleWriter.check(out_dir)
    plan = guard.claim(guard.secure(plan, consent or guard.Consent(), files=guard_files))
    calibrated = calibration if isinstance(calibration, dict) else calibrate(plan) if calibration else None
    writer = BundleWriter.create(
        out_dir,
        request=asked.request,
        inputs=asked.inputs,
        workload_json=asked.workload_json,
        plan_json=plan.model_dump_json(),
        notes=asked.notes,
        environment={
            **environment.describe(plan, asked.spec),
            "same_sequence": earlier.same_sequence(plan, out_dir.absolute().parent, out_dir.absolute()),
        },
    )
    if calibrated is not None:
        writer.event(calibrated)
    run = _Run(plan, writer, out_dir, progress, steer)
    try:
        verdict = run.go()
    except EngineError as error:
        verdict = Verdict("failed", error.exit_code, error)
    except OSError as error:
        writer.close()
        raise RunError(
            f"the bundle {out_dir} cannot be written any more: {error.strerror}; the engine was ended",
            hint="what was measured is still there and opens as a partial run",
        ) from error
    if verdict is None:
        writer.close()
        return Outcome(out_dir, "partial", exitcodes.INTERRUPTED, None)
    writer.seal(verdict.status, exit_code=verdict.exit_code, result=result)
    return Outcome(out_dir, verdict.status, verdict.exit_code, verdict.error)


class _Run:
    """The part between the first event and the last."""

    def __init__(
        self, plan: Plan, writer: BundleWriter, bundle: Path, progress: Progress | None, steer: Steer | None
    ) -> None:
        self._plan = plan
        self._writer = writer
        self._bundle = bundle
        self._progress = progress
        self._steer = steer
        self._ledger = Ledger([target.path for target in plan.targets])
        self._watch = Watch(plan.interval_ns / 1e9, plan.grace_ns / 1e9, time.monotonic())
        self._killed: str | None = None
        self._sampler: Sampler | None = None

    def go(self) -> Verdict | None:
        """Run the engine to its end; `None` when the user insisted on leaving at once."""
        plan_file = self._bundle / "plan.json"
        with EngineProcess(plan_file, self._writer.engine_dir) as engine:
            with Interrupts(engine.stop, engine.kill) as interrupts:
                if self._progress is not None:
                    self._progress.begin(self._plan, self._bundle)
                try:
                    self._listen(engine, interrupts)
                finally:
                    self._end_monitors()
                    if self._progress is not None:
                        self._progress.finish()
                if interrupts.count > 1:
                    return None
            code = engine.wait(0.0 if self._watch.look(time.monotonic()) is Act.LEAVE else 5.0)
        self._tell({"type": "engine_exit"} if code is None else {"type": "engine_exit", "code": code})
        return self._ledger.verdict(code, killed=self._killed)

    def _listen(self, engine: EngineProcess, interrupts: Interrupts) -> None:
        for event in engine.events(LOOK_S):
            if interrupts.count > 1:
                # Killed, but it may be stuck in the kernel and never close its output.
                return
            if interrupts.count and not self._ledger.stopped:
                # Not told by the signal handler: it may run in the middle of another write.
                self._ledger.stopped = True
                self._tell({"type": "stop"})
            if event is not None:
                self._watch.heard(str(event.get("type")), time.monotonic())
                self._ledger.heard(event)
                self._tell(event)
                if self._steer is not None:
                    self._steer(event, _Told(engine, self._tell))
                if event.get("type") == "start":
                    guard.prepared(self._plan)
                    self._begin_monitors(engine.pid, int(event["unix_ns"]))
            act = self._watch.look(time.monotonic())
            if act is Act.LEAVE:
                return
            if act is not Act.NOTHING:
                self._act(act, engine)

    def _act(self, act: Act, engine: EngineProcess) -> None:
        waits = " (it waits in the kernel for I/O that does not come back)" if engine.state() == "D" else ""
        if act is Act.WARN:
            self._tell({"type": "silent", "text": f"the engine has not been heard of for a while{waits}"})
            return
        # After `end` a slow exit is the kernel's business and not a failure of the run.
        why = f"the engine fell silent and was killed; what it had measured is kept{waits}"
        if self._watch.ended_s is None:
            self._killed = why
        self._tell({"type": "kill", "why": why})
        engine.kill()
        self._watch.killed(time.monotonic())

    def _tell(self, event: dict[str, Any]) -> None:
        self._writer.event(event)
        if self._progress is not None:
            self._progress.event(event)

    def _begin_monitors(self, pid: int, origin_unix_ns: int) -> None:
        origin_ns = time.monotonic_ns() - (time.time_ns() - origin_unix_ns)
        self._sampler = Sampler(self._plan, pid, origin_ns, self._writer.host)
        self._sampler.start()
        for state in files.states(self._plan, "begin"):
            self._writer.event(state)

    def _end_monitors(self) -> None:
        if self._sampler is not None:
            self._writer.event({"type": "monitor_cost", **self._sampler.stop()})
            for state in files.states(self._plan, "end"):
                self._writer.event(state)


class _Told:
    """Orders to the engine, each told in the bundle."""

    def __init__(self, engine: EngineProcess, tell: Callable[[dict[str, Any]], None]) -> None:
        self._engine = engine
        self._tell = tell

    def end_stage(self, stage: int) -> None:
        self._tell({"type": "order", "text": f"end-stage {stage}"})
        self._engine.end_stage(stage)

    def end_stream(self, stream: int) -> None:
        self._tell({"type": "order", "text": f"end-stream {stream}"})
        self._engine.end_stream(stream)
