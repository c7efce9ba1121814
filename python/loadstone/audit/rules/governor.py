"""Rule `governor`: the clock of the load generator's CPUs was held down or moved.

At low depth a latency is mostly CPU time of the host, and that is as long as its clock is slow.
Guests do not see the clock of their host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, monitor_readings
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

SLOW: Final = 0.85
NOW: Final = re.compile(r"frequency\.(\w+)\.now_hz")


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case):
        return NotMine()
    governors = (case.environment or {}).get("host", {}).get("cpu", {}).get("governors")
    share = _mean_share(case)
    if not governors and share is None:
        return cannot_tell("audit.governor.clock")
    if set(governors or ()) <= {"performance"} and (share is None or share >= SLOW):
        return Clear()
    names = ", ".join(governors or ["not told"])
    slow = share is not None and share < SLOW
    if share is None:
        text = say("audit.governor.named.text", governor=names)
    elif slow:
        text = say("audit.governor.slow.text", governor=names, clock_share=share, limit_share=SLOW)
    else:
        text = say("audit.governor.clocked.text", governor=names, clock_share=share)
    evidence: dict[str, float | int | str] = {"governor": names}
    if share is not None:
        evidence["clock_of_limit_share"] = round(share, 3)
    return (
        Finding(
            effect="suspect" if slow else "note",
            confidence=0.7 if slow else 0.5,
            text=text,
            evidence=evidence,
            advice=say("audit.governor.slow.advice"),
            layer="the load generator's CPU",
        ),
    )


def _mean_share(case: Case) -> float | None:
    """Return the mean clock of the CPUs for each hertz of their limit."""
    shares = []
    for column in case.host.columns if case.host is not None else ():
        match = NOW.fullmatch(column)
        now = monitor_readings.levels(case.host, column) if match else []
        limit = monitor_readings.levels(case.host, f"frequency.{match.group(1)}.limit_hz") if match else []
        if now and limit and min(limit) > 0:
            shares.append(sum(now) / len(now) / (sum(limit) / len(limit)))
    return sum(shares) / len(shares) if shares else None


RULE: Final = Rule(
    name="governor",
    asks="Did the load generator run at its full clock?",
    basis="cpufreq's governor and clock against its limit, once a second",
    judge=_judge,
)
