"""The agent: one process on each host, which does a run there as a coordinator says.

Knows the words of `hosts.words`: one JSON object a line on standard input and output. Checks the
targets, runs a session with an engine that waits for the time of the start, sends what happens and
gives the bundle. It ends the engine by itself when the coordinator is gone: its input closed, or
nothing was heard for as long as was agreed. Where the agent is stopped and can do nothing, the engine
sees the end of that input, and that the agent is silent.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import queue
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import doctor, environment, exitcodes, own_directory
from loadstone.engine import plan_check
from loadstone.engine.process import EngineProcess
from loadstone.errors import LoadstoneError, RefusedError
from loadstone.experiment import target_record
from loadstone.hosts import occupancy
from loadstone.hosts.agent_links import WANTED_BY
from loadstone.hosts.assignment import Division, HostWork
from loadstone.hosts.divide import divided
from loadstone.hosts.engine_stops import EngineStops
from loadstone.hosts.hosts_file import DIRECTORY
from loadstone.hosts.outbox import Outbox
from loadstone.hosts.targets_seen import behind, look_at
from loadstone.messages import make_error, say
from loadstone.path.child import run_in_child
from loadstone.path.identity import BOOT_ID
from loadstone.plan.asking_jobs import target_places
from loadstone.plan.resolve import Resolution, resolve
from loadstone.plan.safety import guard, obstacles
from loadstone.plan.safety.run_targets import seal_again, sealed_ns
from loadstone.session import Means, RunRequest, run_plan
from loadstone.study.rerun import PlanAsRun
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.hosts.assignment import SeenTarget
    from loadstone.plan.model import Plan
    from loadstone.session import Outcome

ALIVE_EVERY_S: Final = 1.0
SPOKE_S: Final = 0.9 * ALIVE_EVERY_S
"""Who said something so lately need not say that it is there."""
DRAIN_S: Final = 1.2
"""After the coordinator is gone, how long the engine may drain before it is killed."""
PIECE_BYTES: Final = 256 << 10
FORWARDED: Final = frozenset({"layout", "tick", "note", "io_error", "hung", "signal", "fatal", "steady"})


class OwnCpu:
    """What this process took of a CPU since it was last told."""

    def __init__(self) -> None:
        self.told_s = time.monotonic()
        self._cpu_s = time.process_time()
        self._lock = threading.Lock()

    def since(self) -> dict[str, float]:
        """Return the seconds of processor time, and in how many."""
        with self._lock:
            now_s, cpu_s = time.monotonic(), time.process_time()
            used_s, over_s = cpu_s - self._cpu_s, now_s - self.told_s
            self.told_s, self._cpu_s = now_s, cpu_s
        return {"cpu_s": round(used_s, 4), "over_s": round(over_s, 4)}


class Agent:
    """One coordinator's agent on one host."""

    def __init__(self, source: int, sink: int, *, wanted_by: Sequence[int] = ()) -> None:
        """Read orders from `source`; the ends of `wanted_by` end the engine, too."""
        self._source = source
        self._wanted_by = (source, *wanted_by)
        self._out = Outbox(sink)
        self._orders: queue.Queue[dict[str, Any]] = queue.Queue()
        self._engine: EngineProcess | None = None
        self._stops: EngineStops | None = None
        self._wanted_stops = 0
        self._heard_s = time.monotonic()
        self._lost_after_s: float | None = None
        self._gone = threading.Event()
        self._over = threading.Event()
        self._running = False
        self._name = ""
        self._directory = Path()
        self._bundle: Path | None = None
        self._work: HostWork | None = None
        self._resolved: Resolution | PlanAsRun | None = None
        self._held: occupancy.Occupancy | None = None
        self._used = OwnCpu()
        self._seals: dict[str, int | None] = {}
        """Of each tree that this host vouches for on behalf of all: until when before the run."""

    def run(self) -> int:
        """Serve the coordinator until it says so or is gone."""
        self._out.put("up")
        threading.Thread(target=self._listen, name="listen", daemon=True).start()
        threading.Thread(target=self._keep_alive, name="alive", daemon=True).start()
        code = exitcodes.DONE
        while True:
            order = self._orders.get()
            if order["do"] == "leave":
                self._leave_run(forget=bool(order.get("forget")))
                break
            try:
                self._obey(order)
            except LoadstoneError as error:
                self._out.put("refused", of=order["do"], **_error_document(error))
            except Exception as error:  # noqa: BLE001 # a mistake of ours must be told, not die with the agent
                self._out.put(
                    "refused", of=order["do"], error=f"{type(error).__name__}: {error}", hint=None, code=1
                )
                code = exitcodes.FAILED
        self._over.set()
        if self._held is not None:
            self._held.release()
        self._out.close(1.0)
        return code

    def _obey(self, order: Mapping[str, Any]) -> None:
        match order["do"]:
            case "hello":
                self._hello(order)
            case "check":
                self._check(order)
            case "arm":
                self._arm(order)
            case "seal":
                # Where it does not answer the next run asks for consent, and this one's figures are kept.
                with contextlib.suppress(LoadstoneError):
                    run_in_child(self._seal_again, doing=say("hosts.agent.looking"))
            case "list":
                self._list(order)
            case "doctor":
                self._doctor(order)
            case "next":
                self._leave_run(forget=bool(order.get("forget")))
                self._out.put("free")
            case "identify":
                paths = [str(path) for path in order["paths"]]
                targets = run_in_child(lambda: {path: behind(path) for path in paths}, doing="looking")
                self._out.put("identified", targets=targets)
            case "record":
                paths = [str(path) for path in order["paths"]]
                records = target_record.looked_at(paths)
                self._out.put("recorded", targets=[one.model_dump(mode="json") for one in records])
            case other:
                unknown = say("hosts.agent.no_order", order=repr(other))
                self._out.put("refused", of=other, error=unknown, hint=None, code=2)

    def _leave_run(self, *, forget: bool) -> None:
        """Know no more of the run than before it; `forget`: the coordinator has its bundle."""
        if forget and self._bundle is not None:
            shutil.rmtree(self._bundle, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._bundle.parent.rmdir()
        self._bundle = self._work = self._resolved = self._stops = None
        self._seals = {}
        self._wanted_stops = 0

    # Orders.

    def _hello(self, order: Mapping[str, Any]) -> None:
        self._name = str(order["name"])
        self._directory = Path(str(order["directory"]))
        self._lost_after_s = float(order["lost_after_s"])
        hello = {
            "version": __version__,
            "host_name": os.uname().nodename,
            "kernel": os.uname().release,
            "cpus": os.cpu_count(),
            "pid": os.getpid(),
            "boot_id": BOOT_ID.read_text().strip() if BOOT_ID.is_file() else None,
            "unix_ns": time.time_ns(),
            "monotonic_ns": time.monotonic_ns(),
        }
        if order["version"] != __version__:
            # It is told, too, so that the coordinator can name both.
            self._out.put("hello", **hello)
            return
        if self._held is None:
            self._held = occupancy.occupy(str(order["holder"]), str(order["by"]))
        self._out.put("hello", **hello)

    def _check(self, order: Mapping[str, Any]) -> None:
        # From JSON: a Plan takes nothing else for what it is.
        work = HostWork.model_validate_json(json.dumps(order["work"]))
        division = Division.model_validate(order["division"]) if order.get("division") else None
        self._make_directory()
        resolved = self._settled(work)
        places = target_places(resolved.plan, work.workload)
        consent = guard.Consent(frozenset(order.get("consent", ())), places=places)
        if division is not None:
            resolved = _with(resolved, divided(resolved.plan, division))
        memory = plan_check.memory_bytes(resolved.plan)
        guard.check_consent(consent, [resolved.plan])

        def look() -> list[SeenTarget]:
            # A Plan that ran before was not resolved here.
            obstacles.check(resolved.plan, places, naming=True)
            return look_at(resolved.plan, consent)

        seen_targets = run_in_child(look, doing=say("hosts.agent.looking"))
        self._work, self._resolved = work, resolved
        self._out.put(
            "checked",
            targets=[one.model_dump(mode="json") for one in seen_targets],
            plan=resolved.plan.model_dump_json(),
            notes=[note.model_dump(mode="json") for note in resolved.notes],
            memory_bytes=memory,
            duration_ns=resolved.duration_ns,
            doctor=[one.document() for one in doctor.examine(self._directory) if one.state != "ok"],
        )

    def _make_directory(self) -> None:
        """Make the directory of the bundles; at the place that every user has, it may be somebody's.

        One that the file of hosts names may be a link, or of a group.
        """
        if self._directory == Path(DIRECTORY):
            own_directory.make(self._directory, say("program.own_directory.of_host"))
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise make_error(
                RefusedError, "hosts.agent.no_directory", path=self._directory, reason=error.strerror
            ) from error

    @staticmethod
    def _settled(work: HostWork) -> Resolution | PlanAsRun:
        """Return the Plan: resolved against this host, or one that ran before, as it is."""
        if work.plan is not None:
            return PlanAsRun(work.plan, ())
        return resolve(work.in_its_language(), options=work.options(str(Path.home())))

    def _arm(self, order: Mapping[str, Any]) -> None:
        if self._work is None or self._resolved is None:
            raise RefusedError(say("hosts.agent.not_looked"))
        work, plan = self._work, self._resolved.plan
        if order.get("division"):
            plan = divided(plan, Division.model_validate(order["division"]))
        bundle = self._directory / str(order["run"]) / self._name
        if bundle.exists():
            # What is forgotten later is what this run made.
            raise RefusedError(say("hosts.agent.there", path=str(bundle)), hint=say("hosts.agent.there_hint"))
        self._bundle = bundle
        self._make_directory()
        own_directory.make(self._bundle.parent, say("program.own_directory.of_host"))
        trees = [str(path) for path in order.get("marked_for_all", ())]
        self._seals = run_in_child(
            lambda: {path: sealed_ns(path) for path in trees}, doing=say("hosts.agent.looking")
        )
        self._running = True
        try:
            outcome = self._run(work, plan, order)
        finally:
            self._running, self._engine = False, None
        error = None if outcome.error is None else _error_document(outcome.error)
        self._out.put(
            "ended",
            status=str(outcome.status),
            exit_code=outcome.exit_code,
            bundle=str(outcome.bundle_path),
            error=error,
        )

    def _run(self, work: HostWork, plan: Plan, order: Mapping[str, Any]) -> Outcome:
        if self._bundle is None or self._resolved is None:
            raise RefusedError(say("hosts.agent.not_looked"))
        return run_plan(
            plan,
            request=RunRequest(
                request={**work.request, "host": self._name},
                inputs={name: base64.b64decode(text) for name, text in work.inputs.items()},
                workload_json=work.workload.model_dump_json(),
                notes=[*work.notes, *(note.model_dump(mode="json") for note in self._resolved.notes)],
            ),
            out_dir=self._bundle,
            progress=_Forwarded(self),
            consent=guard.Consent(
                frozenset(order.get("consent", ())),
                places=target_places(plan, work.workload),
                marked_elsewhere=frozenset(order.get("marked_elsewhere", ())),
                changed_elsewhere=frozenset(order.get("changed_elsewhere", ())),
            ),
            calibration=work.calibration,
            means=Means(engine=self._engine_that_waits, interrupts=self._interrupts),  # type: ignore[arg-type] # in the place of signals
        )

    def _list(self, order: Mapping[str, Any]) -> None:
        """Name the files of the bundle and their sizes."""
        root = self._bundle
        files = []
        if root is not None and root.is_dir():
            files = [
                (path.relative_to(root).as_posix(), path.stat().st_size)
                for path in sorted(root.rglob("*"))
                if path.is_file()
            ]
        self._out.put("listed", id=order.get("id"), files=files)

    def _doctor(self, order: Mapping[str, Any]) -> None:
        self._make_directory()
        checks = [one.document() for one in doctor.examine(self._directory)]
        self._out.put("doctor", id=order.get("id"), checks=checks, host=environment.host())

    def _seal_again(self) -> None:
        for path, before_ns in self._seals.items():
            seal_again(path, before_ns)

    def _read(self, order: Mapping[str, Any]) -> None:
        """Send a piece of a file of the bundle; the listening thread does it, also while a run goes on."""
        root = self._bundle
        name = str(order["path"])
        try:
            if root is None or ".." in Path(name).parts or name.startswith("/"):
                raise FileNotFoundError(2, say("hosts.agent.no_file"))
            with (root / name).open("rb") as file:
                file.seek(int(order["offset"]))
                data = file.read(PIECE_BYTES)
        except OSError as error:
            self._out.put("piece", id=order.get("id"), error=str(error.strerror or error))
            return
        self._out.put("piece", id=order.get("id"), data=base64.b64encode(data).decode())

    # The engine and its ends.

    def _engine_that_waits(self, plan: Path, out: Path) -> EngineProcess:
        self._engine = EngineProcess(plan, out, arm=True, wanted_by=self._wanted_by)
        self._tell_engine()
        return self._engine

    def _tell_engine(self) -> None:
        """Let the engine know that somebody is here. What it waits is longer than what we do."""
        engine = self._engine
        if engine is not None and self._lost_after_s is not None:
            engine.end_unless_told_within(self._lost_after_s + ALIVE_EVERY_S)

    def _interrupts(self, on_first: Callable[[], None], on_second: Callable[[], None]) -> EngineStops:
        self._stops = EngineStops(on_first, on_second)
        if self._wanted_stops:
            self._stops.ask(self._wanted_stops)
        return self._stops

    def stop(self, times: int = 1) -> None:
        """Ask the run to end, or insist."""
        self._wanted_stops = max(self._wanted_stops, times)
        if self._stops is not None:
            self._stops.ask(times)

    def _coordinator_is_gone(self, why: str) -> None:
        """End the engine, first in order and then at once, and leave."""
        if self._gone.is_set():
            return
        self._gone.set()
        self.stop()
        self._orders.put({"do": "leave"})
        until_s = time.monotonic() + DRAIN_S
        while self._running and time.monotonic() < until_s:
            time.sleep(0.02)
        if self._running and self._engine is not None:
            self._engine.kill()
        # Last, because whoever would read it may be gone, too; a buffer would be tried again at the end.
        message = f"loadstone agent {self._name}: {say('hosts.agent.engine_ended', reason=why)}\n"
        with contextlib.suppress(OSError):
            os.write(2, message.encode(errors="replace"))

    # Threads.

    def _listen(self) -> None:
        rest = b""
        while True:
            try:
                data = os.read(self._source, 1 << 20)
            except OSError:
                data = b""
            if not data:
                break
            self._heard_s = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in filter(None, lines):
                self._hear(json.loads(line))
        if not self._over.is_set():
            self._coordinator_is_gone(say("hosts.agent.gone"))

    def _hear(self, order: dict[str, Any]) -> None:
        """Answer at once what must not wait for a run."""
        match order.get("do"):
            case "ping":
                self._out.put(
                    "pong",
                    id=order.get("id"),
                    monotonic_ns=time.monotonic_ns(),
                    unix_ns=time.time_ns(),
                )
            case "alive":
                pass
            case "start":
                if self._engine is not None:
                    self._engine.start_at(int(order["monotonic_ns"]))
                    self._out.put("confirmed")
            case "stop":
                self.stop(int(order.get("times", 1)))
                if not self._running:
                    self._out.put("ended", status="interrupted", exit_code=130, bundle=None, error=None)
            case "read":
                self._read(order)
            case "leave" | "next" as last:
                if last == "leave":
                    self._over.set()
                self.stop()
                self._orders.put(order)
            case _:
                self._orders.put(order)

    def _keep_alive(self) -> None:
        while not self._over.wait(ALIVE_EVERY_S):
            self._tell_engine()
            # The figures of a second that just went tell the same.
            if time.monotonic() - self._used.told_s >= SPOKE_S:
                self._out.put("alive", **self._used.since())
            silent_s = time.monotonic() - self._heard_s
            if self._lost_after_s is not None and silent_s > self._lost_after_s:
                self._coordinator_is_gone(say("hosts.agent.silent", silent_s=silent_s))
                return

    def forward(self, event: Mapping[str, Any]) -> None:
        """Send an event of the run, as far as the coordinator shows or needs it."""
        kind = event.get("type")
        if kind == "armed":
            read = self._read_document
            self._out.put("armed", plan=read("plan.json"), environment=json.loads(read("environment.json")))
        elif kind == "start":
            self._out.put("started", event=dict(event))
        elif kind in FORWARDED:
            used = self._used.since() if kind == "tick" else {}
            self._out.put("event", event=dict(event), **used)

    def _read_document(self, name: str) -> str:
        return "null" if self._bundle is None else (self._bundle / name).read_text(encoding="utf-8")


class _Forwarded:
    """A `session.Progress` that sends what happens to the coordinator."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def begin(self, plan: Plan, bundle: Path) -> None:
        """Nothing is to be said: the engine says when it is armed."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Send it."""
        self._agent.forward(event)

    def finish(self) -> None:
        """Nothing is to be said: the outcome comes."""


def _with(resolved: Resolution | PlanAsRun, plan: Plan) -> Resolution | PlanAsRun:
    return dataclasses.replace(resolved, plan=plan)


def _error_document(error: LoadstoneError) -> dict[str, Any]:
    return {"error": str(error), "hint": error.hint, "code": error.exit_code}


def main() -> int:
    """Be an agent on standard input and output."""
    # What anything else prints must not come between the messages.
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    with contextlib.suppress(OSError):
        os.close(null)
    descriptor = os.environ.pop(WANTED_BY, "")
    return Agent(source, sink, wanted_by=[int(descriptor)] if descriptor else ()).run()


if __name__ == "__main__":
    sys.exit(main())
