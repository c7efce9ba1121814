"""Ten reads per second on a device that has nothing else to do: what stops it then is not this load."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.explanations.readings import ProbeReading
from loadstone.plan.model import Pace, Rate, RateAmountOps, RateProcess
from loadstone.probe import variant
from loadstone.probe.arms import ArmPlan, Turns
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.probe import Measured

HZ: Final = 10.0
SHORTEST_S: Final = 3.0
SHARE: Final = 0.25
"""Of the budget, where that is longer."""


def _turns(base: Base) -> Turns | str:
    seconds = max(SHORTEST_S, SHARE * base.budget_s)
    first = base.streams[0].name
    rate = Rate(
        amount=RateAmountOps(per_second=HZ),
        process=RateProcess.LINEAR,
        profile=(),
        phase=0.0,
        minimum=0.0,
        min_window_ns=1_000_000_000,
    )

    def beat(stream: Stream) -> Stream:
        changed = variant.one_at_a_time(variant.only_reads(stream))
        return changed.model_copy(update={"pace": Pace(read=rate, write=None, trim=None, think=None)})

    def alone(stream: Stream) -> bool:
        return stream.name.endswith(first)

    return Turns((ArmPlan("beat", beat, alone),), seconds)


def _read(measured: Measured, _: Base) -> list[ProbeReading]:
    beat = measured.arm("beat")
    if beat is None or beat.count < 10:
        return []
    worst, mean = max(turn.max_ns for turn in beat.turns), beat.mean_ns
    rest = (mean * beat.count - worst) / (beat.count - 1)
    return [
        ProbeReading(
            name="heartbeat.worst",
            value=math.log(max(1.0, worst / max(rest, 1.0))),
            error=beat.turns[0].cv / math.sqrt(beat.count),
            count=beat.count,
        )
    ]


PROBE = Probe("heartbeat", ("heartbeat.worst",), _turns, _read)
