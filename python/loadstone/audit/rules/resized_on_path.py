"""Rule `resized_on_path`: the device saw I/Os of another size than the job made.

Neighbours that were merged on the way make fewer and larger I/Os, large ones are split. Then IOPS
are those of the host, and the device did others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.point import LARGE_BLOCK_BYTES
from loadstone.audit import ask
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case, Op

MERGED: Final = 1.2
SPLIT: Final = 0.8
FEW: Final = 100
"""Fewer I/Os than this are told apart by chance."""


def _judge(case: Case) -> Answer:
    if ask.virtual(case) or ask.in_memory(case) or not case.ops:
        return NotMine()
    if case.traffic is None:
        return CannotTell(f"the size of the I/Os that reached the storage under {ask.where(case)}")
    ops: tuple[Op, ...] = ("read", "write")
    found = tuple(finding for op in ops if (finding := _of(case, op)) is not None)
    return found or Clear()


def _of(case: Case, op: Op) -> Finding | None:
    traffic = case.traffic
    if traffic is None or traffic.asked[op].ios < FEW or traffic.moved[op].ios < FEW:
        return None
    asked = traffic.asked[op].bytes / traffic.asked[op].ios
    moved = traffic.moved[op].bytes / traffic.moved[op].ios
    ratio = moved / asked if asked else 1.0
    if SPLIT <= ratio <= MERGED:
        return None
    merged = ratio > MERGED
    # Through the page cache nothing else is to be expected; and of large blocks the bandwidth is the
    # number, which merging leaves as it is.
    expected = ask.buffered(case) or asked >= LARGE_BLOCK_BYTES
    return Finding(
        effect="suspect" if merged and not expected else "note",
        confidence=0.9,
        text=f"{ask.under(case)} saw {op}s of {units.size(moved)} where the job made ones of "
        f"{units.size(asked)}: they were {'merged' if merged else 'split'} on the way, and it did "
        f"{units.count(traffic.moved[op].ios / traffic.seconds)} IOPS, not "
        f"{units.count(traffic.asked[op].ios / traffic.seconds)}.",
        evidence={
            f"asked_{op}_bytes_per_io": round(asked),
            f"device_{op}_bytes_per_io": round(moved),
            "merges": round(traffic.merges or 0.0),
            "device": ask.under(case),
        },
        advice="report bandwidth, not IOPS; or go to random places, past the page cache, to keep the size",
        layer="block layer",
    )


RULE: Final = Rule(
    name="resized_on_path",
    asks="Did the device see the I/Os as they were made?",
    basis="bytes for each I/O at the job and at the device, in the same seconds",
    judge=_judge,
    explained_by=(
        "page_cache_read",
        "writeback_absorbed",
        "unwritten_region",
        "foreign_load",
        "reducible_payload",
    ),
)
