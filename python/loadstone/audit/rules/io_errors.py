"""Rule `io_errors`: I/Os failed, came back wrong, or did not come back.

A rate of I/Os of which some failed is the rate of something else: errors are often faster or
slower than the medium, and a target that went away does no I/O at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

BROKEN_OFF: Final = {"fatal", "engine"}
"""Failures of the run and not of an I/O."""
KINDS: Final = {"io_error", "short", "hung", "damage", *BROKEN_OFF}


def _judge(case: Case) -> Answer:
    failed = case.total.errors
    told = [one for one in case.problems or () if one.kind in KINDS]
    if failed is None and case.problems is None:
        return CannotTell("whether I/Os failed")
    if not failed and not told:
        return Clear()
    damaged = [one for one in told if one.kind == "damage"]
    done = case.total.operations or 0
    worst = next(iter(damaged or told), None)
    evidence: dict[str, float | int | str] = {"failed_ios": failed or 0, "completed_ios": done}
    if worst is not None:
        evidence |= {"first_problem": worst.message, "told": sum(one.count for one in told)}
    lost = failed or sum(one.count for one in told if one.kind not in BROKEN_OFF)
    advice = "find out why the target failed (kernel log, cabling, free space) and measure again"
    if not done and not lost:
        advice = "mend what the first problem says, and run it again"
    return (
        Finding(
            effect="not_valid",
            confidence=0.98,
            text=_said(damaged=bool(damaged), lost=lost, done=done),
            evidence=evidence,
            advice=advice,
        ),
    )


def _said(*, damaged: bool, lost: int, done: int) -> str:
    if damaged:
        return "Data came back wrong, so the rate is not that of the storage at work."
    if lost:
        ios = "1 I/O" if lost == 1 else f"{lost} I/Os"
        return f"{ios} did not succeed, so the rate is not that of the storage at work."
    if done:
        return "The load generator did not run as it should, so the rate may not be that of the storage."
    return "The run failed before its first I/O, so nothing was measured."


RULE: Final = Rule(
    name="io_errors",
    asks="Did every I/O succeed, and did the data come back right?",
    basis="an I/O error, timeout or checksum mismatch invalidates a performance result",
    judge=_judge,
)
