"""Did the engine do all that was planned: what each stream says it did, against the Plan.

Pure. Knows which reasons explain a stream that ended before its time. Does not know who sent an
order, only which orders this program gave.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.plan.model import Plan, Stream

MAX_NAMED: Final = 5
SLACK: Final = 0.01
SLACK_NS: Final = 20_000_000
"""A stream may end so much before its time: clocks are calibrated to less, and cuts are rounded."""


@dataclass
class PlannedStreams:
    """What was heard of the streams of a Plan, and which of them were told to end."""

    plan: Plan
    ended: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    ordered_streams: set[int] = field(default_factory=set)
    ordered_stage: int = -1
    """This stage and those before it were told to end."""

    def heard(self, event: Mapping[str, Any]) -> None:
        """Take note of a `stream_end`."""
        number = event.get("stream")
        if isinstance(number, int):
            self.ended[number] = event

    def missing(self) -> list[str]:
        """Say what the streams left undone for no known reason, a line each; for an engine that is `done`."""
        lines = [
            line for number, stream in enumerate(self.plan.streams) if (line := self._short(number, stream))
        ]
        if len(lines) > MAX_NAMED:
            lines = [*lines[:MAX_NAMED], say("engine.run.more_lines", more=len(lines) - MAX_NAMED)]
        return lines

    def _short(self, number: int, stream: Stream) -> str | None:
        end = self.ended.get(number)
        if end is None:
            return say("engine.stream.no_end", number=number, name=stream.name)
        reason = end.get("reason")
        if reason == "stopped" and not self._may_stop(number, stream):
            return say("engine.stream.stopped", number=number, name=stream.name)
        if reason == "runtime" and stream.limits.runtime_ns:
            planned_ns = stream.limits.ramp_ns + stream.limits.runtime_ns
            ran_ns = int(end.get("ended_ns") or 0) - int(end.get("started_ns") or 0)
            if ran_ns < planned_ns * (1 - SLACK) - SLACK_NS:
                return say(
                    "engine.stream.short",
                    number=number,
                    name=stream.name,
                    ran_ns=ran_ns,
                    planned_ns=planned_ns,
                )
        return None

    def _may_stop(self, number: int, stream: Stream) -> bool:
        stage = self.plan.workers[stream.worker].stage
        if number in self.ordered_streams or stage <= self.ordered_stage:
            return True
        if any(number in rule.streams for rule in self.plan.steady):
            return True
        beside = (other for other in self.plan.streams if self.plan.workers[other.worker].stage == stage)
        return any(other.limits.ends_stage or other.limits.ends_stage_on_error for other in beside)
