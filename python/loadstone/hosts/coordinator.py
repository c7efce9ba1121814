"""A run on several hosts: agents reached, held together by `phases`, their bundles put into one.

Knows the order of things and does what `Phases` says. Every host runs a session of its own; here
nothing is measured. A host's clocks are asked again when it is armed, and the start is told in its
own monotonic time.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from loadstone import exitcodes
from loadstone.bundle.disk import reason
from loadstone.bundle.write import BundleWriter
from loadstone.engine.interrupts import Interrupts
from loadstone.engine.partial_result import PartialResult
from loadstone.errors import BundleError, InputError, LoadstoneError
from loadstone.hosts import heard, merge, phases
from loadstone.hosts.agent_links import ASK_S, clocks
from loadstone.hosts.agreement import Agreement, agree, used_by_each_other
from loadstone.hosts.assignment import SeenTarget
from loadstone.hosts.ending import HostsRunKnown
from loadstone.hosts.greeting import greeting, is_one_machine, new_number
from loadstone.hosts.host_state import HostState, error_of, origins
from loadstone.hosts.joint_bundle import JointBundle
from loadstone.hosts.ticks import MergedTicks
from loadstone.hosts.watched_storage import WatchedStorage
from loadstone.messages import say
from loadstone.plan.model import Plan
from loadstone.session import Outcome, unsealed
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadstone.bundle.hosts import HostPart
    from loadstone.bundle.read import Bundle
    from loadstone.hosts.agent_links import Link
    from loadstone.hosts.assignment import HostWork
    from loadstone.hosts.hosts_file import HostsFile
    from loadstone.plan.safety.guard import Consent
    from loadstone.session import Progress, RunRequest

LOOK_S: Final = 0.2
LET_GO_S: Final = 5.0
LAYOUT_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class HostsRequest:
    """How a run on hosts is done, besides what each does."""

    asked: RunRequest
    out_dir: Path
    consent: Consent
    holder: str
    """Under which name the hosts are held: all runs of a study have one."""
    progress: Progress | None = None
    divide: bool = False
    say: Callable[[str], None] = lambda _: None
    """Tells people what happens between hosts."""
    lost_before: Mapping[str, str] = field(default_factory=dict)
    """Why agents were started anew that were lost since the run before, by host."""
    consent_is_checked: bool = False
    """Consent may be for what other runs of a study write."""
    own_parts: frozenset[tuple[str, str]] = frozenset()
    """Host and path of targets that were divided when the Plans were made, in a run before."""


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
    # Before anything is asked of a host: who wants the storage watched wants no run without it.
    watched = WatchedStorage(request.asked.watch)
    try:
        return _HostsRun(works, hosts, reach, request, watched).go(result)
    finally:
        watched.close()


class _HostsRun:
    """One run: messages in, orders out."""

    def __init__(
        self,
        works: Mapping[str, HostWork],
        hosts: HostsFile,
        reach: Callable[[str, Callable[[str, dict[str, Any]], None]], Link],
        request: HostsRequest,
        watched: WatchedStorage,
    ) -> None:
        self._works = works
        self._file = hosts
        self._request = request
        self._out = request.out_dir
        self._progress = request.progress
        self._watched = watched
        self._number = new_number()
        self._inbox: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._hosts = {name: HostState(reach(name, self._hear)) for name in works}
        settings = hosts.run
        self._phases = phases.Phases(
            list(works),
            time.monotonic(),
            settings.on_loss,
            phases.PhaseLimits(
                connect_s=settings.connect_s,
                lost_s=settings.lost_after_s,
                lead_s=settings.lead_s,
                stop_s=max(phases.STOP_S, settings.lost_after_s),
            ),
        )
        self._began_s = time.monotonic()
        self._laying_out_told_s: dict[str, float] = {}
        self._agreement: Agreement | None = None
        self._refusal: LoadstoneError | None = None
        self._bundle: JointBundle | None = None
        self._ticks: MergedTicks | None = None
        self._measured = PartialResult()
        self._events: list[dict[str, Any]] = []
        for name, why in request.lost_before.items():
            self._tell(name, say("hosts.between.lost", reason=why), loud=True)
        self._looked_again = False
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
                    self._tell_watched(show=False)
            finally:
                if self._showing and self._progress is not None:
                    self._progress.finish()
                self._let_go()
            if interrupts.count > 1 and not self._phases.is_over:
                if self._bundle is not None:
                    return self._bundle.leave()
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
            self._note("", say("hosts.between.user"))
            self._show({"type": "stop"})
            self._do(self._phases.asked_to_end(time.monotonic()))

    # What is heard.

    def _understand(self, name: str, message: dict[str, Any]) -> None:
        kind = str(message.get("type"))
        if kind not in {"lost", "refused"}:
            self._phases.heard(name, time.monotonic())
        hear = getattr(self, f"_on_{kind}", None)
        if hear is None:
            return
        wrong = heard.flaw(message)
        if wrong is None:
            try:
                hear(name, self._hosts[name], message)
            except ValidationError as error:
                wrong = heard.in_short(error)
        if wrong is not None:
            why = say("hosts.ended.no_word", kind=repr(kind), reason=wrong)
            self._lose(name, why, say("hosts.ended.no_word_hint"))

    def _on_up(self, name: str, state: HostState, _: dict[str, Any]) -> None:
        state.link.tell(greeting(self._file, name, run=self._number, holder=self._request.holder))

    def _on_hello(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.told = message
        if message["version"] != __version__:
            refusal = say("hosts.version.refusal", there=str(message["version"]), here=__version__)
            self._lose(name, refusal, say("hosts.version.hint"))
            return
        # Agents that are started here on purpose share this machine.
        if self._file.entry(name).launch == "ssh":
            others = (other for other, one in self._hosts.items() if one is not state)
            same = next((one for one in others if is_one_machine(self._hosts[one].told, message)), None)
            if same is not None:
                self._tell(name, say("hosts.machine.same", other=same), loud=True)
        self._compare_clocks(name, "hello")

    def _on_clocked(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.clocks = message["clocks"]
        if message["after"] == "hello":
            self._do(self._phases.connected(name, time.monotonic()))
        else:
            self._do(self._phases.armed(name, time.monotonic(), state.clocks.slowest_answer_ns / 1e9))

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
        if self._phases.phase is phases.RunPhase.RUN:
            self._begin_watching()

    def _on_event(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        event = message["event"]
        self._on_alive(name, state, message)
        self._measured.heard(event)
        if self._ticks is not None:
            for one in self._ticks.heard(name, event):
                self._show(one)
                self._tell_watched(show=one.get("type") == "tick")
        elif event.get("type") == "layout":
            self._show_layout(name, event)

    def _on_alive(self, _name: str, state: HostState, message: dict[str, Any]) -> None:
        if state.started is not None and state.ended is None:
            state.agent_cpu_s += float(message.get("cpu_s", 0.0))
            state.agent_s += float(message.get("over_s", 0.0))

    def _on_ended(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.ended = message
        if self._ticks is not None:
            self._ticks.ended(name)
        if message["status"] != "complete":
            why = error_of(message)
            self._note(
                name, say("hosts.between.ended", status=message["status"]) + (f": {why}" if why else "")
            )
        self._do(self._phases.ended(name, str(message["status"]), time.monotonic()))

    def _on_collected(self, name: str, state: HostState, _: dict[str, Any]) -> None:
        state.has_bundle = self._bundle is not None
        self._do(self._phases.collected(name, time.monotonic()))

    def _on_refused(self, name: str, state: HostState, message: dict[str, Any]) -> None:
        state.refused = message
        self._lose(name, str(message["error"]), message.get("hint"))

    def _on_lost(self, name: str, _state: HostState, message: dict[str, Any]) -> None:
        self._lose(name, str(message["why"]))

    def _compare_clocks(self, name: str, after: str) -> None:
        link = self._hosts[name].link

        def compare() -> None:
            try:
                # Who may be silent for longer may take as long to tell its time.
                host_clocks = clocks(link, ask_s=max(ASK_S, self._file.run.lost_after_s))
                self._hear(name, {"type": "clocked", "after": after, "clocks": host_clocks})
            except LoadstoneError as error:
                self._hear(name, {"type": "lost", "why": error.message.removeprefix(f"{name}: ")})
            except (ValueError, LookupError, TypeError) as error:
                self._hear(name, {"type": "lost", "why": say("hosts.ended.no_time", reason=repr(error))})

        threading.Thread(target=compare, name=f"{name} clocks", daemon=True).start()

    def _lose(self, name: str, why: str, hint: str | None = None) -> None:
        state = self._hosts[name]
        state.refused = state.refused or {"error": why, "hint": hint, "code": exitcodes.FAILED}
        if self._phases.hosts[name].phase not in {phases.HostPhase.COLLECTED, phases.HostPhase.GONE}:
            self._note(name, why)
        self._do(self._phases.lost(name, why, time.monotonic()))

    # What is shown.

    def _show_layout(self, name: str, event: dict[str, Any]) -> None:
        now_s = time.monotonic()
        told_s = self._laying_out_told_s.get(name, 0.0)
        if event.get("done_bytes") == event.get("total_bytes") or now_s - told_s >= LAYOUT_EVERY_S:
            self._laying_out_told_s[name] = now_s
            done, total = int(event.get("done_bytes", 0)), int(event.get("total_bytes", 0))
            if total:
                self._request.say(f"{name}: " + say("hosts.between.layout", done_share=done / total))

    def _show(self, event: Mapping[str, Any]) -> None:
        if self._showing and self._progress is not None:
            self._progress.event(event)

    def _begin_watching(self) -> None:
        began = origins(self._hosts)
        if self._bundle is None or not began:
            return
        generators = {str(state.told.get("boot_id")) for state in self._hosts.values()}
        for event in self._watched.begin(min(began.values()), self._bundle.watched, generators):
            self._bundle.event(event)

    def _tell_watched(self, *, show: bool) -> None:
        """Tell what became of the watched hosts; their figures are only shown."""
        for event in self._watched.events():
            if self._bundle is not None:
                self._bundle.event(event)
            self._show(event)
        for line in self._watched.lines() if show else ():
            self._show({"type": "watched", "text": line})

    def _note(self, name: str, text: str) -> None:
        """Say and remember what happened between hosts; what kept the load from being begun is its error."""
        early = self._phases.phase in {phases.RunPhase.CONNECT, phases.RunPhase.PREPARE}
        self._tell(name, text, loud=not early)

    def _tell(self, name: str, text: str, *, loud: bool) -> None:
        self._events.append({"at_s": round(time.monotonic() - self._began_s, 3), "host": name, "text": text})
        if loud:
            self._request.say(f"{name}: {text}" if name else text)

    # What is done.

    def _do(self, doing: list[phases.Do]) -> None:
        for one in doing:
            match one:
                case phases.Ask(name, what):
                    self._ask(name, what)
                case phases.SetStart(name, at_s):
                    self._set_start(name, at_s)
                case phases.Decide():
                    again = self._to_look_again()
                    go = not again and self._decide()
                    self._do(self._phases.decided(time.monotonic(), go=go, again=again))
                case phases.Open():
                    self._open_bundle()
                    self._do(self._phases.opened(time.monotonic()))
                case phases.Warn(name, silent_s):
                    self._note(name, say("hosts.between.silent", silent_s=float(silent_s)))
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
                        "marked_for_all": agreement.marked_for_all.get(name, []),
                        "marked_elsewhere": agreement.marked_elsewhere.get(name, []),
                        "changed_elsewhere": agreement.changed_elsewhere.get(name, []),
                        "division": None if division is None else division.model_dump(mode="json"),
                    }
                )
            case "stop":
                link.tell({"do": "stop"})
            case "leave":
                whole = self._hosts[name].has_bundle or self._bundle is None
                link.tell({"do": "leave", "forget": whole})
            case "collect" if self._bundle is None:
                # Nothing was begun: there is nothing to keep.
                self._inbox.put((name, {"type": "collected"}))
            case "collect":
                self._watched.end()
                self._hosts[name].link.tell({"do": "seal"})
                threading.Thread(
                    target=self._collect, args=(name, self._bundle), name=f"{name} collect", daemon=True
                ).start()

    def _to_look_again(self) -> list[str]:
        """Return, once, the hosts that may have seen each other look: then they look one after another."""
        kernels = {name: str(state.told.get("boot_id") or name) for name, state in self._hosts.items()}
        seen_targets = {name: state.seen for name, state in self._hosts.items()}
        again = [] if self._looked_again else used_by_each_other(seen_targets, kernels, self._file.shared)
        self._looked_again = True
        return again

    def _decide(self) -> bool:
        """Hold what hosts saw against consent; remember why not."""
        request = self._request
        try:
            targets_by_host = {name: state.seen for name, state in self._hosts.items()}
            merge.check_alike({name: plan for name, state in self._hosts.items() if (plan := state.planned)})
            self._agreement = agree(
                targets_by_host,
                request.consent,
                divide=request.divide,
                declared=self._file.shared,
                consent_is_checked=request.consent_is_checked,
                own_parts=request.own_parts,
            )
            if request.divide and not request.consent_is_checked and not self._agreement.divisions:
                raise InputError(say("hosts.divide.nothing"), hint=say("hosts.divide.nothing_hint"))
        except LoadstoneError as error:
            self._refusal = error
            return False
        for name, state in self._hosts.items():
            for check in state.checks:
                if check["state"] == "fail":
                    request.say(f"{name}: {check['name']}: {check['found']}")
        return True

    def _set_start(self, name: str, at_s: float) -> None:
        known = self._hosts[name].clocks
        if known is not None:
            there_ns = known.monotonic.there(round(at_s * 1e9))
            self._hosts[name].link.tell({"do": "start", "monotonic_ns": there_ns})

    def _open_bundle(self) -> None:
        """Begin the bundle of all hosts: their Plans are known, and nothing runs yet."""
        try:
            self._bundle = JointBundle(
                self._out,
                self._request.asked,
                self._hosts,
                shared=self._agreement.shared if self._agreement is not None else (),
                on_loss=self._file.run.on_loss,
            )
            self._bundle.record(self._bundle.merged.parts, self._events)
        except BundleError as error:
            self._refusal = error
            self._do(self._phases.asked_to_end(time.monotonic()))
            return
        self._ticks = MergedTicks(self._bundle.merged.parts)
        if self._progress is not None:
            self._showing = True
            self._progress.begin(merge.with_hosts_in_names(self._bundle.merged), self._out)

    def _collect(self, name: str, bundle: JointBundle) -> None:
        try:
            bundle.collect(name, self._hosts[name].link)
        except (LoadstoneError, OSError, ValueError, LookupError, TypeError) as error:
            # Names, sizes and pieces are as the host says.
            why = error.message if isinstance(error, LoadstoneError) else reason(error)
            self._hear(name, {"type": "lost", "why": say("hosts.ended.not_come", reason=why)})
            return
        self._hear(name, {"type": "collected"})

    # The end.

    def _outcome(self, result: Callable[[Bundle], dict[str, Any]] | None) -> Outcome:
        bundle = self._bundle
        out = self._out if bundle is None else bundle.directory
        known = HostsRunKnown(self._hosts, self._phases, self._file, self._number, out, self._refusal)
        if bundle is None:
            raise known.why_not()
        for event in self._watched.account():
            bundle.event(event)
        parts = known.parts(bundle.merged.parts)
        ending = known.ending(parts)
        try:
            bundle.seal(parts, self._events, self._origin_unix_ns(parts), ending, result)
        except BundleError as error:
            return unsealed(bundle.directory, self._measured.lines(), error, ending.error)
        return Outcome(bundle.directory, ending.status, ending.exit_code, ending.error)

    def _origin_unix_ns(self, parts: tuple[HostPart, ...]) -> int | None:
        """Return the wall clock, ours, of the run's origin."""
        began = origins(self._hosts)
        if not began or not parts:
            return None
        return time.time_ns() - (time.monotonic_ns() - min(began.values()))
