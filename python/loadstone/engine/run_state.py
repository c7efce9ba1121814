"""The course of one run: what happened in, what is to be done out.

Pure: no clock, process or file, so that every order of events can be tried (`tests/engine/
test_run_simulated.py`). `session` does what it says. Knows when an engine is silent (`watchdog`), what its
events add up to (`event_summary`) and whether it did all that was planned (`completeness`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone import exit_cause
from loadstone.engine.completeness import PlannedStreams
from loadstone.engine.event_summary import EventSummary, RunEnding
from loadstone.engine.partial_result import PartialResult
from loadstone.engine.watchdog import Watchdog, WatchdogAction
from loadstone.errors import EngineError, LoadstoneError
from loadstone.messages import make_error, say
from loadstone.plan.backends import on_virtual_clock
from loadstone.plan.safety.tree_mark import TreeSeen

if TYPE_CHECKING:
    from loadstone.plan.model import Plan

CLOCK_SLACK_S: Final = 2.0
"""The engine's clock may be so far from ours, with a twentieth of the time besides."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Write this event to the bundle, and show it."""

    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Began:
    """The load has begun at this time of the wall clock: watch the host from now on."""

    unix_ns: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the engine."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Listen no more: it does not end."""


Instruction = Tell | Began | Kill | Leave


