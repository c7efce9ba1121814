"""Rule `generator_stopped`: the load generator itself stood still while the storage waited for it.

The engine wakes up a hundred times a second; a wake-up that came more than 0.1 s too late, while
no I/O ended, is a stop: a signal (SIGSTOP, a debugger), a frozen virtual machine, a host that had
something else to run. What was in flight waited for the engine. The intervals that a stop reaches
into are in no figure, unless that would be most of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import beside_others, monitor_readings
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

MUCH: Final = 0.1
"""A part of the time that changes what a rate means, though the stops themselves are in no figure."""
STOLEN: Final = 0.2
"""The part of the CPUs' time used by others that explains a stop."""


def _judge(case: Case) -> Answer:
    if case.source != "bundle":
        return NotMine()
    if not case.stops:
        return Clear()
    stopped_ns = sum(end - begin for begin, end in case.stops)
    longest_ns = max(end - begin for begin, end in case.stops)
    share = stopped_ns / 1e9 / (case.seconds + stopped_ns / 1e9) if case.seconds else 0.0
    kept_out = case.stops_left_out
    stolen = _stolen(case)
    sentences = [
        say(
            "audit.generator_stopped.stops.text",
            stops=len(case.stops),
            stopped_ns=stopped_ns,
            longest_ns=longest_ns,
            first_s=case.stops[0][0] / 1e9,
        ),
        say("audit.generator_stopped.left_out.text" if kept_out else "audit.generator_stopped.counted.text"),
    ]
    if stolen > STOLEN:
        sentences.append(say("audit.generator_stopped.stolen.text", steal_share=stolen, limit_share=STOLEN))
    findings = (
        Finding(
            effect="suspect" if kept_out else "not_valid",
            confidence=0.9 if share > MUCH or not kept_out else 0.8,
            text=" ".join(sentences),
            evidence={
                "stops": len(case.stops),
                "stopped_ns": stopped_ns,
                "longest_ns": longest_ns,
                "first_at_s": round(case.stops[0][0] / 1e9, 2),
                "stopped_share": round(share, 4),
                "left_out": "yes" if kept_out else "no",
            },
            advice=say("audit.generator_stopped.stops.advice"),
            layer="the load generator",
        ),
    )
    # What is in no figure, and no longer than a turn of the CPUs' others, is no reason to doubt the figures.
    by_others = kept_out and share <= MUCH and beside_others.can_stop(case, longest_ns, share)
    return tuple(beside_others.told(case, one) for one in findings) if by_others else findings


def _stolen(case: Case) -> float:
    whole = monitor_readings.seconds(case.host) * 1e9 * (case.host_cpus or 1)
    stolen = monitor_readings.total(case.host, "cpu.all.steal_ns")
    return stolen / whole if whole and stolen else 0.0


RULE: Final = Rule(
    name="generator_stopped",
    asks="Did the load generator run all the time?",
    basis="wake-ups of the engine more than 0.1 s late, and the I/Os that ended meanwhile",
    judge=_judge,
)
