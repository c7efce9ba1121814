"""Which results are one measurement: a copy, or a run that was printed in two forms.

Knows what two forms of one run have in common, and what two runs of one device do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from loadstone.analysis.latency import Latency
    from loadstone.comparison.phase import ComparedPhase

PRINTED: Final = 5e-3
"""Figures of one run in two forms differ by at most so much."""
ROUNDED_BLOCKS: Final = 0.1
"""Of a block size that follows from two rates, each of which was rounded."""


class Measurements:
    """Phases by the I/Os they counted, so that each new one is held against few of those before."""

    def __init__(self, phases: Iterable[ComparedPhase] = ()) -> None:
        self._by_count: dict[Hashable, list[ComparedPhase]] = {}
        self.add(phases)

    def add(self, phases: Iterable[ComparedPhase]) -> None:
        """Keep phases for those that come later."""
        for phase in phases:
            self._by_count.setdefault(_counted(phase), []).append(phase)

    def first_same(self, phase: ComparedPhase) -> ComparedPhase | None:
        """Return the first one that is the same measurement."""
        known = self._by_count.get(_counted(phase), ())
        return next((one for one in known if is_the_same_measurement(one, phase)), None)


def _counted(phase: ComparedPhase) -> Hashable:
    return frozenset((op, done.operations) for op, done in phase.case.ops.items() if done.operations)


def is_the_same_measurement(one: ComparedPhase, other: ComparedPhase) -> bool:
    """Tell a copy, or one run that was printed in two forms: the same I/Os took the same time.

    Forms round what they print; two files of one form have the same digits. A device with a limit
    completes as many I/Os in every run, and in as long: the shortest I/O tells those apart.
    """
    digits = 0.0 if one.path.suffix == other.path.suffix else PRINTED
    counted = _counted(one)
    return (
        bool(counted)
        and counted == _counted(other)
        and (
            one.block_bytes is None
            or other.block_bytes is None
            or _near(one.block_bytes, other.block_bytes, ROUNDED_BLOCKS)
        )
        and _near(one.case.seconds, other.case.seconds, digits)
        and all(
            _as_long(done.latency, other.case.ops[op].latency, digits)
            for op, done in one.case.ops.items()
            if done.operations
        )
    )


def _as_long(one: Latency | None, other: Latency | None, digits: float) -> bool:
    """Tell whether latencies are the same, the largest of which is printed with the fewest digits."""
    return (
        one is not None
        and other is not None
        and _near(one.mean_ns, other.mean_ns, digits)
        and _near(one.max_ns, other.max_ns, 10 * digits)
        and _near_as_printed(one.min_ns, other.min_ns, 10 * digits)
    )


def _near_as_printed(one: float | None, other: float | None, digits: float) -> bool:
    """Tell whether two may be one time; a short one may be printed in whole micro- or milliseconds."""
    if one is None or other is None:
        return True
    step = max(_step_ns(one), _step_ns(other)) if digits else 0.0
    return _near(one, other, digits) or abs(one - other) <= step


def _step_ns(of: float) -> float:
    return next((step for step in (1e6, 1e3) if of % step == 0), 0.0)


def _near(one: float | None, other: float | None, digits: float) -> bool:
    return one is not None and other is not None and abs(one - other) <= digits * abs(one)
