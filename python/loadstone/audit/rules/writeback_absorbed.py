"""Rule `writeback_absorbed`: writes were done when they lay in memory, and the storage saw them later.

Compares bytes written with bytes that the devices moved in the same seconds. A cache below the
device is not seen by this; it is held against its size where somebody states that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask, declared, reached
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

CACHES: Final = 2.0
"""Less than this many cache sizes written is a burst into the cache."""
SMALL: Final = 0.2
"""A cache that can hold less than this part of what was written is not why it was fast."""


def _judge(case: Case) -> Answer:
    if not ask.does(case, "write") or ask.virtual(case):
        return NotMine()
    in_memory = ask.in_memory(case)
    if in_memory is not None:
        return (reached.memory(in_memory),)
    buffered = ask.buffered(case)
    share = case.traffic.share("write") if case.traffic is not None else None
    if share is not None and case.traffic is not None:
        share /= case.traffic.copies or 1.0
    if share is None and buffered is not False and not all(job.synchronous for job in case.jobs):
        return _uncounted(case, buffered=buffered)
    if buffered and share is not None and share < reached.enough(case) and not _reduced(case):
        return (_absorbed(case, share),)
    return _in_device_cache(case)


def _uncounted(case: Case, *, buffered: bool | None) -> Answer:
    """Answer by what is stated of the system, where nothing counted what reached the storage."""
    memory = case.declared.memory_bytes if case.declared is not None else None
    kept = declared.kept_share(case, memory) if memory is not None else None
    written = declared.written_bytes(case)
    if declared.as_specified(case, "write") or declared.only_heads(case):
        return Clear()
    if kept is not None and kept < SMALL and written and memory is not None:
        return (_explains(written, memory, "memory"),)
    inside = declared.fits_memory(case)
    if buffered and inside is not None:
        return (_fits(case, *inside),)
    what = f"how many of the bytes written reached the storage under {ask.where(case)}"
    flushed = any(job.end_fsync for job in case.jobs)
    return CannotTell(what, essential=buffered is not False and not flushed)


def _fits(case: Case, data_bytes: int, memory_bytes: int) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.7,
        text=f"{units.size(data_bytes)} were written through the page cache of a host with "
        f"{units.size(memory_bytes)} of memory, where they can be written again and again.",
        evidence={"data_bytes": data_bytes, "memory_bytes": memory_bytes},
        advice=_advice(case),
        layer="page cache",
    )


def _advice(case: Case) -> str:
    """Say how to count what reaches the storage, as far as it was not done."""
    if ask.buffered(case) is False:
        return (
            "the writes went past the page cache: look for memory below (a loop device without direct I/O, a "
            "cache device), or run much longer than it takes to fill"
        )
    if all(job.end_fsync for job in case.jobs) and case.jobs:
        return "write past the page cache (direct=1), or run so long that the flush at the end weighs little"
    return "write past the page cache (direct=1), or count the flush: end_fsync=1 and a long run"


def _explains(written: float, cache_bytes: int, what: str) -> Finding:
    share = 100 * cache_bytes / written
    return Finding(
        effect="note",
        confidence=0.9,
        text=f"{units.size(written)} were written and {units.size(cache_bytes)} of {what} can still hold "
        f"{share:.0f} % of that at the end: it explains so much of the rate at most, and the rest "
        "went to the storage.",
        evidence={"written_bytes": written, "cache_bytes": cache_bytes, "explained_percent": share},
        advice="nothing: the cache is too small to be the reason",
        layer="storage cache" if what == "cache" else "page cache",
    )


def _reduced(case: Case) -> bool:
    """Whether a file system that compresses is why the device saw less."""
    return bool(ask.reducing(case)) and all(job.synchronous or job.end_fsync for job in case.jobs)


def _absorbed(case: Case, share: float) -> Finding:
    evidence = reached.evidence(case, "write")
    return Finding(
        effect="not_valid",
        confidence=0.97,
        text=f"{100 * (1 - min(share, 1)):.0f} % of the bytes written were still in memory when they "
        f"counted as done: {units.size(float(evidence['device_bytes']))} reached {ask.under(case)} "
        f"of {units.size(float(evidence['asked_bytes']))} written.",
        evidence=evidence,
        advice=_advice(case),
        layer="page cache",
        chart=reached.chart(case, "write"),
    )


def _in_device_cache(case: Case) -> Answer:
    cache = case.declared.cache_bytes if case.declared is not None else None
    written = case.ops["write"].bytes if "write" in case.ops else None
    if not cache or not written:
        return Clear()
    if written >= CACHES * cache:
        kept = declared.kept_share(case, cache)
        return (_explains(written, cache, "cache"),) if kept is not None and kept < SMALL else Clear()
    return (
        Finding(
            effect="suspect",
            confidence=0.7,
            text=f"{units.size(written)} were written to storage with a cache of {units.size(cache)}: "
            "the rate may be that of the cache.",
            evidence={"written_bytes": written, "cache_bytes": cache},
            advice=f"write at least {units.size(CACHES * cache)} before measuring",
            layer="storage cache",
        ),
    )


RULE: Final = Rule(
    name="writeback_absorbed",
    asks="Did the writes reach the storage while they were counted?",
    basis="bytes written against the block layer's own count of bytes moved; SNIA on write caches",
    judge=_judge,
)
