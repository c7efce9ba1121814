"""Rule `first_pass_allocation`: the writes made the file system find space as they went.

The first write to a place costs an allocation or the conversion of an unwritten extent, with a
journal entry; the second does not. A first pass measures the file system, and is not the rate
that an existing file has.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries
from loadstone.audit.reached_storage import unwritten_part
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.audit.targets import file_below
from loadstone.messages import say
from loadstone.path.layers import IN_MEMORY

if TYPE_CHECKING:
    from loadstone.audit.case import Case, TargetState
    from loadstone.path.layers import Layer

SOME: Final = 0.05
MUCH: Final = 0.20


def _judge(case: Case) -> Answer:
    if not case_queries.does(case, "write") or case_queries.in_memory(case):
        return NotMine()
    image = _image(case)
    if image is not None:
        return (image,)
    files = [target for target in case.targets if target.kind in (None, "file")]
    if not files:
        return NotMine()
    written = case.ops["write"].bytes if "write" in case.ops else None
    known = [(target, new) for target in files if (new := newly_bytes(target)) is not None]
    if not written or len(known) < len(files):
        return cannot_tell("audit.first_pass_allocation.allocation", where=case_queries.where(case))
    new = sum(amount for _, amount in known)
    share = min(1.0, new / written)
    if share <= SOME:
        return Clear()
    named = [target.file_system for target, _ in known if target.file_system is not None]
    systems = case_queries.names(named) if len(named) == len(known) else "the file system"
    evidence: dict[str, float | int | str] = {"allocated_bytes": new, "written_bytes": written}
    if named:
        evidence["file_system"] = case_queries.names(named)
    ramped = any(job.ramp_s for job in case.jobs)
    return (
        Finding(
            effect="limited",
            # In a run with a ramp the first pass may have been over before anything counted.
            confidence=0.6 if ramped else (0.92 if share > MUCH else 0.75),
            text=say(
                "audit.first_pass_allocation.allocated.text",
                new_bytes=new,
                written_bytes=written,
                systems=systems,
            ),
            evidence=evidence,
            advice=say("audit.first_pass_allocation.allocated.advice"),
            layer=f"{systems} (allocation)",
        ),
    )


def _image(case: Case) -> Finding | None:
    """Look for writes to a device whose file has parts that were never written.

    How much of them was written is worked out: as much as random places of that number are apart.
    """
    target = case.targets[0] if len(case.targets) == 1 else None
    file = file_below(target.path_layers) if target is not None and target.is_disk else None
    if target is None or file is None or _in_memory(target, file):
        return None
    part, written = unwritten_part(case, target), case.ops["write"].bytes if "write" in case.ops else 0
    if part is None or not written:
        return None
    apart = part.used_bytes * -math.expm1(-written / part.used_bytes)
    new = part.least_bytes / part.used_bytes * apart
    if new <= SOME * written:
        return None
    return Finding(
        effect="limited",
        confidence=0.92 if new > MUCH * written else 0.75,
        text=say(
            "audit.first_pass_allocation.image.text",
            new_bytes=new,
            written_bytes=written,
            device=target.path,
        ),
        evidence={"allocated_bytes": round(new), "written_bytes": written, "file": file.name},
        advice=say("audit.first_pass_allocation.image.advice"),
        layer=f"the file under {target.path} (allocation)",
    )


def _in_memory(target: TargetState, file: Layer) -> bool:
    path = target.path_layers
    below = [path.layer(name) for name in file.below] if path is not None else []
    return any(one is not None and one.facts.get("type") in IN_MEMORY for one in below)


def newly_bytes(target: TargetState) -> int | None:
    """Return the bytes that came to be allocated, or written for the first time, in the run."""
    grown = _difference(target.allocated_bytes_after, target.allocated_bytes_before)
    filled = _difference(target.unwritten_bytes_before, target.unwritten_bytes_after)
    known = [one for one in (grown, filled) if one is not None]
    return max(0, *known) if known else None


def _difference(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


RULE: Final = Rule(
    name="first_pass_allocation",
    asks="Was the space written to allocated before?",
    basis="allocated and unwritten bytes of the file before and after, against the bytes written",
    judge=_judge,
)
