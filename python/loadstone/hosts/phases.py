"""The course of a run on several hosts: what happened in, what is to be done out.

Pure: no clock, socket, process or file, so that every order of losses and delays can be tried
(`tests/hosts/test_phases.py`). Times are seconds of one clock that the caller chooses. Each host
goes through *prepare* (it is there and its targets were looked at), *arm* (all is ready for the
first I/O), *start*, *stop* and *collect*; no host goes on before all hosts have come as far.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

ACKNOWLEDGED_BEFORE_S: Final = 0.5
"""Every host must have confirmed the time of the start so long before it."""
ANSWERS: Final = 4
"""A host may take so many times its slowest answer to confirm the time of the start."""
STOP_S: Final = 45.0
"""A host that was told to stop may take so long: its engine waits for what is in flight."""


class HostPhase(enum.IntEnum):
    """How far one host has come."""

    ABSENT = 0
    THERE = 1
    """It answered, and may be asked to look at its targets."""
    CHECKED = 2
    ARMED = 3
    SET = 4
    """It confirmed the time of the start."""
    RUNNING = 5
    ENDED = 6
    """Its run is over, however it ended."""
    COLLECTED = 7
    GONE = 8
    """It was lost, or refused."""


class RunPhase(enum.Enum):
    """What all hosts together are doing."""

    CONNECT = "connect"
    PREPARE = "prepare"
    ARM = "arm"
    START = "start"
    RUN = "run"
    COLLECT = "collect"
    OVER = "over"


Policy = Literal["stop", "continue"]


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a host for this."""

    host: str
    what: Literal["check", "arm", "stop", "collect", "leave"]


@dataclass(frozen=True, slots=True)
class SetStart:
    """Tell a host when to start; `at_s` is a time of the caller's clock."""

    host: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Decide:
    """All hosts have looked: decide whether they may go on, then call `decided`."""


@dataclass(frozen=True, slots=True)
class Open:
    """All hosts are armed: open what the run is kept in, then call `opened`."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Say this of a host."""

    host: str
    silent_s: float


@dataclass(frozen=True, slots=True)
class Abandon:
    """Speak with this host no more."""

    host: str


@dataclass(frozen=True, slots=True)
class Finish:
    """It is over."""


Do = Ask | SetStart | Decide | Open | Warn | Abandon | Finish


@dataclass(frozen=True, slots=True)
class PhaseLimits:
    """How long each phase may take, and how long a host may be silent."""

    connect_s: float = 30.0
    check_s: float = 300.0
    silent_s: float = 3.0
    """Then it is said."""
    lost_s: float = 10.0
    """Then the host is lost. Its agent gives the coordinator up after the same time."""
    lead_s: float = 2.0
    """From the decision to the start, at least."""
    stop_s: float = STOP_S
    collect_s: float = 600.0


@dataclass(slots=True)
class Host:
    """What is known of one host."""

    phase: HostPhase = HostPhase.ABSENT
    heard_s: float = 0.0
    warned: bool = False
    why: str | None = None
    """Why it is gone."""
    was: HostPhase = HostPhase.ABSENT
    """How far it had come when it went."""
    status: str | None = None
    """How its own run ended."""
    looks_s: float | None = None
    """Since when it looks at its targets."""


