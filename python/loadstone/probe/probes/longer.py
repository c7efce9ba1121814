"""The run as it was, for longer: what is left when caches are full and credits used up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.explanations.readings import ProbeReading
from loadstone.probe.arms import ArmPlan, Turns
from loadstone.probe.probe import Probe

if TYPE_CHECKING:
    from loadstone.probe.base import Base
    from loadstone.probe.probe import Measured

SHARE: Final = 0.4
"""Of the budget."""


def _turns(base: Base) -> Turns | str:
    return Turns((ArmPlan("longer"),), SHARE * base.budget_s)


def _read(measured: Measured, base: Base) -> list[ProbeReading]:
    arm = measured.arm("longer")
    if arm is None:
        return []
    turn = arm.turns[0]
    first, last = turn.quarters
    if first <= 0 or last <= 0:
        return []
    error = 2 * turn.log_error
    dips = (
        []
        if turn.dips is None
        else [ProbeReading(name="longer.dips", value=math.log(turn.dips), error=0.3, count=turn.count)]
    )
    return [
        *dips,
        ProbeReading(
            name="longer.drop",
            value=math.log(last / first),
            error=math.sqrt(2) * error,
            count=turn.count // 4,
        ),
        ProbeReading(
            name="longer.main",
            value=math.log(last / base.main.rate),
            error=math.hypot(error, base.main.log_error),
            count=turn.count // 4,
        ),
    ]


PROBE = Probe("longer", "the same for longer", ("longer.drop", "longer.main", "longer.dips"), _turns, _read)
