"""Rule `short_stroke`: only a small part of the target was used.

Heads that stay in a narrow band move less, flash that is nearly empty collects no garbage, and a
small working set fits into caches: a number of a tenth of a device is not one of the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rotating_media import rotational
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

PART: Final = 0.10


def _judge(case: Case) -> Answer:
    if any(target.kind is not None and not target.is_disk for target in case.targets):
        return NotMine()
    sizes = [target.size_bytes for target in case.targets]
    used = [job.size_bytes for job in case.jobs]
    if not sizes or None in sizes or not used or None in used:
        return cannot_tell("audit.short_stroke.sizes")
    whole = sum(size for size in sizes if size is not None)
    # Jobs may work on the same part: the largest is what is certain, the sum what is possible.
    touched = sum(size for size in used if size is not None)
    if not whole or touched / whole >= PART:
        return Clear()
    share = touched / whole
    rotates = rotational(case)
    return (
        Finding(
            effect="suspect",
            confidence=0.7 if rotates else 0.5,
            text=(
                say(
                    "audit.short_stroke.disk.text" if rotates else "audit.short_stroke.flash.text",
                    used_bytes=touched,
                    target_bytes=whole,
                    used_percent=100 * share,
                )
            ),
            evidence={"used_bytes": touched, "target_bytes": whole, "used_percent": 100 * share},
            advice=say("audit.short_stroke.disk.advice"),
        ),
    )


RULE: Final = Rule(
    name="short_stroke",
    asks="Was more than a small part of the target used?",
    basis="less than 10 % of a device is a narrow band of its tracks or an almost empty flash",
    judge=_judge,
)
