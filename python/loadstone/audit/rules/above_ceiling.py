"""Rule `above_ceiling`: faster than a data sheet, or than rotating media can be.

A data sheet says what its author would be proud of; a result far above it was not made by that
drive. A rotating medium does one positioning for each random I/O: 300 a second is what a deep,
sorted queue gets from the best of them, and a few times that in a narrow band; beyond 1000
nothing but a cache answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask
from loadstone.audit.ceilings import uses
from loadstone.audit.mechanics import Spindles, random_percent, rotational, spindles
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

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
        return Clear() if known else CannotTell("a data sheet, or the kind of medium")
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
    said = f"{reached} is {use.share * 100:.0f} % of the {written} of {use.ceiling.source}"
    if use.share <= ABOVE:
        return (
            Finding(
                effect="note",
                confidence=0.9,
                text=f"{said}: the drive does what it is said to do.",
                evidence=evidence,
                advice="nothing: more than this cannot be expected",
                layer=use.layer,
            ),
        )
    far = use.share > FAR_ABOVE
    return (
        Finding(
            effect="not_valid" if far else "suspect",
            confidence=0.85 if far else 0.6,
            text=f"{said}: something else answered, or the drive was not in the state its data sheet means.",
            evidence=evidence,
            advice="fill and precondition the drive, measure past its cache, and check the units",
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
        return CannotTell("the rate and the size of the I/Os")
    count = case.declared.spindles if case.declared else None
    if count is None:
        return _uncounted(case, one)
    return _counted(case, one, count)


def _uncounted(case: Case, one: Spindles) -> Answer:
    moved = case.total.bandwidth
    rate = units.bandwidth_decimal(moved.value) if moved else f"{units.count(one.needed)} IOPS"
    text = f"how many spindles there are ({rate} of random I/O takes at least {one.needed})"
    known = case.declared is not None and any(c.kind == "link" for c in case.declared.ceilings)
    if not known:
        text += " and what the link carries"
    # What a device of this host says of itself may be said of a whole array behind it.
    return CannotTell(text, essential=one.needed > 1 and case.source != "bundle")


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
    said = (
        f"{units.count(iops)} random IOPS from {count} rotating drive{'s' if count > 1 else ''} are "
        f"{units.count(each)} each, and a drive positions {units.count(one.plausible_iops)} times a second"
    )
    narrow = units.count(one.narrow_iops)
    return (
        Finding(
            effect="not_valid" if impossible else "suspect",
            confidence=0.93 if impossible else 0.6,
            text=(
                f"{said}, in a narrow band {narrow} times at the most: a cache answered."
                if impossible
                else f"{said} over its whole surface: a narrow band, or a cache that sorts, helped."
            ),
            evidence=evidence,
            advice="use data several times larger than every cache, run longer"
            + ("" if ask.buffered(case) is False else ", and bypass the page cache (direct=1)"),
            layer="memory" if impossible else None,
        ),
    )


RULE: Final = Rule(
    name="above_ceiling",
    asks="Is it faster than the data sheet or the mechanics allow?",
    basis="data sheet; 1/(seek + half a turn): 75 to 300 random I/Os a second for each spindle",
    judge=_judge,
)
