"""One I/O in flight, alone, and depths up to the run's: what the path takes, and how the rate gains."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from loadstone.explanations.readings import ProbeReading
from loadstone.messages import say
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.figures import Arm
    from loadstone.probe.probe import Measured

BETWEEN: Final = (0.4, 0.7)
BETWEEN_SHARE: Final = 0.5
DEEP: Final = 8
ALONE: Final = 0.85
"""Of the depth: with such a gain nothing waits, and there is no knee."""
LEAST_CV: Final = 0.15
"""Latencies more even than this make any rate even."""


def _turns(base: Base) -> Turns | str:
    first = base.streams[0].name
    if len(base.streams) == 1 and base.depth == 1:
        return say("probe.not_offered.depth_one")

    def alone(stream: Stream) -> bool:
        return stream.name.endswith(first)

    between = [
        ArmPlan(f"depth-{depth}", partial(variant.depth, times=depth / _whole(base)), share=BETWEEN_SHARE)
        for depth in depths_between(_whole(base))
    ]
    return interleaved(base, ArmPlan("as_run"), ArmPlan("one", variant.one_at_a_time, alone), *between)


def depths_between(whole: int) -> list[int]:
    """Return depths between 1 and the depth as run, about a factor of four apart."""
    if whole < DEEP:
        return []
    return sorted({2, *(round(whole**power) for power in BETWEEN)} - {1, whole})


def _whole(base: Base) -> int:
    return sum(stream.iodepth for stream in base.streams)


def _read(measured: Measured, base: Base) -> list[ProbeReading]:
    as_run, one = measured.arm("as_run"), measured.arm("one")
    if as_run is None or one is None:
        return []
    whole = _whole(base)
    scale = math.log(max(2, whole))
    scaling = [
        ProbeReading(
            name="one.scaling",
            value=(as_run.log_rate - one.log_rate) / scale,
            error=math.hypot(as_run.error, one.error) / scale,
            count=min(as_run.count, one.count),
        )
    ]
    return scaling + _evenness(as_run, one) + _knee(measured, base, as_run, one)


def _knee(measured: Measured, base: Base, as_run: Arm, one: Arm) -> list[ProbeReading]:
    """Return how much faster it is at a depth between than parts would be that are hit by chance.

    n parts (dies, disks) that are hit by chance do k n / (k + n - 1) at once of k outstanding (exact for
    exponential service, Buzen 1973); n follows from the two ends. A limit leaves that curve below it as it
    is: there it is steeper.
    """
    whole = _whole(base)
    gain = math.exp(as_run.log_rate - one.log_rate)
    if gain >= ALONE * whole or gain <= 1 / ALONE:
        return []
    parts = gain * (whole - 1) / (whole - gain)
    near = min(depths_between(whole), key=lambda depth: abs(math.log(depth / gain)), default=None)
    arm = measured.arm(f"depth-{near}")
    if near is None or arm is None:
        return []
    depth = sum(variant.depth(stream, near / whole).iodepth for stream in base.streams)
    expected = one.log_rate + math.log(depth * parts / (depth + parts - 1))
    return [
        ProbeReading(
            name="one.knee",
            value=arm.log_rate - expected,
            error=math.hypot(arm.error, (one.error + as_run.error) / 2),
            count=min(arm.count, one.count),
        )
    ]


def _evenness(as_run: Arm, one: Arm) -> list[ProbeReading]:
    cv = max(turn.cv for turn in one.turns)
    windows = [
        (turn.window_cv, turn.window_count, turn.count)
        for turn in as_run.turns
        if turn.window_cv is not None and turn.window_count >= 4
    ]
    if not windows or cv < LEAST_CV or one.count < 30:
        return []
    values = [
        math.log(max(window_cv, 0.5 / count) * math.sqrt(count) / cv) for window_cv, count, _ in windows
    ]
    # The deviation of a deviation of n windows is 1 / sqrt(2 n).
    error = math.hypot(1 / math.sqrt(2 * 14 * len(values)), 0.5 / math.sqrt(one.count))
    return [
        ProbeReading(
            name="one.evenness",
            value=sum(values) / len(values),
            error=error,
            count=sum(count for _, _, count in windows),
        )
    ]


PROBE = Probe(
    "depth_one",
    ("one.scaling", "one.evenness", "one.knee"),
    _turns,
    _read,
)
