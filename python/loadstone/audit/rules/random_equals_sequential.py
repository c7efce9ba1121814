"""Rule `random_equals_sequential`: on rotating media random I/O is hardly slower than in order.

A head has to move for each random I/O and not for the next one in order: between the two lie one
to two orders of magnitude with small blocks. Where they are alike, no head moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rotating_media import random_percent, rotational, spindles
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

HALF: Final = 0.5
ALIKE: Final = 0.8
RANDOM: Final = 90.0
IN_ORDER: Final = 10.0


def _judge(case: Case) -> Answer:
    share = random_percent(case)
    if share is None or IN_ORDER < share < RANDOM or rotational(case) is False:
        return NotMine()
    other = _counterpart(case, random=share >= RANDOM)
    if other is None:
        return NotMine()
    if rotational(case) is None:
        return cannot_tell("audit.random_equals_sequential.medium")
    scattered, ordered = (case, other) if share >= RANDOM else (other, case)
    return _compare(case, scattered, ordered)


def _compare(case: Case, scattered: Case, ordered: Case) -> Answer:
    rates = (scattered.total.iops, ordered.total.iops)
    if rates[0] is None or rates[1] is None or not rates[1].value:
        return cannot_tell("audit.random_equals_sequential.rates")
    ratio = rates[0].value / rates[1].value
    if ratio < HALF or _possible(scattered):
        return Clear()
    whole = ratio >= ALIKE
    counted = case.declared is not None and case.declared.spindles is not None
    other = ordered if scattered is case else scattered
    return (
        Finding(
            # Behind one device there may be many spindles.
            effect="not_valid" if counted and (whole or scattered is case) else "suspect",
            confidence=(0.9 if whole else 0.75) if counted else 0.6,
            text=(
                say(
                    "audit.random_equals_sequential.alike.text",
                    random_iops=rates[0].value,
                    sequential_iops=rates[1].value,
                    ratio=f"{ratio:.2f}",
                )
            ),
            evidence={
                "random_iops": rates[0].value,
                "sequential_iops": rates[1].value,
                "random_to_sequential_share": ratio,
                "compared_with": other.name,
            },
            advice=say("audit.random_equals_sequential.alike.advice"),
            layer="memory",
        ),
    )


def _counterpart(case: Case, *, random: bool) -> Case | None:
    """Return the same load on the same place with addresses of the other kind."""
    for other in case.siblings:
        share = random_percent(other)
        if share is None or (share > IN_ORDER if random else share < RANDOM):
            continue
        same = (
            set(other.ops) == set(case.ops)
            and other.setup.system == case.setup.system
            and other.setup.row == case.setup.row
            and other.setup.baseline == case.setup.baseline
            and _sizes(other) == _sizes(case)
            and {target.path for target in other.targets} == {target.path for target in case.targets}
        )
        if same:
            return other
    return None


def _sizes(case: Case) -> set[int]:
    return {size for job in case.jobs for size in job.block_bytes}


def _possible(case: Case) -> bool:
    """Whether so many spindles stand behind it that the random rate needs no cache."""
    count = case.declared.spindles if case.declared else None
    one = spindles(case)
    if count is None or one is None or case.total.iops is None:
        return False
    return case.total.iops.value <= count * one.plausible_iops


RULE: Final = Rule(
    name="random_equals_sequential",
    asks="Is random I/O on rotating media slower than I/O in order?",
    basis="a head moves for every random I/O: within a factor of 2 of sequential, it did not",
    judge=_judge,
)
