"""Rule `unwritten_region`: reads of places that were never written, which no medium has to be asked for.

A file system answers for holes and unwritten extents with zeros from memory, a thin device and a
flash translation layer do the same. Files tell which parts those are, and so does the file under
a loop device; what a device itself never wrote cannot be seen from the host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, reached_storage
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, TargetState

MOSTLY: Final = 0.5
THIN: Final = re.compile(r"/dev/(zram|loop)\d+$")
"""Devices over memory or a file: what was never written of them is zeros from memory."""


def _judge(case: Case) -> Answer:
    if not case_queries.does(case, "read") or case_queries.virtual(case) or case_queries.in_memory(case):
        return NotMine()
    findings = tuple(finding for target in case.targets if (finding := _target(case, target)) is not None)
    if findings:
        return findings
    unknown = [target.path for target in case.targets if _is_open(case, target)]
    if unknown or not case.targets:
        return cannot_tell(
            "audit.unwritten_region.extents",
            # Of a run of our own the file under a loop device tells it.
            essential=case.source != "bundle" and any(THIN.match(path) for path in unknown),
            where=case_queries.names(unknown) or "the target",
        )
    return Clear()


def _is_open(case: Case, target: TargetState) -> bool:
    """Tell whether what was read may have been written or not, for all that is known."""
    part = reached_storage.unwritten_part(case, target)
    return part is None or (part.may_matter and not part.matters and _arrived(case, target) is None)


def _arrived(case: Case, target: TargetState) -> float | None:
    """Return the part of what was read that reached the storage; of a device that cannot be seen."""
    return case.traffic.share("read") if case.traffic is not None and not target.is_disk else None


def _seen(part: reached_storage.Unwritten) -> str:
    """Tell which text is true: where the unwritten parts of a whole target lie is not known."""
    return "seen" if part.least_bytes == part.most_bytes else "seen_at_most"


def _target(case: Case, target: TargetState) -> Finding | None:
    part = reached_storage.unwritten_part(case, target)
    if part is None:
        return None
    arrived = _arrived(case, target)
    if (
        not part.matters
        if arrived is None
        else not part.may_matter or arrived >= reached_storage.enough(case)
    ):
        # What was read lies in the written part, or may lie there.
        return None
    unwritten_bytes = part.least_bytes if arrived is None else part.most_bytes
    share = unwritten_bytes / part.used_bytes
    numbers = {"unwritten_bytes": unwritten_bytes, "size_bytes": part.used_bytes}
    values: dict[str, str | float] = {**numbers, "target": target.path, "unwritten_share": share}
    return Finding(
        effect="not_valid",
        confidence=0.97 if arrived is not None else (0.9 if share > MOSTLY else 0.7),
        text=say("audit.unwritten_region.unseen.text", **values)
        if arrived is None
        else say(f"audit.unwritten_region.{_seen(part)}.text", **values, arrived_share=min(arrived, 1.0)),
        evidence=reached_storage.evidence(case, "read") | numbers,
        advice=say("audit.unwritten_region.seen.advice"),
        layer="unwritten space",
    )


RULE: Final = Rule(
    name="unwritten_region",
    asks="Was everything that was read written before?",
    basis="holes and unwritten extents as the file system tells them, and reads that reached the device",
    judge=_judge,
)
