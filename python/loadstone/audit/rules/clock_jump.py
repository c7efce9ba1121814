"""Rule `clock_jump`: time itself went wrong while the run was on.

Rates are by the monotonic clock, which a step of the wall clock does not touch; a host that slept
did not measure what it seems to have measured.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from loadstone.audit import monitor_readings
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say
from loadstone.verdict import Chart

if TYPE_CHECKING:
    from loadstone.audit.case import Case

JUMP_NS: Final = 10_000_000.0
"""A clock that is slewed moves at most 0.5 ms in a second (adjtimex(2))."""
SLEPT_NS: Final = 1_000_000.0


def _judge(case: Case) -> Answer:
    if case.source != "bundle":
        return NotMine()
    offsets = monitor_readings.levels(case.host, "clock.offset_ns")
    if not offsets:
        return cannot_tell("audit.clock_jump.clocks")
    jumps = [_slept(case), _jumped(case, offsets)]
    findings = tuple(one for one in jumps if one is not None)
    return findings or Clear()


def _slept(case: Case) -> Finding | None:
    slept = monitor_readings.levels(case.host, "clock.suspended_ns")
    if not slept or max(slept) - min(slept) < SLEPT_NS:
        return None
    return Finding(
        effect="not_valid",
        confidence=0.95,
        text=say("audit.clock_jump.slept.text", suspended_s=(max(slept) - min(slept)) / 1e9),
        evidence={"suspended_s": round((max(slept) - min(slept)) / 1e9, 3)},
        advice=say("audit.clock_jump.slept.advice"),
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
        text=say(
            "audit.clock_jump.jumped.text",
            direction="forward" if worst[0] > 0 else "back",
            jump_ns=abs(worst[0]),
        ),
        evidence={"jump_ms": round(worst[0] / 1e6, 3)},
        advice=say("audit.clock_jump.jumped.advice"),
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


RULE: Final = Rule(
    name="clock_jump",
    asks="Did time run evenly?",
    basis="CLOCK_REALTIME and CLOCK_BOOTTIME against CLOCK_MONOTONIC once a second",
    judge=_judge,
)
