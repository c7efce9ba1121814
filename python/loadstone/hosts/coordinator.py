"""A run on several hosts: agents reached, held together by `phases`, their bundles put into one.

Knows the order of things and does what `Phases` says. Every host runs a session of its own; here
nothing is measured. A host's clocks are asked again when it is armed, and the start is told in its
own monotonic time.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import queue
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone import exitcodes
from loadstone.bundle.disk import Disk
from loadstone.bundle.hosts import FOLDER, HOSTS, HostPart, HostsRecord
from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.engine.interrupts import Interrupts
from loadstone.errors import BundleError, InputError, LoadstoneError, RefusedError, RunError
from loadstone.hosts import merge, phases
from loadstone.hosts.agreement import Agreement, agree
from loadstone.hosts.links import Clocks, clocks, fetch
from loadstone.hosts.ticks import MergedTicks
from loadstone.hosts.work import SeenTarget
from loadstone.plan.model import Plan
from loadstone.session import Outcome
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.hosts.links import Link
    from loadstone.hosts.work import HostWork
    from loadstone.plan.safety.guard import Consent
    from loadstone.session import Progress, RunRequest

LOOK_S: Final = 0.2
WORD_EVERY_S: Final = 1.0
"""How often each agent hears that its coordinator is there."""
MOST_EVENTS: Final = 10_000
LET_GO_S: Final = 5.0


@dataclass(slots=True)
class HostState:
    """What is known of one host besides its phase."""

    link: Link
    told: dict[str, Any] = field(default_factory=dict)
    """What it said of itself."""
    clocks: Clocks | None = None
    seen: tuple[SeenTarget, ...] = ()
    planned: Plan | None = None
    armed_plan: Plan | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, str]] = field(default_factory=list)
    started: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None
    refused: dict[str, Any] | None = None
    cpu_s: list[float] = field(default_factory=list)
    has_bundle: bool = False


@dataclass(frozen=True, slots=True)
class HostsRequest:
    """How a run on hosts is done, besides what each does."""

    asked: RunRequest
    out_dir: Path
    consent: Consent
    progress: Progress | None = None
    divide: bool = False
    say: Callable[[str], None] = lambda _: None
    """Tells people what happens between hosts."""


def run_on_hosts(
    works: Mapping[str, HostWork],
    hosts: HostsFile,
    reach: Callable[[str, Callable[[str, dict[str, Any]], None]], Link],
    request: HostsRequest,
    *,
    result: Callable[[Bundle], dict[str, Any]] | None = None,
) -> Outcome:
    """Run on every host at once, into one bundle at `request.out_dir`.

    Raises `RefusedError`, `InputError` and `RunError` for what kept the load from being begun; every
    other end is an `Outcome`. SIGINT, SIGTERM and SIGHUP are as in a run on one host.
    """
    BundleWriter.check(request.out_dir)
    return _HostsRun(works, hosts, reach, request).go(result)


class _HostsRun:
    """One run: messages in, orders out."""

    def __init__(
        self,
        works: Mapping[str, HostWork],
        hosts: HostsFile,
        reach: Callable[[str, Callable[[str, dict[str, Any]], None]], Link],
        request: HostsRequest,
    ) -> None:
        self._works = works
        self._file = hosts
        self._request = request
        self._asked = request.asked
        self._out = request.out_dir
        self._progress = request.progress
        self._number = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        self._inbox: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._hosts = {name: HostState(reach(name, self._hear)) for name in works}
        settings = hosts.run
        self._phases = phases.Phases(
            list(works),
            time.monotonic(),
            settings.on_loss,
            phases.PhaseLimits(
                connect_s=settings.connect_s, lost_s=settings.lost_after_s, lead_s=settings.lead_s
            ),
        )
        self._began_s = time.monotonic()
        self._told_s = 0.0
        self._agreement: Agreement | None = None
        self._refusal: LoadstoneError | None = None
        self._writer: BundleWriter | None = None
        self._merged: merge.MergedPlan | None = None
        self._ticks: MergedTicks | None = None
        self._events: list[dict[str, Any]] = []
        self._stops = 0
        self._showing = False

    # The loop.

    def go(self, result: Callable[[Bundle], dict[str, Any]] | None) -> Outcome:
        """Do it, and say how it ended."""
        with Interrupts(lambda: None, lambda: None) as interrupts:
            try:
                self._begin()
                while not self._phases.is_over:
                    self._take(LOOK_S)
                    self._asked_to_stop(interrupts.count)
                    if interrupts.count > 1:
                        break
                    self._do(self._phases.passed(time.monotonic()))
                    self._say_we_are_here()
            finally:
                if self._showing and self._progress is not None:
                    self._progress.finish()
                self._let_go()
            if interrupts.count > 1 and not self._phases.is_over:
                if self._writer is not None:
                    self._writer.close()
                    return Outcome(self._writer.directory, "partial", exitcodes.INTERRUPTED, None)
                raise KeyboardInterrupt
        return self._outcome(result)

    def _let_go(self) -> None:
        closing = [threading.Thread(target=state.link.close, daemon=True) for state in self._hosts.values()]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(LET_GO_S)

    def _begin(self) -> None:
        for state in self._hosts.values():
            threading.Thread(target=state.link.open, daemon=True).start()

    def _hear(self, name: str, message: dict[str, Any]) -> None:
        self._inbox.put((name, message))

    def _take(self, most_s: float) -> None:
        """Take what has come; wait for the first so long."""
        try:
            name, message = self._inbox.get(timeout=most_s)
            while True:
                self._understand(name, message)
                name, message = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _asked_to_stop(self, count: int) -> None:
        if count > self._stops:
            self._stops = count
            self._note("", "the user asked for the end")
            if self._showing and self._progress is not None:
                self._progress.event({"type": "stop"})
            self._do(self._phases.asked_to_end(time.monotonic()))

    def _say_we_are_here(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s < WORD_EVERY_S:
            return
        self._told_s = now_s
        for name, host in self._phases.hosts.items():
            if phases.HostPhase.ABSENT < host.phase < phases.HostPhase.COLLECTED:
                self._hosts[name].link.tell({"do": "alive"})

    # What is heard.

    def _understand(self, name: str, message: dict[str, Any]) -> None:
        kind = str(message.get("type"))
        if kind not in {"lost", "refused"}:
            self._phases.heard(name, time.monotonic())
        hear = getattr(self, f"_on_{kind}", None)
        if hear is not None:
            hear(name, self._hosts[name], message)

    def _on_up(self, name: str, state: HostState, _: dict[str, Any]) -> None:
        state.link.tell(self._hello(name))

    def _on_hello(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.told = message
        if message["version"] != __version__:
            found = f"it has loadstone {message['version']}, and here is {__version__}"
            self._lose(name, found, "loadstone hosts install HOSTS")
            return
        self._compare_clocks(name, "hello")

    def _on_clocked(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.clocks = message["clocks"]
        came = self._phases.connected if message["after"] == "hello" else self._phases.armed
        self._do(came(name, time.monotonic()))

    def _on_checked(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.seen = tuple(SeenTarget.model_validate(one) for one in message["targets"])
        state.planned = Plan.model_validate_json(message["plan"])
        state.notes, state.checks = message["notes"], message["doctor"]
        self._do(self._phases.checked(name, time.monotonic()))

    def _on_armed(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.armed_plan = Plan.model_validate_json(message["plan"])
        state.environment = message.get("environment") or {}
        self._compare_clocks(name, "armed")

    def _on_confirmed(self, name: str, _state: HostState, _: dict[str, Any]) -> None:
        self._do(self._phases.confirmed(name, time.monotonic()))

    def _on_started(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.started = message["event"]
        self._do(self._phases.started(name, time.monotonic()))
        self._show({"type": "start", "unix_ns": time.time_ns(), "startup_ns": 0})

    def _on_event(self, name: str, _state: HostState, message: dict[str, Any]) -> None:
        event = message["event"]
        if self._ticks is not None:
            for one in self._ticks.heard(name, event):
                self._show(one)
        elif event.get("type") == "layout":
            self._show_layout(name, event)

    def _on_alive(self, _name: str, state: HostState, message: dict[str, Any]) -> None:
        if state.started is not None and state.ended is None:
            state.cpu_s.append(float(message.get("cpu_s", 0.0)))

    def _on_ended(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.ended = message
        if self._ticks is not None:
            self._ticks.ended(name)
        if message["status"] != "complete":
            self._note(name, f"its run ended: {message['status']}{_why(message)}")
        self._do(self._phases.ended(name, str(message["status"]), time.monotonic()))

    def _on_collected(self, name: str, state: HostState, _: dict[str, Any]) -> None:
        state.has_bundle = self._writer is not None
        self._do(self._phases.collected(name, time.monotonic()))

    def _on_refused(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.refused = message
        self._lose(name, str(message["error"]), message.get("hint"))

    def _on_lost(self, name: str, _state: HostState, message: dict[str, Any]) -> None:
        self._lose(name, str(message["why"]))

    def _hello(self, name: str) -> dict[str, Any]:
        entry = next(one for one in self._file.host if one.name == name)
        return {
            "do": "hello",
            "name": name,
            "run": self._number,
            "version": __version__,
            "by": f"{getpass.getuser()}@{os.uname().nodename} (process {os.getpid()})",
            "directory": entry.directory,
            "lost_after_s": self._file.run.lost_after_s,
        }

    def _compare_clocks(self, name: str, after: str) -> None:
        link = self._hosts[name].link

        def compare() -> None:
            try:
                self._hear(name, {"type": "clocked", "after": after, "clocks": clocks(link)})
            except LoadstoneError as error:
                self._hear(name, {"type": "lost", "why": error.message})

        threading.Thread(target=compare, name=f"{name} clocks", daemon=True).start()

    def _lose(self, name: str, why: str, hint: str | None = None) -> None:
        state = self._hosts[name]
        state.refused = state.refused or {"error": why, "hint": hint, "code": exitcodes.FAILED}
        if self._phases.hosts[name].phase not in {phases.HostPhase.COLLECTED, phases.HostPhase.GONE}:
            self._note(name, why)
        self._do(self._phases.lost(name, why, time.monotonic()))

    def _show_layout(self, name: str, event: dict[str, Any]) -> None:
        now_s = time.monotonic()
        if event.get("done_bytes") == event.get("total_bytes") or now_s - self._told_s > 0.9:
            done, total = int(event.get("done_bytes", 0)), int(event.get("total_bytes", 0))
            if total:
                self._request.say(f"{name}: writing the test files: {done / total:.0%}")

    def _show(self, event: Mapping[str, Any]) -> None:
        if self._showing and self._progress is not None:
            self._progress.event(event)

    # What is done.

    def _do(self, doing: list[phases.Do]) -> None:
        for one in doing:
            match one:
                case phases.Ask(name, what):
                    self._ask(name, what)
                case phases.SetStart(name, at_s):
                    self._set_start(name, at_s)
                case phases.Decide():
                    self._do(self._phases.decided(time.monotonic(), go=self._decide()))
                case phases.Warn(name, silent_s):
                    self._note(name, f"nothing was heard of it for {silent_s:.0f} s")
                case phases.Abandon(name):
                    threading.Thread(target=self._hosts[name].link.close, daemon=True).start()
                case phases.Finish():
                    pass

    def _ask(self, name: str, what: str) -> None:
        link, work = self._hosts[name].link, self._works[name]
        match what:
            case "check":
                link.tell({"do": "check", "work": work.model_dump(mode="json")})
            case "arm":
                agreement = self._agreement or Agreement()
                division = agreement.divisions.get(name)
                link.tell(
                    {
                        "do": "arm",
                        "run": self._number,
                        "consent": agreement.consent.get(name, []),
                        "division": None if division is None else division.model_dump(mode="json"),
                    }
                )
            case "stop":
                link.tell({"do": "stop"})
            case "leave":
                whole = self._hosts[name].has_bundle or self._writer is None
                link.tell({"do": "leave", "forget": whole})
            case "collect" if self._writer is None:
                # Nothing was begun: there is nothing to keep.
                self._inbox.put((name, {"type": "collected"}))
            case "collect":
                threading.Thread(
                    target=self._collect, args=(name,), name=f"{name} collect", daemon=True
                ).start()

    def _decide(self) -> bool:
        """Hold what hosts saw against consent; remember why not."""
        try:
            seen = {name: state.seen for name, state in self._hosts.items()}
            merge.check_alike({name: plan for name, state in self._hosts.items() if (plan := state.planned)})
            self._agreement = agree(
                seen, self._request.consent, divide=self._request.divide, declared=self._file.shared
            )
        except LoadstoneError as error:
            self._refusal = error
            return False
        if self._request.divide and not self._agreement.divisions:
            self._refusal = InputError(
                "--divide has no effect: no target that is written is seen by several hosts",
                hint="leave it out; docs/hosts.md says how to declare a shared device",
            )
            return False
        for name, state in self._hosts.items():
            for check in state.checks:
                if check["state"] == "fail":
                    self._request.say(f"{name}: {check['name']}: {check['found']}")
        return True

    def _set_start(self, name: str, at_s: float) -> None:
        if self._writer is None:
            self._open_bundle()
        if self._refusal is not None:
            return
        known = self._hosts[name].clocks
        if known is not None:
            there_ns = known.monotonic.there(round(at_s * 1e9))
            self._hosts[name].link.tell({"do": "start", "monotonic_ns": there_ns})

    def _open_bundle(self) -> None:
        """Begin the bundle of all hosts: their Plans are known, and nothing runs yet."""
        plans = {name: plan for name, state in self._hosts.items() if (plan := state.armed_plan) is not None}
        shared = self._agreement.shared if self._agreement is not None else ()
        self._merged = merge.merged_plan(plans, shared)
        environments = {name: state.environment for name, state in self._hosts.items()}
        try:
            self._writer = BundleWriter.create(
                self._out,
                request=self._asked.request,
                inputs=self._asked.inputs,
                workload_json=self._asked.workload_json,
                plan_json=self._merged.plan.model_dump_json(),
                notes=[*self._asked.notes, *self._notes_of_hosts()],
                environment=merge.merged_environment(environments, self._merged.parts, self._merged.plan),
            )
            self._write_record(self._merged.parts)
        except (BundleError, OSError) as error:
            self._refusal = error if isinstance(error, LoadstoneError) else RunError(str(error))
            self._do(self._phases.asked_to_end(time.monotonic()))
            return
        self._ticks = MergedTicks(self._merged.parts)
        if self._progress is not None:
            self._showing = True
            self._progress.begin(merge.with_hosts_in_names(self._merged), self._out)

    def _notes_of_hosts(self) -> list[dict[str, Any]]:
        """Return what was said of the job on every host once, and what was said on some with their names."""
        by_text: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for name, state in self._hosts.items():
            for note in state.notes:
                by_text.setdefault(str(note.get("text")), (note, []))[1].append(name)
        return [
            note if len(names) == len(self._hosts) else {**note, "text": f"{', '.join(names)}: {text}"}
            for text, (note, names) in by_text.items()
        ]

    def _collect(self, name: str) -> None:
        state = self._hosts[name]
        target = self._out / FOLDER / name
        try:
            fetch(state.link, target)
        except (LoadstoneError, OSError) as error:
            why = error.message if isinstance(error, LoadstoneError) else str(error)
            self._hear(name, {"type": "lost", "why": f"its bundle did not come: {why}"})
            return
        self._hear(name, {"type": "collected"})

    def _note(self, name: str, text: str) -> None:
        """Say and remember what happened between hosts."""
        if len(self._events) < MOST_EVENTS:
            self._events.append(
                {"at_s": round(time.monotonic() - self._began_s, 3), "host": name, "text": text}
            )
        if self._phases.phase not in {phases.RunPhase.CONNECT, phases.RunPhase.PREPARE}:
            self._request.say(f"{name}: {text}" if name else text)

    # The end.

    def _outcome(self, result: Callable[[Bundle], dict[str, Any]] | None) -> Outcome:
        if self._writer is None or self._merged is None:
            raise self._why_not()
        writer = self._writer
        parts = self._parts(self._merged.parts)
        self._write_record(parts)
        bundles = [
            (part, Bundle.open(self._out / part.bundle, unverified=True))
            for part in parts
            if part.bundle is not None
        ]
        for event in merge.merged_events(bundles, self._origin_unix_ns(parts)):
            writer.event(event)
        status, code, error = self._verdict(parts)
        try:
            writer.seal(status, exit_code=code, result=result)  # type: ignore[arg-type] # one of its three
        except BundleError as failed:
            return Outcome(writer.directory, "failed", failed.exit_code, failed)
        return Outcome(writer.directory, status, code, error)

    def _why_not(self) -> LoadstoneError:
        """Return why the load was not begun, with everything that is wrong."""
        if self._refusal is not None:
            return self._refusal
        silent: dict[str, dict[str, Any]] = {
            name: {"error": why, "hint": None} for name, why in self._phases.gone().items() if why
        }
        gone = silent | {
            name: state.refused for name, state in self._hosts.items() if state.refused is not None
        }
        if not gone:
            if self._phases.stopping == "user":
                raise KeyboardInterrupt
            return RunError("the load was not begun", hint="see what was said before")
        lines = [f"{name}: {told['error']}" for name, told in gone.items()]
        hints = [str(told["hint"]) for told in gone.values() if told.get("hint")]
        usage = all(told.get("code") == exitcodes.USAGE for told in gone.values())
        text = "\n  ".join(
            [f"the load was not begun: {len(gone)} of {len(self._hosts)} hosts cannot:", *lines]
        )
        kind = RefusedError if usage else RunError
        return kind(text, hint="; ".join(dict.fromkeys(hints)) or None)

    def _origins(self) -> dict[str, int]:
        """Return the origin of each host's run on our monotonic clock."""
        return {
            name: state.clocks.monotonic.here(int(state.started["monotonic_ns"]))
            for name, state in self._hosts.items()
            if state.started is not None and state.clocks is not None
        }

    def _origin_unix_ns(self, parts: tuple[HostPart, ...]) -> int | None:
        """Return the wall clock, ours, of the run's origin."""
        origins = self._origins()
        if not origins or not parts:
            return None
        return time.time_ns() - (time.monotonic_ns() - min(origins.values()))

    def _parts(self, parts: tuple[HostPart, ...]) -> tuple[HostPart, ...]:
        origins = self._origins()
        firsts = {
            name: origin + int((self._hosts[name].started or {}).get("first_ns", 0))
            for name, origin in origins.items()
        }
        made = []
        for part in parts:
            state = self._hosts[part.name]
            folder = self._out / FOLDER / part.name
            known, ended = state.clocks, state.ended
            there = state.has_bundle and (folder / "manifest.json").is_file()
            seconds = len(state.cpu_s)
            lost = self._phases.hosts[part.name].phase is phases.HostPhase.GONE
            left = self._left_there(part.name, state) if not there else ""
            why = (state.refused or {}).get("error", self._phases.hosts[part.name].why)
            told = why if lost else (_why(ended or {}).removeprefix(": ") or None)
            made.append(
                part.model_copy(
                    update={
                        "bundle": f"{FOLDER}/{part.name}" if there else None,
                        "status": "lost" if lost else str((ended or {}).get("status", "lost")),
                        "error": f"{told or 'no bundle came'}{left}" if told or left else None,
                        "host_name": state.told.get("host_name"),
                        "shift_ns": origins[part.name] - min(origins.values()) if part.name in origins else 0,
                        "start_skew_ns": firsts[part.name] - min(firsts.values())
                        if part.name in firsts
                        else None,
                        "clock_offset_ns": None if known is None else known.wall.offset_ns,
                        "clock_error_ns": None if known is None else known.monotonic.error_ns,
                        "agent_cpu_share": sum(state.cpu_s) / seconds if seconds else None,
                    }
                )
            )
        return tuple(made)

    def _left_there(self, name: str, state: HostState) -> str:
        """Say where the bundle is that did not come."""
        if state.armed_plan is None:
            return ""
        entry = next(one for one in self._file.host if one.name == name)
        return f"; what it measured is kept there, in {entry.directory}/{self._number}/{name}"

    def _verdict(self, parts: tuple[HostPart, ...]) -> tuple[str, int, LoadstoneError | None]:
        wrong = [part for part in parts if part.status not in {"complete", "interrupted"}]
        codes = [int((state.ended or {}).get("exit_code") or 0) for state in self._hosts.values()]
        first = next(
            (one for one in (self._hosts[part.name].ended for part in parts) if one and one.get("error")),
            None,
        )
        if self._refusal is not None:
            return "failed", self._refusal.exit_code, self._refusal
        if wrong:
            lines = [f"{part.name}: {part.error or part.status}" for part in wrong]
            whole = [part.name for part in parts if part.bundle is not None]
            kept = f"the figures are of {', '.join(whole)}" if whole else "there are no figures"
            text = "\n  ".join([f"{len(wrong)} of {len(parts)} hosts failed; {kept}:", *lines])
            return "failed", exitcodes.FAILED, RunError(text)
        if self._phases.stopping == "user" or any(part.status == "interrupted" for part in parts):
            if self._phases.stopping == "late":
                error = RunError(
                    "the load was not begun: a host did not confirm the start in time",
                    hint="raise run.lead_s in the hosts file",
                )
                return "failed", exitcodes.FAILED, error
            return "interrupted", exitcodes.INTERRUPTED, None
        if first is not None:
            told = first["error"]
            return "failed", int(told["code"]), RunError(str(told["error"]), hint=told.get("hint"))
        return "complete", next((code for code in codes if code), exitcodes.DONE), None

    def _write_record(self, parts: tuple[HostPart, ...]) -> None:
        record = HostsRecord(
            hosts=parts,
            on_loss=self._file.run.on_loss,
            shared=self._agreement.shared if self._agreement is not None else (),
            events=tuple(self._events),
        )
        with contextlib.suppress(FileNotFoundError):
            Disk().put_whole(self._out / HOSTS, record.model_dump_json(indent=2).encode() + b"\n")


def _why(message: Mapping[str, Any]) -> str:
    error = message.get("error")
    return f": {error['error']}" if isinstance(error, dict) else ""
