"""Rule `storage_memory_cache`: the storage's memory answered, or took, what its disks were not given.

What is read at the front and not at the disks behind came from a cache of the storage, or from space
that was never written. What is written at the front and reaches no disk while it is measured is in
its memory, and grows what is dirty there. The number is that of the cache then. Where more than nine
tenths pass it is the disks'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import watched_hosts
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched

MOSTLY: Final = 0.5
PARTLY: Final = 0.9
HARDLY: Final = 0.1
LEAST_BYTES: Final = 16 << 20


def _judge(case: Case) -> Answer:
    return watched_hosts.each(case, _host) if case.watched else NotMine()


def _host(case: Case, host: Watched) -> Answer:
    findings: list[Finding] = []
    looked = False
    for op in ("read", "write"):
        requested = watched_hosts.asked(case, host, op)
        if requested is None or requested.bytes < LEAST_BYTES:
            continue
        moved = host.moved(f"{op}_bytes")
        if moved is None:
            return cannot_tell("audit.storage_memory_cache.disks", host=host.name)
        looked = True
        share = moved / requested.bytes
        if share < PARTLY:
            findings.append(_finding(host, op, requested.bytes, moved))
    if findings:
        return tuple(findings)
    return Clear() if looked else NotMine()


def _finding(host: Watched, op: str, asked_bytes: float, moved_bytes: float) -> Finding:
    share = moved_bytes / asked_bytes
    reads = op == "read"
    evidence: dict[str, float | int | str] = {
        "asked_bytes": asked_bytes,
        "disks_bytes": moved_bytes,
        "disks": ", ".join(host.lowest_disks[:8]),
        "watched_s": host.seconds,
    }
    for key in ("memory_cache_bytes", "zfs_arc_bytes", "zfs_arc_hit_percent", "memory_dirty_bytes"):
        track = host.track(key)
        if track is not None:
            evidence[key] = track.mean.value
    name = "read" if reads else "written"
    return Finding(
        effect="limited" if share < MOSTLY else "suspect",
        confidence=(0.9 if share < HARDLY else 0.75) if share < MOSTLY else 0.6,
        text=say(
            f"audit.storage_memory_cache.{name}.text",
            host=host.name,
            asked_bytes=asked_bytes,
            disks_bytes=moved_bytes,
            disks_share=share,
        ),
        evidence=evidence,
        advice=say(f"audit.storage_memory_cache.{name}.advice", host=host.name),
        layer=f"memory of {host.name}",
    )


RULE: Final = Rule(
    name="storage_memory_cache",
    asks="Did the storage's memory answer instead of its disks?",
    basis="bytes at the disks of a watched host below 50 % of the load's (limited), below 90 % (suspect)",
    judge=_judge,
    scope="either",
)
