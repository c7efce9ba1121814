"""Rule `io_errors`: I/Os failed, came back wrong, or did not come back.

A rate of I/Os of which some failed is the rate of something else: errors are often faster or
slower than the medium, and a target that went away does no I/O at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

KINDS: Final = {"io_error", "short", "hung", "damage", "fatal", "engine"}


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
    what = "data came back wrong" if damaged else _failed(failed or sum(one.count for one in told))
    return (
        Finding(
            effect="not_valid",
            confidence=0.98,
            text=f"{what[0].upper()}{what[1:]}, so the rate is not that of the storage at work.",
            evidence=evidence,
            advice="find out why the target failed (kernel log, cabling, free space) and measure again",
        ),
    )


def _failed(count: int) -> str:
    return f"{count} I/O{'s' if count != 1 else ''} did not succeed"


RULE: Final = Rule(
    name="io_errors",
    asks="Did every I/O succeed, and did the data come back right?",
    basis="an I/O error, timeout or checksum mismatch invalidates a performance result",
    judge=_judge,
)
