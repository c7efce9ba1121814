"""What the events of one run add up to.

Pure: events in, a verdict out. Knows the meaning of the engine's events and exit codes.
Does not know rates or latencies; those come from the samples.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone import exit_cause, exitcodes
from loadstone.errors import EngineError, InputError, LoadstoneError, RunError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.engine.completeness import PlannedStreams

Status = Literal["complete", "interrupted", "failed"]

FATAL: Final = {2: InputError, 3: RunError, 4: EngineError}
"""The engine's exit codes: the Plan is not acceptable, a target cannot be prepared, it broke."""
MAX_PROBLEMS: Final = 20
_OF_SOMEBODY: Final = (errno.ESTALE, errno.EMLINK)
"""Another file stands at the name: which one is what the user must know, and the engine says it."""


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended. `error` is what to tell the user when it did not go well."""

    status: Status
    exit_code: int
    error: LoadstoneError | None = None


@dataclass
class EventSummary:
    """Adds up events; `targets` are the Plan's paths, for messages."""

    targets: Sequence[str]
    streams: PlannedStreams | None = None
    """What each stream should have done; None: it is not asked."""
    failed_ios: int = 0
    damaged_blocks: int = 0
    stopped: bool = False
    ended: str | None = None
    ended_ns: int = 0
    signal: dict[str, Any] | None = None
    """The engine was asked to end by somebody else."""
    fatal: dict[str, Any] | None = None
    talk: list[str] = field(default_factory=list)
    _problems: dict[tuple[object, ...], str] = field(default_factory=dict)
    _worker_is_late: bool = False
    """The engine gave up waiting for the thread of a stream."""

    def heard(self, event: dict[str, Any]) -> None:
        """Take note of one event; types that say nothing about success are passed over."""
        match event.get("type"):
            case "io_error":
                self._io_error(event)
            case "hung":
                self._hung(event)
            case "damage":
                self._damage(event)
            case "verified":
                self.damaged_blocks = sum((event.get("found") or {}).values())
            case "stream_end":
                self._stream_end(event)
            case "signal":
                self.signal = event
            case "end":
                self.ended = str(event.get("reason"))
                self.ended_ns = int(event.get("t_ns") or 0)
            case "fatal":
                self.fatal = event
            case "talk":
                self.talk = [*self.talk[-9:], str(event.get("text"))]

    def verdict(self, code: int | None, *, killed: str | None = None, how: str | None = None) -> RunEnding:
        """Judge, given the engine's exit code (`None`: it never ended).

        `killed` says why the coordinator killed it, if it did; `how` says what `code` means. An
        interrupt asked for by the user wins over failed I/Os: the run is `interrupted`, and the
        problems are still told.
        """
        error = self._error(code, killed, how)
        if self.stopped:
            return RunEnding("interrupted", exitcodes.INTERRUPTED, error)
        if error is None:
            return RunEnding("complete", exitcodes.DONE)
        return RunEnding("failed", error.exit_code, error)

    def _cut_short(self) -> str | None:
        """Say who ended the run before its time, where it was not us; None when nobody did."""
        if self.signal is not None:
            who = exit_cause.of_signal(self.signal)
            return say("engine.run.ended_early", cause=who, length_s=self.ended_ns / 1e9)
        if self.stopped:
            return None
        if self.ended == "stopped":
            return say("engine.run.stopped", length_s=self.ended_ns / 1e9)
        missing = self.streams.missing() if self.streams is not None and self.ended == "done" else []
        return "\n  ".join([say("engine.run.not_all"), *missing]) if missing else None

    @property
    def problems(self) -> list[str]:
        """One line per kind of failure, in the order they were met."""
        # One file opened in several ways is several targets.
        lines = list(dict.fromkeys(self._problems.values()))
        if len(lines) > MAX_PROBLEMS:
            lines = [*lines[:MAX_PROBLEMS], say("engine.run.more_lines", more=len(lines) - MAX_PROBLEMS)]
        return lines

    def _error(self, code: int | None, killed: str | None, how: str | None) -> LoadstoneError | None:
        if self.fatal is not None:
            kind = FATAL.get(int(self.fatal.get("code") or 0), EngineError)
            return kind(str(self.fatal.get("message")), hint=self.fatal.get("hint") or None)
        early = killed or (self._death(code, how) if self.ended is None else self._cut_short())
        if early is not None:
            return EngineError(self._listing(early))
        if self.failed_ios or self._problems:
            return RunError(self._listing(self._failures()))
        if self.ended == "failed":
            return make_error(RunError, "engine.run.late" if self._worker_is_late else "engine.run.failed")
        return None

    def _death(self, code: int | None, how: str | None) -> str:
        if self.signal is not None:
            how = exit_cause.of_signal(self.signal)
        elif code is None:
            how = "did not end"
        elif how is None:
            how = exit_cause.of_exit(code, oom=None, cpu_s=0.0, cpu_limit_s=None)
        heard = "".join(f"\n  it said: {line}" for line in self.talk)
        return say("engine.run.died", cause=how, heard=heard)

    def _failures(self) -> str:
        if self.damaged_blocks:
            return say("engine.run.damaged", blocks=self.damaged_blocks)
        if self.failed_ios:
            return say("engine.run.failed_ios", failed=self.failed_ios)
        return say("engine.run.differed")

    def _listing(self, headline: str) -> str:
        return "\n  ".join([headline, *self.problems])

    def _io_error(self, event: dict[str, Any]) -> None:
        number = int(event.get("errno") or 0)
        key = ("io", event.get("target"), event.get("op"), number)
        if key in self._problems:
            return
        if number in _OF_SOMEBODY and event.get("message"):
            self._problems[key] = str(event["message"])
            return
        if number:
            reason = f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
        else:
            reason = say("engine.run.moved", moved=str(event.get("moved")))
        self._problems[key] = f"{self._place(event)}: {reason}"

    def _hung(self, event: dict[str, Any]) -> None:
        seconds = int(event.get("age_ns") or 0) / 1e9
        key = ("hung", event.get("target"), event.get("op"))
        self._problems.setdefault(
            key, say("engine.run.hung", place=self._place(event), waited=f"{seconds:.1f}")
        )

    def _damage(self, event: dict[str, Any]) -> None:
        place = self._place({**event, "op": str(event.get("kind")).replace("_", " ")})
        key = ("damage", event.get("target"), event.get("kind"))
        self._problems.setdefault(key, f"{place}: {event.get('message')}")

    def _stream_end(self, event: dict[str, Any]) -> None:
        if self.streams is not None:
            self.streams.heard(event)
        self.failed_ios += sum(event.get("failed") or [])
        self._worker_is_late |= event.get("reason") == "hung"
        if event.get("reason") == "rate_minimum":
            key = ("rate", event.get("stream"))
            self._problems[key] = f"stream {event.get('stream')}: fell below the rate it must keep"
        elif event.get("reason") == "latency":
            key = ("latency", event.get("stream"))
            self._problems[key] = f"stream {event.get('stream')}: an I/O took longer than it may"

    def _place(self, event: dict[str, Any]) -> str:
        target, op = event.get("target"), event.get("op")
        known = isinstance(target, int) and target < len(self.targets)
        name = self.targets[target] if known else f"target {target}"  # type: ignore[index] # `known` is the check
        return say(
            "engine.run.place", target=name, op=op, size=event.get("bytes"), offset=event.get("offset")
        )
