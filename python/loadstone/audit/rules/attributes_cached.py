"""Rule `attributes_cached`: names and attributes came from memory of this host, or went no further.

The kernel keeps names, attributes and directories it has seen (dentries and inodes). A `stat`, an
`access` or an `open` of a file that is known there asks no storage, and a file that is made or
removed is written to a journal some seconds later, together with many others. Compares how often
such operations were done with the I/Os of the devices nearest under the trees in the same seconds:
what reads an inode must read a block. Of network file systems nothing here counts what a call asked
the server for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, reached_storage
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

LOOKS: Final = frozenset(("getattr", "access", "open"))
"""Operations that change nothing and move no data."""
CHANGES: Final = frozenset(("mkdir", "rmdir", "create", "delete", "setattr", "move"))
"""Operations that are acknowledged before they are on the disk."""
GROUPED: Final = 0.1
"""Fewer writes for an operation than this: they were collected, and no operation waited for them."""
NONE_REACHED: Final = 0.01
"""A block holds at most about so many inodes that one I/O for a hundred operations is none."""
COUNTED: Final = "block."


def _judge(case: Case) -> Answer:
    named = [job for job in case.jobs if job.operation is not None]
    in_memory = case_queries.in_memory(case)
    if named and in_memory is not None:
        return (reached_storage.memory(in_memory),)
    if not {job.operation for job in named} & (LOOKS | CHANGES):
        return NotMine()
    uncounted = cannot_tell("audit.attributes_cached.counts", where=case_queries.where(case))
    carriers = [name for target in case.targets for name in target.carriers]
    traffic, whole, seconds = case.traffic, case.total.operations, case.seconds
    if traffic is None or not whole or not seconds:
        return uncounted
    kinds = [kind for kind in (LOOKS, CHANGES) if all(job.operation in kind for job in case.jobs)]
    if not kinds or any(not name.startswith(COUNTED) for name in carriers):
        return uncounted
    done = whole * traffic.seconds / seconds
    if kinds[0] is CHANGES:
        writes = traffic.moved["write"].ios
        return Clear() if writes >= GROUPED * done else (_collected(case, done, writes),)
    reads = traffic.moved["read"].ios
    return Clear() if reads >= NONE_REACHED * done else (_remembered(case, done, reads),)


def _collected(case: Case, done: float, writes: float) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.75,
        text=say(
            "audit.attributes_cached.collected.text",
            device=case_queries.under(case),
            device_ios=round(writes),
            changes_count=round(done),
        ),
        evidence={"operations": round(done), "device_writes": round(writes)},
        advice=say("audit.attributes_cached.collected.advice"),
        layer="journal of the file system",
    )


def _remembered(case: Case, done: float, reads: float) -> Finding:
    return Finding(
        effect="not_valid",
        confidence=0.9,
        text=say(
            "audit.attributes_cached.remembered.text",
            device=case_queries.under(case),
            device_ios=round(reads),
            operations_count=round(done),
        ),
        evidence={"operations": round(done), "device_reads": round(reads)},
        advice=say("audit.attributes_cached.remembered.advice"),
        layer="dentry and inode caches",
    )


RULE: Final = Rule(
    name="attributes_cached",
    asks="Did operations on names and attributes reach the storage?",
    basis="operations against the block layer's own count of I/Os, in the same seconds",
    judge=_judge,
)
