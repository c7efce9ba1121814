"""One I/O in flight, alone: what the path takes for one, and how even the rate is beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.explanations.readings import ProbeReading
from loadstone.probe import changes
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.figures import Arm
    from loadstone.probe.probe import Measured

LEAST_CV: Final = 0.15
"""Latencies more even than this make any rate even."""


def _turns(base: Base) -> Turns | str:
    first = base.streams[0].name
    if len(base.streams) == 1 and base.depth == 1:
        return "it has one I/O in flight already"

    def alone(stream: Stream) -> bool:
        return stream.name.endswith(first)

    return interleaved(base, ArmPlan("as_run"), ArmPlan("one", changes.one_at_a_time, alone))


def _read(measured: Measured, base: Base) -> list[ProbeReading]:
    as_run, one = measured.arm("as_run"), measured.arm("one")
    if as_run is None or one is None:
        return []
    whole = sum(stream.iodepth for stream in base.streams)
    scale = math.log(max(2, whole))
    found = [
        ProbeReading(
            name="one.scaling",
            value=(as_run.log_rate - one.log_rate) / scale,
            error=math.hypot(as_run.error, one.error) / scale,
            count=min(as_run.count, one.count),
        )
    ]
    return found + _evenness(as_run, one)


def _evenness(as_run: Arm, one: Arm) -> list[ProbeReading]:
    cv = max(turn.cv for turn in one.turns)
    told = [
        (turn.window_cv, turn.window_count, turn.count)
        for turn in as_run.turns
        if turn.window_cv is not None and turn.window_count >= 4
    ]
    if not told or cv < LEAST_CV or one.count < 30:
        return []
    values = [math.log(max(window_cv, 0.5 / count) * math.sqrt(count) / cv) for window_cv, count, _ in told]
    # The deviation of a deviation of n windows is 1 / sqrt(2 n).
    error = math.hypot(1 / math.sqrt(2 * 14 * len(values)), 0.5 / math.sqrt(one.count))
    return [
        ProbeReading(
            name="one.evenness",
            value=sum(values) / len(values),
            error=error,
            count=sum(count for _, _, count in told),
        )
    ]


PROBE = Probe("depth_one", "one I/O in flight, alone", ("one.scaling", "one.evenness"), _turns, _read)
