"""Rule `unwritten_region`: reads of places that were never written, which no medium has to be asked for.

A file system answers for holes and unwritten extents with zeros from memory, a thin device and a
flash translation layer do the same. Files tell which parts those are, and so does the file under
a loop device; what a device itself never wrote cannot be seen from the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, reached_storage
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, TargetState

MOSTLY: Final = 0.5


def _judge(case: Case) -> Answer:
    if not case_queries.does(case, "read") or case_queries.virtual(case) or case_queries.in_memory(case):
        return NotMine()
    found = tuple(finding for target in case.targets if (finding := _target(case, target)) is not None)
    if found:
        return found
    unknown = [target.path for target in case.targets if reached_storage.unwritten_share(target) is None]
    if unknown or not case.targets:
        return cannot_tell(
            "audit.unwritten_region.extents", where=case_queries.names(unknown) or "the target"
        )
    return Clear()


def _target(case: Case, target: TargetState) -> Finding | None:
    share = reached_storage.unwritten_share(target)
    if share is None or share <= reached_storage.UNWRITTEN:
        return None
    arrived = case.traffic.share("read") if case.traffic is not None else None
    direct_to_device = target.is_disk
    if arrived is not None and not direct_to_device and arrived >= reached_storage.enough(case):
        # What was read lies in the written part.
        return None
    evidence = reached_storage.evidence(case, "read") | {
        "unwritten_bytes": target.unwritten_bytes_before or 0,
        "size_bytes": target.size_bytes or 0,
    }
    seen = arrived is not None and not direct_to_device
    told = {
        "unwritten_bytes": target.unwritten_bytes_before,
        "size_bytes": target.size_bytes,
        "target": target.path,
        "unwritten_share": share,
    }
    return Finding(
        effect="not_valid",
        confidence=0.97 if seen else (0.9 if share > MOSTLY else 0.7),
        text=say("audit.unwritten_region.seen.text", **told, arrived_share=min(arrived or 0.0, 1.0))
        if seen
        else say("audit.unwritten_region.unseen.text", **told),
        evidence=evidence,
        advice=say("audit.unwritten_region.seen.advice"),
        layer="unwritten space",
    )


RULE: Final = Rule(
    name="unwritten_region",
    asks="Was everything that was read written before?",
    basis="holes and unwritten extents as the file system tells them, and reads that reached the device",
    judge=_judge,
)
