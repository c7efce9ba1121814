"""Rule `hosts_unequal`: hosts that were asked for the same did not do the same.

The total of unequal hosts depends on which of them were taken. Paced hosts, and hosts with other
jobs, are not compared.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

APART: Final = 0.20
"""Of the median, that a host may differ."""
ERRORS: Final = 3.0


def _judge(case: Case) -> Answer:
    if len(case.hosts) < 2 or any(host.paced for host in case.hosts):
        return NotMine()
    if len({host.jobs for host in case.hosts}) > 1:
        return NotMine()
    rates = {host.name: host.iops for host in case.hosts if host.iops is not None}
    if len(rates) < len(case.hosts):
        return cannot_tell("audit.hosts_unequal.rates")
    middle = statistics.median(rate.value for rate in rates.values())
    name, worst = max(rates.items(), key=lambda one: abs(one[1].value - middle))
    off = abs(worst.value - middle)
    if not middle or off < APART * middle or off < ERRORS * (worst.error or 0.0):
        return Clear()
    return (
        Finding(
            effect="suspect",
            confidence=0.7,
            text=say(
                "audit.hosts_unequal.apart.text",
                host=name,
                rate_iops=worst.value,
                median_iops=middle,
                limit_share=APART,
            ),
            evidence={
                "slowest_iops": round(min(rate.value for rate in rates.values()), 1),
                "median_iops": round(middle, 1),
                "fastest_iops": round(max(rate.value for rate in rates.values()), 1),
            },
            advice=say("audit.hosts_unequal.apart.advice", host=name),
            layer="the hosts",
        ),
    )


RULE: Final = Rule(
    name="hosts_unequal",
    asks="Did hosts with the same load do the same?",
    basis="each host's rate against the median, beyond 20 % and three standard errors",
    judge=_judge,
    scope="all hosts",
)
