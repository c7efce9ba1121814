"""What others on the host's processors can have made of a load's course.

Knows Cases only. A change that they can make is no evidence about the storage, and is told all the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.audit.rule import Finding


STALLED: Final = 0.15
"""The most of the time that turns take which are so long that nothing ends. It was at most 12 % in 36 honest
runs on real parts (seeds 13801 to 13934, 11 to 22 tasks ready on 2 CPUs)."""


def can_change(case: Case, low: float, high: float, length_ns: float) -> bool:
    """Tell whether they can make the lower of two rates of the higher, over this time.

    A fair share holds over many turns: within a short time one more turn may be theirs.
    """
    contention = case.contention
    if contention is None or not contention.share:
        return False
    return low >= (1 - contention.share - contention.wait_ns / length_ns) * high


def can_stop(case: Case, longest_ns: float, share: float) -> bool:
    """Tell whether they can hold I/Os up for so long, and for this share of the time."""
    contention = case.contention
    return (
        contention is not None
        and longest_ns <= contention.wait_ns
        and share <= min(STALLED, contention.share)
    )


def told(case: Case, found: Finding) -> Finding:
    """Return a finding that they can have made: it decides nothing, and says why."""
    others = case.contention
    if others is None:
        return found
    reason = say(
        "audit.beside_others.text",
        waiting_share=others.waiting,
        runnable_count=others.runnable,
        cpus=others.cpus,
    )
    return replace(
        found,
        effect="note",
        text=f"{found.text} {reason}",
        evidence={**found.evidence, "others_could_take_percent": round(100 * others.share, 1)},
    )
