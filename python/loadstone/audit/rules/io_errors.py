"""Rule `io_errors`: I/Os failed, came back wrong, or did not come back.

A rate of I/Os of which some failed is the rate of something else: errors are often faster or
slower than the medium, and a target that went away does no I/O at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, Clear, Finding, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

BROKEN_OFF: Final = {"fatal", "engine"}
"""Failures of the run and not of an I/O."""
KINDS: Final = {"io_error", "short", "hung", "damage", *BROKEN_OFF}


def _judge(case: Case) -> Answer:
    failed = case.total.errors
    problems = [one for one in case.problems or () if one.kind in KINDS]
    if failed is None and case.problems is None:
        return cannot_tell("audit.io_errors.errors")
    if not failed and not problems:
        return Clear()
    damaged = [one for one in problems if one.kind == "damage"]
    done = case.total.operations or 0
    worst = next(iter(damaged or problems), None)
    evidence: dict[str, float | int | str] = {"failed_ios": failed or 0, "completed_ios": done}
    if worst is not None:
        evidence |= {"first_problem": worst.message, "told": sum(one.count for one in problems)}
    lost = failed or sum(one.count for one in problems if one.kind not in BROKEN_OFF)
    text = _said(damaged=bool(damaged), lost=lost, done=done)
    return (
        Finding(
            effect="not_valid",
            confidence=0.98,
            text=text,
            evidence=evidence,
            advice=say(
                "audit.io_errors.nothing.advice" if not done and not lost else "audit.io_errors.failed.advice"
            ),
        ),
    )


def _said(*, damaged: bool, lost: int, done: int) -> str:
    if damaged:
        return say("audit.io_errors.damaged.text")
    if lost:
        return say("audit.io_errors.failed.text", failed_ios=lost)
    return say("audit.io_errors.broken_off.text" if done else "audit.io_errors.nothing.text")


RULE: Final = Rule(
    name="io_errors",
    asks="Did every I/O succeed, and did the data come back right?",
    basis="an I/O error, timeout or checksum mismatch invalidates a performance result",
    judge=_judge,
)
