"""Rule `writeback_absorbed`: writes were done when they lay in memory, and the storage saw them later.

Compares bytes written with bytes that the devices moved in the same seconds. A cache below the
device is not seen by this; it is held against its size where somebody states that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, declared_system, reached_storage
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

CACHES: Final = 2.0
"""Less than this many cache sizes written is a burst into the cache."""
WRITTEN_ONCE: Final = 1.05
"""So many times its size a file may be written before its flush, by the edges of what is counted."""
SMALL: Final = 0.2
"""A cache that can hold less than this part of what was written is not why it was fast."""


def _judge(case: Case) -> Answer:
    if not case_queries.does(case, "write") or case_queries.virtual(case):
        return NotMine()
    in_memory = case_queries.in_memory(case)
    if in_memory is not None:
        return (reached_storage.memory(in_memory),)
    buffered = case_queries.buffered(case)
    share = case.traffic.share("write") if case.traffic is not None else None
    if share is not None and case.traffic is not None:
        share /= case.traffic.copies or 1.0
    if share is None and buffered is not False and not all(job.synchronous for job in case.jobs):
        return _uncounted(case, buffered=buffered)
    if buffered and share is not None and share < reached_storage.enough(case) and not _reduced(case):
        return (_absorbed(case, share),)
    return _in_device_cache(case)


def _uncounted(case: Case, *, buffered: bool | None) -> Answer:
    """Answer by what is stated of the system, where nothing counted what reached the storage."""
    memory = case.declared.memory_bytes if case.declared is not None else None
    memory_share = declared_system.kept_share(case, memory) if memory is not None else None
    written = declared_system.written_bytes(case)
    if declared_system.as_specified(case, "write") or declared_system.only_heads(case):
        return Clear()
    if memory_share is not None and memory_share < SMALL and written and memory is not None:
        return (_explains(written, memory, "memory"),)
    inside = declared_system.fits_memory(case)
    if buffered and inside is not None:
        return (_fits(case, *inside),)
    return cannot_tell(
        "audit.writeback_absorbed.device",
        essential=buffered is not False and not _flushed_once(case),
        where=case_queries.where(case),
    )


def _flushed_once(case: Case) -> bool:
    """Tell whether a flush at the end stored all that was written: nothing was written over before it."""
    sizes = [job.size_bytes for job in case.jobs]
    written = case.ops["write"].bytes if "write" in case.ops else None
    if written is None or not sizes or not any(job.end_fsync for job in case.jobs):
        return False
    return all(sizes) and written <= WRITTEN_ONCE * sum(size or 0 for size in sizes)


def _fits(case: Case, data_bytes: int, memory_bytes: int) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.7,
        text=say("audit.writeback_absorbed.fits.text", data_bytes=data_bytes, memory_bytes=memory_bytes),
        evidence={"data_bytes": data_bytes, "memory_bytes": memory_bytes},
        advice=_advice(case),
        layer="page cache",
    )


def _advice(case: Case) -> str:
    """Say how to count what reaches the storage, as far as it was not done."""
    if case_queries.buffered(case) is False:
        return say("audit.writeback_absorbed.below.advice")
    if all(job.end_fsync for job in case.jobs) and case.jobs:
        return say("audit.writeback_absorbed.flushed.advice")
    return say("audit.writeback_absorbed.direct.advice")


def _explains(written: float, cache_bytes: int, what: str) -> Finding:
    share = 100 * cache_bytes / written
    return Finding(
        effect="note",
        confidence=0.9,
        text=say(
            "audit.writeback_absorbed.explains.text",
            cache_bytes=cache_bytes,
            cache=what,
            kept_percent=share,
            written_bytes=written,
        ),
        evidence={"written_bytes": written, "cache_bytes": cache_bytes, "explained_percent": share},
        advice=say("audit.writeback_absorbed.explains.advice"),
        layer="storage cache" if what == "cache" else "page cache",
    )


def _reduced(case: Case) -> bool:
    """Whether a file system that compresses is why the device saw less."""
    share = case.traffic.share("write") if case.traffic is not None else None
    flushed = all(job.synchronous or job.end_fsync for job in case.jobs)
    return flushed and share is not None and reached_storage.reduction_explains(case, share)


def _absorbed(case: Case, share: float) -> Finding:
    evidence = reached_storage.evidence(case, "write")
    return Finding(
        effect="not_valid",
        confidence=0.97,
        text=say(
            f"audit.writeback_absorbed.{'absorbed' if case.source == 'bundle' else 'absorbed_at_least'}.text",
            cached_share=1 - min(share, 1.0),
            device_bytes=float(evidence["device_bytes"]),
            written_bytes=float(evidence["asked_bytes"]),
            device=case_queries.under(case),
        ),
        evidence=evidence,
        advice=_advice(case),
        layer="page cache",
        chart=reached_storage.chart(case, "write"),
    )


def _in_device_cache(case: Case) -> Answer:
    cache = case.declared.cache_bytes if case.declared is not None else None
    written = case.ops["write"].bytes if "write" in case.ops else None
    if not cache or not written:
        return Clear()
    if written >= CACHES * cache:
        share_kept = declared_system.kept_share(case, cache)
        return (
            (_explains(written, cache, "cache"),)
            if share_kept is not None and share_kept < SMALL
            else Clear()
        )
    return (
        Finding(
            effect="suspect",
            confidence=0.7,
            text=say("audit.writeback_absorbed.burst.text", written_bytes=written, cache_bytes=cache),
            evidence={"written_bytes": written, "cache_bytes": cache},
            advice=say("audit.writeback_absorbed.burst.advice", least_bytes=CACHES * cache),
            layer="storage cache",
        ),
    )


RULE: Final = Rule(
    name="writeback_absorbed",
    asks="Did the writes reach the storage while they were counted?",
    basis="bytes written against the block layer's own count of bytes moved; SNIA on write caches",
    judge=_judge,
)
