"""Rule `clock_jump`: time itself went wrong while the run was on.

Rates are by the monotonic clock, which a step of the wall clock does not touch; a host that slept,
or whose processor was taken away by its own host, did not measure what it seems to have measured.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import watched
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule
from loadstone.verdict import Chart

if TYPE_CHECKING:
    from loadstone.audit.case import Case

JUMP_NS: Final = 10_000_000.0
"""A clock that is slewed moves at most 0.5 ms in a second (adjtimex(2))."""
SLEPT_NS: Final = 1_000_000.0
STOLEN: Final = 0.01
MUCH_STOLEN: Final = 0.05


def _judge(case: Case) -> Answer:
    if case.source != "bundle":
        return NotMine()
    offsets = watched.levels(case.host, "clock.offset_ns")
    stolen = _stolen(case)
    if not offsets and stolen is None:
        return CannotTell("how the clocks of the host ran")
    found = [_slept(case), _jumped(case, offsets), _taken(stolen)]
    told = tuple(one for one in found if one is not None)
    return told or Clear()


def _slept(case: Case) -> Finding | None:
    slept = watched.levels(case.host, "clock.suspended_ns")
    if not slept or max(slept) - min(slept) < SLEPT_NS:
        return None
    return Finding(
        effect="not_valid",
        confidence=0.95,
        text=f"The host slept for {units.seconds((max(slept) - min(slept)) / 1e9)} during the run.",
        evidence={"suspended_s": round((max(slept) - min(slept)) / 1e9, 3)},
        advice="keep the host awake and measure again",
        layer="clock",
    )


def _jumped(case: Case, offsets: list[float]) -> Finding | None:
    jumps = [(after - before, at) for at, (before, after) in enumerate(itertools.pairwise(offsets), 1)]
    worst = max(jumps, key=lambda one: abs(one[0]), default=(0.0, 0))
    if abs(worst[0]) < JUMP_NS:
        return None
    return Finding(
        effect="suspect",
        confidence=0.9,
        text=f"The wall clock jumped by {units.duration(abs(worst[0]))} "
        f"{'forward' if worst[0] > 0 else 'back'} during the run: times in other hosts' logs do not fit.",
        evidence={"jump_ms": round(worst[0] / 1e6, 3)},
        advice="let time synchronisation settle before measuring",
        layer="clock",
        chart=_chart(case, offsets),
    )


def _chart(case: Case, offsets: list[float]) -> Chart | None:
    if case.host is None or len(offsets) < 3:
        return None
    times = [float(t) / 1e9 for t in case.host["t_ns"].to_list()]
    if len(times) != len(offsets):
        return None
    points = tuple((round(t, 3), offset / 1e6) for t, offset in zip(times, offsets, strict=True))
    return Chart(title="wall clock against monotonic clock", x="s of the run", y="ms", points=points)


def _stolen(case: Case) -> float | None:
    """Return the part of all processors' time that the host's own host took."""
    columns = case.host.columns if case.host is not None else []
    every = [name for name in columns if name.startswith("cpu.all.") and name.endswith("_ns")]
    whole = watched.total(case.host, *every)
    taken = watched.total(case.host, "cpu.all.steal_ns")
    return None if not whole or taken is None else taken / whole


def _taken(share: float | None) -> Finding | None:
    if share is None or share < STOLEN:
        return None
    much = share >= MUCH_STOLEN
    return Finding(
        effect="suspect" if much else "note",
        confidence=0.8 if much else 0.6,
        text=f"{100 * share:.1f} % of the processors' time was taken by the host of this guest.",
        evidence={"steal_share": round(share, 4)},
        advice="measure on a host of its own, or with processors reserved for the guest",
        layer="virtual machine",
    )


RULE: Final = Rule(
    name="clock_jump",
    asks="Did time run evenly?",
    basis="CLOCK_REALTIME and CLOCK_BOOTTIME against CLOCK_MONOTONIC once a second; steal time above 1 %",
    judge=_judge,
)
