"""The loads at the end of a latency curve that storage could not keep up with: expected there, and no figure.

Knows why a load is out of every figure. One that asked for more than the storage does, and for nothing
else is not valid, says where the curve ends, and nothing against the loads before it. Reads no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.analysis.study.curve import PURPOSE, RATE, RATE_IOPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.comparison.phase import ComparedPhase

LEAST_PERCENT: Final = 70.0
"""Of its maximum: storage that cannot keep up with less has another fault, and latency is read there."""
LEAST_VALID: Final = 2
"""Loads before the end, without which there is no curve."""


def beyond_saturation(phases: Sequence[ComparedPhase]) -> list[ComparedPhase]:
    """Return the loads that asked for more than the storage does, at the ends of their curves."""
    curves: dict[tuple[object, ...], list[ComparedPhase]] = {}
    for phase in phases:
        if phase.on_a_curve:
            others = {
                name: of for name, of in phase.factors.items() if name not in {RATE, RATE_IOPS, PURPOSE}
            }
            key = (phase.path.parent, phase.pattern, phase.names, *sorted(map(str, others.items())))
            curves.setdefault(key, []).append(phase)
    return [phase for curve in curves.values() for phase in _of_curve(curve)]


def _of_curve(curve: Sequence[ComparedPhase]) -> Iterator[ComparedPhase]:
    maxima = [phase for phase in curve if phase.is_a_maximum]
    kept_up = [_percent(phase) for phase in curve if phase.valid and not phase.is_a_maximum]
    if len(set(kept_up)) < LEAST_VALID or not all(phase.valid for phase in maxima):
        return
    least = max(LEAST_PERCENT, *kept_up)
    yield from (phase for phase in curve if _only_too_much(phase) and _percent(phase) >= least)


def _percent(phase: ComparedPhase) -> float:
    rate = phase.factors.get(RATE)
    return float(rate) if isinstance(rate, int | float) else 0.0


def _only_too_much(phase: ComparedPhase) -> bool:
    """Tell whether a load is not valid because its rate was not reached, and for no other reason."""
    reasons = {cause.rule for cause in phase.verdict.causes if cause.effect == "not_valid"}
    return not phase.valid and reasons == {"rate_not_reached"}
