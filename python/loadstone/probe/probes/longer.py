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
    # A quarter is known half as well as the whole; a level on its side of a step has its own error.
    errors = (2 * turn.log_error, 2 * turn.log_error)
    if turn.fell is not None:
        first, last = turn.fell.before, turn.fell.after
        errors = (turn.fell.error_before, turn.fell.error_after)
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
            error=math.hypot(*errors),
            count=turn.count // 4,
        ),
        ProbeReading(
            name="longer.main",
            value=math.log(last / base.main.rate),
            error=math.hypot(errors[1], base.main.log_error),
            count=turn.count // 4,
        ),
    ]


PROBE = Probe("longer", ("longer.drop", "longer.main", "longer.dips"), _turns, _read)
