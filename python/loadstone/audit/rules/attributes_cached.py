"""Rule `attributes_cached`: names and attributes came from memory of this host.

The kernel keeps names, attributes and directories it has seen (dentries and inodes). A `stat`, an
`access` or an `open` of a file that is known there asks no storage. Compares how often they were
done with the I/Os of the devices nearest under the trees in the same seconds: what reads an inode
must read a block. Of network file systems nothing here counts what a call asked the server for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask, reached
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

LOOKS: Final = frozenset(("getattr", "access", "open"))
"""Operations that change nothing and move no data."""
NONE_REACHED: Final = 0.01
"""A block holds at most about so many inodes that one I/O for a hundred operations is none."""
COUNTED: Final = "block."


def _judge(case: Case) -> Answer:
    named = [job for job in case.jobs if job.operation is not None]
    in_memory = ask.in_memory(case)
    if named and in_memory is not None:
        return (reached.memory(in_memory),)
    looking = [job for job in named if job.operation in LOOKS]
    if not looking:
        return NotMine()
    what = f"how many names and attributes came from the storage under {ask.where(case)}"
    carriers = [name for target in case.targets for name in target.carriers]
    traffic, whole, seconds = case.traffic, case.total.operations, case.seconds
    if traffic is None or not whole or not seconds:
        return CannotTell(what)
    if len(looking) < len(case.jobs) or any(not name.startswith(COUNTED) for name in carriers):
        return CannotTell(what)
    done, reads = whole * traffic.seconds / seconds, traffic.moved["read"].ios
    return Clear() if reads >= NONE_REACHED * done else (_remembered(case, done, reads),)


def _remembered(case: Case, done: float, reads: float) -> Finding:
    return Finding(
        effect="not_valid",
        confidence=0.9,
        text=f"{ask.under(case)} did {units.count(reads)} reads in the time of "
        f"{units.count(round(done))} operations: names and attributes were in memory.",
        evidence={"operations": round(done), "device_reads": round(reads)},
        advice="drop the caches before (echo 2 > /proc/sys/vm/drop_caches), and use many more files "
        "than their attributes fit in memory",
        layer="dentry and inode caches",
    )


RULE: Final = Rule(
    name="attributes_cached",
    asks="Did looking at files reach the storage?",
    basis="operations against the block layer's own count of reads, in the same seconds",
    judge=_judge,
)