class RunState:
    """A run between its first event and its verdict. Times are seconds of one clock."""

    def __init__(self, plan: Plan, now_s: float) -> None:
        self._streams = PlannedStreams(plan)
        self._ledger = EventSummary([target.path for target in plan.targets], self._streams)
        self._watch = Watchdog(plan.interval_ns / 1e9, plan.grace_ns / 1e9, now_s)
        self._virtual = on_virtual_clock(plan)
        self._killed: str | None = None
        self._error: LoadstoneError | None = None
        self._insisted = False
        self._made_s = now_s
        self._has_begun = False
        self._clocks: str | None = None
        self._trees: dict[int, TreeSeen] = {}
        self.tally = PartialResult()

    def heard(self, event: dict[str, Any], now_s: float) -> list[Instruction]:
        """Take note of an event of the engine's, or a line it said besides."""
        kind = str(event.get("type"))
        self._watch.heard(kind, now_s)
        if not isinstance(event.get("type"), str):
            broken = make_error(EngineError, "engine.contract.no_type", found=str(event)[:200])
            return [Tell({"type": "talk", "text": str(event)[:200]}), *self.failed(broken, now_s)]
        try:
            return self._understood(kind, event, now_s)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            broken = make_error(EngineError, "engine.contract.event", name=repr(kind), reason=str(error))
            return [Tell(event), *self.failed(broken, now_s)]

    def _understood(self, kind: str, event: dict[str, Any], now_s: float) -> list[Instruction]:
        self._ledger.heard(event)
        self.tally.heard(event)
        doing: list[Instruction] = [Tell(event)]
        if kind == "start":
            if self._has_begun:
                raise make_error(ValueError, "engine.contract.second")
            self._has_begun = True
            doing.append(Began(int(event["unix_ns"])))
        elif kind == "tree" and event.get("foreign") is not None:
            doing += self._looked_back(event)
        elif kind == "end":
            self._compare_clocks(int(event.get("t_ns") or 0) / 1e9, now_s)
        return doing

    def _looked_back(self, event: dict[str, Any]) -> list[Instruction]:
        """Take note of what the engine found in a tree after its last operation there."""
        number, count = int(event["target"]), int(event["foreign"])
        first = str(event["first"]) if count else None
        self._trees[number] = TreeSeen(int(event["newest_ns"]), first)
        if first is None:
            return []
        path = f"{self._ledger.targets[number].rstrip('/')}/{first}"
        return [Tell({"type": "note", "text": say("engine.tree.foreign", count=count, path=path)})]

    @property
    def trees_left(self) -> dict[int, TreeSeen] | None:
        """What the engine saw in its trees, by target; None: nothing was done in any."""
        return self._trees if self._has_begun else None

    def asked_to_end(self, times: int, now_s: float) -> list[Instruction]:
        """Take note that the user has asked so often for the end; the engine knows already."""
        if times > 1:
            self._insisted = True
            return [Leave()]
        if times and not self._ledger.stopped:
            self._ledger.stopped = True
            self._watch.asked(now_s)
            return [Tell({"type": "stop"})]
        return []

    def paused(self, seconds: float) -> list[Instruction]:
        """Take note that all was stopped for so long by the user (Ctrl-Z), and goes on."""
        self._watch.paused(seconds)
        text = f"the run was stopped for {seconds:.1f} s (SIGTSTP) and went on: its figures have that gap"
        return [Tell({"type": "note", "text": text})]

    def ordered(self, *, stage: int | None = None, stream: int | None = None) -> list[Instruction]:
        """Take note that a part of the run was told to end."""
        if stream is not None:
            self._streams.ordered_streams.add(stream)
            return [Tell({"type": "order", "text": f"end-stream {stream}"})]
        if stage is not None:
            self._streams.ordered_stage = max(self._streams.ordered_stage, stage)
            return [Tell({"type": "order", "text": f"end-stage {stage}"})]
        return []

    def passed(self, now_s: float, state: str | None = None) -> list[Instruction]:
        """Take note of the time, and of the state letter of the engine's process where it is known."""
        act = self._watch.look(now_s)
        if act is WatchdogAction.NOTHING:
            return []
        if act is WatchdogAction.LEAVE:
            return [Leave()]
        waits = _waits(state)
        if act is WatchdogAction.WARN:
            return [Tell({"type": "silent", "text": f"the engine has sent nothing for a while{waits}"})]
        # After `end` a slow exit is the kernel's business and not a failure of the run.
        why = f"the engine stopped answering and was killed; what it had measured is kept{waits}"
        if self._watch.ended_s is None:
            self._killed = why
        self._watch.killed(now_s)
        return [Tell({"type": "kill", "why": why}), Kill()]

    def failed(self, error: LoadstoneError, now_s: float) -> list[Instruction]:
        """Take note of what makes it senseless to go on."""
        self._error = self._error or error
        self._watch.killed(now_s)
        return [Kill()]

    @property
    def is_over(self) -> bool:
        """Whether the engine has said that it is done with the run."""
        return self._watch.ended_s is not None

    def verdict(self, code: int | None, how: str | None = None) -> RunEnding | None:
        """Judge by the engine's exit code (None: it did not end); None when the user insisted on leaving."""
        if self._insisted:
            return None
        if self._error is not None:
            return RunEnding("failed", self._error.exit_code, self._error)
        ending = self._ledger.verdict(code, killed=self._killed, how=how)
        if ending.error is None and self._clocks is not None and not self._ledger.stopped:
            error = EngineError(self._clocks)
            return RunEnding("failed", error.exit_code, error)
        return ending

    def _compare_clocks(self, engine_s: float, now_s: float) -> None:
        """Hold the time the engine says it ran against what passed here since before it was started.

        Not since `start` was read: whoever reads late, on a busy host, would accuse the engine.
        """
        if not self._has_begun or self._virtual:
            return
        here_s = now_s - self._made_s
        if engine_s > here_s * 1.05 + CLOCK_SLACK_S:
            self._clocks = (
                f"the engine says it ran {engine_s:.1f} s, and {here_s:.1f} s passed here: a clock is wrong"
            )


def how_it_ended(
    code: int | None, before: exit_cause.Deaths, after: exit_cause.Deaths, cpu_s: float
) -> str | None:
    """Say what an exit code means, with what else is known."""
    if code is None:
        return None
    return exit_cause.of_exit(
        code, oom=after.since(before), cpu_s=cpu_s, cpu_limit_s=exit_cause.cpu_limit_s()
    )


def _waits(state: str | None) -> str:
    if state == "D":
        return say("engine.run.waits")
    if state in ("T", "t"):
        return say("engine.run.is_stopped")
    return ""
