"""Rule `unwritten_region`: reads of places that were never written, which no medium has to be asked for.

A file system answers for holes and unwritten extents with zeros from memory, a thin device and a
flash translation layer do the same. Files tell which parts those are, and so does the file under
a loop device; what a device itself never wrote cannot be seen from the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask, reached
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case, Target

MOSTLY: Final = 0.5


def _judge(case: Case) -> Answer:
    if not ask.does(case, "read") or ask.virtual(case) or ask.in_memory(case):
        return NotMine()
    found = tuple(finding for target in case.targets if (finding := _target(case, target)) is not None)
    if found:
        return found
    unknown = [target.path for target in case.targets if reached.unwritten_share(target) is None]
    if unknown or not case.targets:
        return CannotTell(f"which parts of {ask.names(unknown) or 'the target'} were ever written")
    return Clear()


def _target(case: Case, target: Target) -> Finding | None:
    share = reached.unwritten_share(target)
    if share is None or share <= reached.UNWRITTEN:
        return None
    arrived = case.traffic.share("read") if case.traffic is not None else None
    direct_to_device = target.is_disk
    if arrived is not None and not direct_to_device and arrived >= reached.enough(case):
        # What was read lies in the written part.
        return None
    evidence = reached.evidence(case, "read") | {
        "unwritten_bytes": target.unwritten_bytes_before or 0,
        "size_bytes": target.size_bytes or 0,
    }
    seen = arrived is not None and not direct_to_device
    return Finding(
        effect="not_valid",
        confidence=0.97 if seen else (0.9 if share > MOSTLY else 0.7),
        text=f"{100 * share:.0f} % of {target.path} was never written "
        f"({units.size(target.unwritten_bytes_before)} of {units.size(target.size_bytes)}), "
        "and reads of that return zeros without asking the medium"
        + (f": {100 * min(arrived or 0.0, 1):.0f} % of the bytes read came from it." if seen else "."),
        evidence=evidence,
        advice="write the whole target once before reading it",
        layer="unwritten space",
    )


RULE: Final = Rule(
    name="unwritten_region",
    asks="Was everything that was read written before?",
    basis="holes and unwritten extents as the file system tells them, and reads that reached the device",
    judge=_judge,
)
