"""Rule `resized_on_path`: the device saw I/Os of another size than the job made.

Neighbours that were merged on the way make fewer and larger I/Os, large ones are split. Then IOPS
are those of the host, and the device did others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.analysis.study.run_figures import are_large
from loadstone.audit import case_queries
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, Op

MERGED: Final = 1.2
SPLIT: Final = 0.8
IN_PIECES: Final = 0.26
"""An I/O that became four or more is another load: each piece costs the device one of its own."""
CUT_BYTES: Final = 256 * 1024
"""Larger ones are cut by many devices, which do not take more at a time."""
FEW: Final = 100
"""Fewer I/Os than this are told apart by chance."""


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case) or case_queries.in_memory(case) or not case.ops:
        return NotMine()
    if case.traffic is None:
        return cannot_tell("audit.resized_on_path.device", where=case_queries.where(case))
    ops: tuple[Op, ...] = ("read", "write")
    findings = tuple(finding for op in ops if (finding := _of(case, op)) is not None)
    return findings or Clear()


def _of(case: Case, op: Op) -> Finding | None:
    traffic = case.traffic
    if traffic is None or traffic.asked[op].ios < FEW or traffic.moved[op].ios < FEW:
        return None
    block_bytes = traffic.asked[op].bytes / traffic.asked[op].ios
    moved = traffic.moved[op].bytes / traffic.moved[op].ios
    ratio = moved / block_bytes if block_bytes else 1.0
    if SPLIT <= ratio <= MERGED:
        return None
    merged = ratio > MERGED
    # Through the page cache nothing else is to be expected; and of large blocks the bandwidth is the
    # number, which merging leaves as it is.
    expected = case_queries.buffered(case) or are_large(block_bytes)
    cut = ratio <= IN_PIECES and block_bytes <= CUT_BYTES and not case_queries.buffered(case)
    return Finding(
        effect="suspect" if cut or (merged and not expected) else "note",
        confidence=0.9,
        text=say(
            "audit.resized_on_path.merged.text" if merged else "audit.resized_on_path.split.text",
            device=case_queries.under(case),
            op=op,
            device_bytes=moved,
            job_bytes=block_bytes,
            device_iops=traffic.moved[op].ios / traffic.seconds,
            job_iops=traffic.asked[op].ios / traffic.seconds,
        ),
        evidence={
            f"asked_{op}_bytes_per_io": round(block_bytes),
            f"device_{op}_bytes_per_io": round(moved),
            "merges": round(traffic.merges or 0.0),
            "device": case_queries.under(case),
        },
        advice=say("audit.resized_on_path.merged.advice"),
        layer="block layer",
    )


RULE: Final = Rule(
    name="resized_on_path",
    asks="Did the device see the I/Os as they were made?",
    basis="bytes for each I/O at the job and at the device, in the same seconds",
    judge=_judge,
)
