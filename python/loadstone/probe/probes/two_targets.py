"""Two targets, each alone and both together."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from loadstone.explanations.readings import ProbeReading
from loadstone.messages import say
from loadstone.probe.arms import ArmPlan, Turns, interleaved
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.plan.model import Stream
    from loadstone.probe.base import Base
    from loadstone.probe.probe import Measured


def _turns(base: Base) -> Turns | str:
    if len(base.targets) < 2:
        return say("probe.not_offered.one_target")
    one, other = base.targets[:2]

    def uses(stream: Stream, targets: frozenset[int]) -> bool:
        return any(use.target in targets for use in stream.files)

    def only(stream: Stream, targets: frozenset[int]) -> Stream:
        files = tuple(use for use in stream.files if use.target in targets)
        return stream.model_copy(update={"files": files})

    def arm(name: str, *targets: int) -> ArmPlan:
        numbers = frozenset(targets)

        return ArmPlan(name, partial(only, targets=numbers), partial(uses, targets=numbers))

    return interleaved(base, arm("one", one), arm("other", other), arm("both", one, other))


def _read(measured: Measured, _: Base) -> list[ProbeReading]:
    one, other, both = (measured.arm(name) for name in ("one", "other", "both"))
    if one is None or other is None or both is None:
        return []
    whole = math.exp(one.log_rate) + math.exp(other.log_rate)
    return [
        ProbeReading(
            name="together.sum",
            value=both.log_rate - math.log(whole),
            error=math.hypot(both.error, one.error / 2, other.error / 2),
            count=min(one.count, other.count, both.count),
        )
    ]


PROBE = Probe("two_targets", ("together.sum",), _turns, _read, of_the_job=True)
