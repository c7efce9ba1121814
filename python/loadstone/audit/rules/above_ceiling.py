"""Rule `above_ceiling`: faster than a data sheet, or than rotating media can be.

A data sheet says what its author would be proud of; a result far above it was not made by that
drive. A rotating medium does one positioning for each random I/O: 300 a second is what a deep,
sorted queue gets from the best of them, and a few times that in a narrow band; beyond 1000
nothing but a cache answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import case_queries
from loadstone.audit.ceilings import uses
from loadstone.audit.rotating_media import Spindles, random_percent, rotational, spindles
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.messages import Value

FAR_ABOVE: Final = 1.5
ABOVE: Final = 1.15
"""Drives are often a little better than their data sheet."""
REACHED: Final = 0.85
RANDOM_PERCENT: Final = 50.0


def _judge(case: Case) -> Answer:
    findings = _specified(case)
    physical = _physical(case)
    if isinstance(physical, tuple):
        return (*findings, *physical)
    if findings:
        return findings
    if isinstance(physical, NotMine):
        known = uses(case, {"specified", "physical"})
        return Clear() if known else cannot_tell("audit.above_ceiling.sheet")
    return physical


def _specified(case: Case) -> tuple[Finding, ...]:
    every = uses(case, {"specified", "physical"})
    if not every or every[0].share < REACHED:
        return ()
    use = every[0]
    written = (
        units.bandwidth_decimal(use.per_s)
        if use.ceiling.quantity == "bytes_per_s"
        else f"{units.count(use.per_s)} IOPS"
    )
    reached = (
        units.bandwidth_decimal(use.reached_per_s)
        if use.ceiling.quantity == "bytes_per_s"
        else f"{units.count(use.reached_per_s)} IOPS"
    )
    suffix = "bytes_per_s" if use.ceiling.quantity == "bytes_per_s" else "iops"
    evidence: dict[str, float | int | str] = {
        f"reached_{suffix}": use.reached_per_s,
        f"specified_{suffix}": use.per_s,
        "of_specified_percent": 100 * use.share,
        "source": use.ceiling.source,
    }
    values: dict[str, Value] = {
        "reached": reached,
        "sheet_percent": 100 * use.share,
        "specified": written,
        "source": use.ceiling.source,
    }
    if use.share <= ABOVE:
        return (
            Finding(
                effect="note",
                confidence=0.9,
                text=say("audit.above_ceiling.as_specified.text", **values),
                evidence=evidence,
                advice=say("audit.above_ceiling.as_specified.advice"),
                layer=use.layer,
            ),
        )
    far = use.share > FAR_ABOVE
    return (
        Finding(
            effect="not_valid" if far else "suspect",
            confidence=0.85 if far else 0.6,
            text=say("audit.above_ceiling.beyond.text", **values),
            evidence=evidence,
            advice=say("audit.above_ceiling.beyond.advice"),
            layer=use.layer,
        ),
    )


def _physical(case: Case) -> Answer:
    share = random_percent(case)
    rotates = rotational(case)
    if rotates is False or (share is not None and share < RANDOM_PERCENT):
        return NotMine()
    if rotates is None or share is None:
        return NotMine()
    one = spindles(case)
    if one is None or case.total.iops is None:
        return cannot_tell("audit.above_ceiling.rate")
    count = case.declared.spindles if case.declared else None
    if count is None:
        return _uncounted(case, one)
    return _counted(case, one, count)


def _uncounted(case: Case, one: Spindles) -> Answer:
    moved = case.total.bandwidth
    rate = units.bandwidth_decimal(moved.value) if moved else f"{units.count(one.needed)} IOPS"
    known = case.declared is not None and any(c.kind == "link" for c in case.declared.ceilings)
    # What a device of this host says of itself may be said of a whole array behind it.
    essential = one.needed > 1 and case.source != "bundle"
    key = "audit.above_ceiling.spindles" if known else "audit.above_ceiling.spindles_link"
    return cannot_tell(key, essential=essential, rate=rate, needed=one.needed)


def _counted(case: Case, one: Spindles, count: int) -> Answer:
    iops = case.total.iops.value if case.total.iops else 0.0
    each = iops / count
    if each <= one.plausible_iops * 1.05:
        return Clear()
    impossible = each > one.narrow_iops
    evidence: dict[str, float | int | str] = {
        "iops": iops,
        "spindles": count,
        "iops_per_spindle": each,
        "possible_iops_per_spindle": one.plausible_iops,
        "possible_in_a_narrow_band_iops": one.narrow_iops,
    }
    values = {
        "each_iops": each,
        "spindles": count,
        **({"narrow_iops": one.narrow_iops} if impossible else {"possible_iops": one.plausible_iops}),
    }
    direct = case_queries.buffered(case) is False
    return (
        Finding(
            effect="not_valid" if impossible else "suspect",
            confidence=0.93 if impossible else 0.6,
            text=(
                say(
                    "audit.above_ceiling.impossible.text"
                    if impossible
                    else "audit.above_ceiling.narrow.text",
                    **values,
                )
            ),
            evidence=evidence,
            advice=say(
                "audit.above_ceiling.impossible.advice"
                if direct
                else "audit.above_ceiling.impossible.advice_buffered"
            ),
            layer="memory" if impossible else None,
        ),
    )


RULE: Final = Rule(
    name="above_ceiling",
    asks="Is it faster than the data sheet or the mechanics allow?",
    basis="data sheet; 1/(seek + half a turn): 75 to 300 random I/Os a second for each spindle",
    judge=_judge,
)
