"""Rule `clock_skew`: the hosts of a run did not load the storage at the same time.

Each host starts by its own clock at a time that was told in it. What lies between the first and the
last first I/O, the error of the clocks included, is time in which the load was not the one asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

MUCH: Final = 0.01
"""Of the measured time."""
TOO_MUCH: Final = 0.10


def _judge(case: Case) -> Answer:
    if len(case.hosts) < 2:
        return NotMine()
    known = [host for host in case.hosts if host.start_skew_ns is not None]
    if len(known) < len(case.hosts) or not case.seconds:
        return cannot_tell("audit.clock_skew.starts")
    spread_ns = max(host.start_skew_ns or 0 for host in known)
    error_ns = max(host.clock_error_ns or 0 for host in known)
    share = (spread_ns + error_ns) / 1e9 / case.seconds
    if share < MUCH:
        return Clear()
    last = max(known, key=lambda host: host.start_skew_ns or 0)
    return (
        Finding(
            effect="not_valid" if share >= TOO_MUCH else "suspect",
            confidence=0.9 if share >= TOO_MUCH else 0.6,
            text=say(
                "audit.clock_skew.apart.text",
                host=last.name,
                skew_ns=float(spread_ns),
                spread_share=share,
                limit_share=MUCH,
            ),
            evidence={
                "start_skew_ms": round(spread_ns / 1e6, 3),
                "clock_error_ms": round(error_ns / 1e6, 3),
                "spread_share": round(share, 4),
            },
            advice=say("audit.clock_skew.apart.advice"),
            layer="the hosts",
        ),
    )


RULE: Final = Rule(
    name="clock_skew",
    asks="Did all hosts start together?",
    basis="first I/O of each host on one clock, with the error of the clocks, against the measured time",
    judge=_judge,
    scope="all hosts",
)