@dataclass(slots=True)
class Phases:
    """A run on hosts between the first word and the last."""

    names: Sequence[str]
    now_s: float
    policy: Policy = "stop"
    limits: PhaseLimits = field(default_factory=PhaseLimits)
    hosts: dict[str, Host] = field(default_factory=dict)
    counts: Counter[HostPhase] = field(default_factory=Counter)
    """How many hosts are in each phase."""
    phase: RunPhase = RunPhase.CONNECT
    since_s: float = 0.0
    start_s: float | None = None
    slowest_answer_s: float = 0.0
    """The longest that an armed host took to answer."""
    stopping: Literal["user", "loss", "refused", "late"] | None = None
    """Why it ends before its time."""
    late: list[str] = field(default_factory=list)
    """Who did not confirm the time of the start in time."""
    begun: bool = False
    """Whether a host has done its first I/O: where all are late to stop, it has."""
    to_look: deque[str] = field(default_factory=deque)
    """Who is to look at its targets again, one after another."""

    def __post_init__(self) -> None:
        self.hosts = {name: Host(heard_s=self.now_s) for name in self.names}
        self.counts = Counter({HostPhase.ABSENT: len(self.hosts)})
        self.since_s = self.now_s

    # What happened.

    def heard(self, name: str, now_s: float) -> list[Do]:
        """Take note that a host is alive."""
        host = self.hosts[name]
        host.heard_s, host.warned = max(host.heard_s, now_s), False
        return []

    def connected(self, name: str, now_s: float) -> list[Do]:
        """Take note that a host's agent answered and is of this version."""
        return self._came(name, HostPhase.THERE, now_s)

    def checked(self, name: str, now_s: float) -> list[Do]:
        """Take note that a host has looked at its targets."""
        after = self._next_look(now_s) if self.hosts[name].phase is HostPhase.THERE else []
        return after + self._came(name, HostPhase.CHECKED, now_s)

    def decided(self, now_s: float, *, go: bool, again: Sequence[str] = ()) -> list[Do]:
        """Take note of the answer to `Decide`; `again`: these hosts look once more first."""
        if self.phase is not RunPhase.PREPARE or self.stopping is not None:
            return []
        if again:
            for name in again:
                self._set(self.hosts[name], HostPhase.THERE)
                self.hosts[name].looks_s = None
            self.to_look.extend(again)
            return self._next_look(now_s)
        if not go:
            return self._end("refused", now_s)
        self._enter(RunPhase.ARM, now_s)
        return [Ask(name, "arm") for name in self._alive()]

    def armed(self, name: str, now_s: float, answer_s: float = 0.0) -> list[Do]:
        """Take note that a host waits for the time of the start; `answer_s`: how long an answer took."""
        self.slowest_answer_s = max(self.slowest_answer_s, answer_s)
        return self._came(name, HostPhase.ARMED, now_s)

    def opened(self, now_s: float) -> list[Do]:
        """Take note of the answer to `Open`: nothing but words to the hosts is left to do."""
        if self.phase is not RunPhase.START or self.stopping is not None:
            return []
        self.since_s, self.start_s = now_s, now_s + self.lead_s
        return [SetStart(name, self.start_s) for name in self._alive()]

    def confirmed(self, name: str, now_s: float) -> list[Do]:
        """Take note that a host knows when to start."""
        return self._came(name, HostPhase.SET, now_s)

    def started(self, name: str, now_s: float) -> list[Do]:
        """Take note of a host's first I/O."""
        self.begun = True
        return self._came(name, HostPhase.RUNNING, now_s)

    def ended(self, name: str, status: str, now_s: float) -> list[Do]:
        """Take note that a host's run is over; `status` is its bundle's."""
        host = self.hosts[name]
        self.heard(name, now_s)
        if host.phase in {HostPhase.ENDED, HostPhase.COLLECTED, HostPhase.GONE}:
            return []
        self._set(host, HostPhase.ENDED)
        host.status = status
        doing: list[Do] = []
        early = self.phase in {RunPhase.CONNECT, RunPhase.PREPARE, RunPhase.ARM, RunPhase.START}
        if self.stopping is None and (status != "complete" or early) and not self._goes_on(early=early):
            doing += self._end("loss", now_s)
        return doing + self._next(now_s)

    def collected(self, name: str, now_s: float) -> list[Do]:
        """Take note that a host's bundle is here."""
        self.heard(name, now_s)
        if self.hosts[name].phase is not HostPhase.ENDED:
            return []
        self._set(self.hosts[name], HostPhase.COLLECTED)
        return [Ask(name, "leave"), *self._next(now_s)]

    def lost(self, name: str, why: str, now_s: float) -> list[Do]:
        """Take note that a host cannot be spoken with any more, or will not take part."""
        host = self.hosts[name]
        if host.phase in {HostPhase.COLLECTED, HostPhase.GONE}:
            return []
        host.was, host.why = host.phase, why
        self._set(host, HostPhase.GONE)
        doing: list[Do] = [Abandon(name)]
        if host.was is HostPhase.THERE and host.looks_s is not None:
            doing += self._next_look(now_s)
        early = self.phase in {RunPhase.CONNECT, RunPhase.PREPARE}
        # All hosts are asked in the first two phases, so that everything that is wrong is known at once.
        if self.stopping is None and not early and self.phase is not RunPhase.COLLECT:
            over = host.was >= HostPhase.ENDED
            if not over and not self._goes_on(early=self.phase in {RunPhase.ARM, RunPhase.START}):
                doing += self._end("loss", now_s)
        return doing + self._next(now_s)

    def asked_to_end(self, now_s: float) -> list[Do]:
        """Take note that the user asks for the end."""
        if self.stopping is not None or self.phase in {RunPhase.COLLECT, RunPhase.OVER}:
            return []
        return self._end("user", now_s) + self._next(now_s)

    def passed(self, now_s: float) -> list[Do]:
        """Take note of the time."""
        if self.phase is RunPhase.OVER:
            return []
        doing: list[Do] = []
        for name, host in self.hosts.items():
            if host.phase in {HostPhase.GONE, HostPhase.COLLECTED, HostPhase.ABSENT}:
                continue
            silent_s = now_s - host.heard_s
            if silent_s >= self.limits.lost_s:
                doing += self.lost(name, say("hosts.ended.silent", silent=f"{silent_s:.0f}"), now_s)
            elif silent_s >= self.limits.silent_s and not host.warned:
                host.warned = True
                doing.append(Warn(name, silent_s))
        return doing + self._overdue(now_s)

    # What is known.

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.phase is RunPhase.OVER

    @property
    def lead_s(self) -> float:
        """Return the time from the decision to the start: longer where hosts are slow to answer."""
        answers_s = ANSWERS * self.slowest_answer_s + ACKNOWLEDGED_BEFORE_S
        return max(self.limits.lead_s, min(answers_s, self.limits.lost_s))

    def gone(self) -> dict[str, str]:
        """Return why each host is gone that is."""
        return {name: host.why or "" for name, host in self.hosts.items() if host.phase is HostPhase.GONE}

    # What follows.

    def _set(self, host: Host, to: HostPhase) -> None:
        """Let a host be somewhere else; how many are where is counted, so that no step goes over all."""
        self.counts[host.phase] -= 1
        self.counts[to] += 1
        host.phase = to

    def _came(self, name: str, to: HostPhase, now_s: float) -> list[Do]:
        self.heard(name, now_s)
        host = self.hosts[name]
        if host.phase >= to:
            return []  # Told twice, or gone.
        self._set(host, to)
        return self._next(now_s)

    def _goes_on(self, *, early: bool) -> bool:
        """Whether the others go on without a host: never before all have started."""
        return self.policy == "continue" and not early and bool(self._alive())

    def _alive(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.phase is not HostPhase.GONE]

    def _all(self, reached: HostPhase) -> bool:
        return not any(self.counts[phase] for phase in HostPhase if phase < reached)

    def _enter(self, phase: RunPhase, now_s: float) -> None:
        self.phase, self.since_s = phase, now_s

    def _next(self, now_s: float) -> list[Do]:
        """Go on as soon as all hosts have come as far."""
        doing: list[Do] = []
        some_gone = bool(self.counts[HostPhase.GONE])
        if self.phase is RunPhase.CONNECT and self.stopping is None and self._all(HostPhase.THERE):
            if self.counts[HostPhase.GONE] == len(self.hosts):
                return self._end("loss", now_s) + self._close(now_s)
            self._enter(RunPhase.PREPARE, now_s)
            doing += [self._look(name, now_s) for name in self._alive()]
        elif self.phase is RunPhase.PREPARE and self.stopping is None and self._all(HostPhase.CHECKED):
            doing += self._end("loss", now_s) if some_gone else [Decide()]
        elif self.phase is RunPhase.ARM and self.stopping is None and self._all(HostPhase.ARMED):
            self._enter(RunPhase.START, now_s)
            doing.append(Open())
        elif self.phase is RunPhase.START and self.stopping is None and self._all(HostPhase.RUNNING):
            self._enter(RunPhase.RUN, now_s)
        return doing + self._close(now_s)

    def _look(self, name: str, now_s: float) -> Do:
        self.hosts[name].looks_s = now_s
        return Ask(name, "check")

    def _next_look(self, now_s: float) -> list[Do]:
        """Let the next one look that is to look again."""
        while self.to_look:
            name = self.to_look.popleft()
            if self.hosts[name].phase is not HostPhase.GONE:
                return [self._look(name, now_s)]
        return []

    def _close(self, now_s: float) -> list[Do]:
        """Collect when every run is over, and finish when all is collected."""
        if self.phase is RunPhase.OVER:
            return []
        doing: list[Do] = []
        began = self.phase not in {RunPhase.CONNECT, RunPhase.PREPARE}
        done = HostPhase.ENDED if began else HostPhase.GONE
        ended = self.stopping is not None or self.phase in {RunPhase.START, RunPhase.RUN}
        if self.phase is not RunPhase.COLLECT and ended and self._all(done):
            self._enter(RunPhase.COLLECT, now_s)
            doing += [Ask(name, "collect") for name in self._alive()]
        if self.phase is RunPhase.COLLECT and self._all(HostPhase.COLLECTED):
            self._enter(RunPhase.OVER, now_s)
            doing.append(Finish())
        return doing

    def _end(self, why: Literal["user", "loss", "refused", "late"], now_s: float) -> list[Do]:
        """End it before its time: stop what runs or is armed, send home what has not begun."""
        if self.stopping is not None:
            return []
        self.stopping = why
        doing: list[Do] = []
        begun = self.phase not in {RunPhase.CONNECT, RunPhase.PREPARE}
        for name in self._alive():
            host = self.hosts[name]
            if not begun:
                host.was = host.phase
                self._set(host, HostPhase.GONE)
                doing += [Ask(name, "leave"), Abandon(name)]
            elif host.phase < HostPhase.ENDED:
                doing.append(Ask(name, "stop"))
        self.since_s = now_s
        return doing + self._close(now_s)

    def _overdue(self, now_s: float) -> list[Do]:
        waited_s = now_s - self.since_s
        if self.stopping is not None and self.phase not in {RunPhase.COLLECT, RunPhase.OVER}:
            return self._give_up(
                HostPhase.ENDED, say("hosts.ended.not_stopped"), self.limits.stop_s, waited_s, now_s
            )
        if self.phase is RunPhase.START and self.start_s is not None:
            unsure = [name for name in self._alive() if self.hosts[name].phase < HostPhase.SET]
            if unsure and now_s >= self.start_s - ACKNOWLEDGED_BEFORE_S:
                # The others have not begun yet, unless this machine is late itself: they are stopped then.
                self.late = unsure
                return self._end("late", now_s)
        limits = self.limits
        waits = {
            RunPhase.CONNECT: (HostPhase.THERE, "it did not answer", limits.connect_s),
            RunPhase.START: (HostPhase.RUNNING, "it did not start", self.lead_s + limits.lost_s),
            RunPhase.COLLECT: (HostPhase.COLLECTED, "its bundle did not come", limits.collect_s),
        }
        if self.phase is RunPhase.PREPARE:
            return self._overdue_looks(now_s)
        if self.phase not in waits:
            return []
        wanted, why, limit_s = waits[self.phase]
        return self._give_up(wanted, why, limit_s, waited_s, now_s)

    def _overdue_looks(self, now_s: float) -> list[Do]:
        limit_s = self.limits.check_s
        late = [
            name
            for name, host in self.hosts.items()
            if host.phase is HostPhase.THERE and host.looks_s is not None and now_s - host.looks_s >= limit_s
        ]
        why = f"it did not finish looking at its targets within {limit_s:.0f} s"
        return [one for name in late for one in self.lost(name, why, now_s)]

    def _give_up(
        self, wanted: HostPhase, why: str, limit_s: float, waited_s: float, now_s: float
    ) -> list[Do]:
        if waited_s < limit_s:
            return []
        late = [name for name in self._alive() if self.hosts[name].phase < wanted]
        return [one for name in late for one in self.lost(name, f"{why} within {limit_s:.0f} s", now_s)]
