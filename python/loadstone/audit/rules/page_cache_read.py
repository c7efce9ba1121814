"""Rule `page_cache_read`: reads were served from memory of this host and never reached the storage.

Compares the bytes that were read with the bytes that the devices nearest under the targets moved
in the same seconds. Of reads that do not go past the page cache, fewer bytes from the device are
cache hits; reads of holes, and of compressed data, are other rules' business. Where nothing was
counted, the sizes of data and memory tell what they can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, declared_system, reached_storage
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

CACHED: Final = 0.2
"""With this part of the reads from memory a rate is another one."""
KEPT: Final = 0.9
"""A file of which this part lies in memory was kept there."""
READ_AHEAD: Final = 0.7
"""Fewer I/Os than this of those asked for, at random places: pages that lay beside were in memory."""


def _judge(case: Case) -> Answer:
    if not case_queries.does(case, "read") or case_queries.virtual(case):
        return NotMine()
    in_memory = case_queries.in_memory(case)
    if in_memory is not None:
        return (reached_storage.memory(in_memory),)
    buffered = case_queries.buffered(case)
    share = case.traffic.share("read") if case.traffic is not None else None
    if share is None:
        return _uncounted(case, buffered=buffered)
    if share < reached_storage.enough(case):
        return _missed(case, share, buffered=buffered)
    if buffered and case_queries.random(case) and _read_ahead(case):
        return (_from_read_ahead(case),)
    return Clear()


def _uncounted(case: Case, *, buffered: bool | None) -> Answer:
    """Answer by what is stated of the system, where nothing counted what reached the storage."""
    if declared_system.only_heads(case) or declared_system.too_large_for_memory(case):
        return Clear()
    if declared_system.as_specified(case, "read"):
        return Clear()
    cached = _cached_share(case) if buffered else None
    if cached is not None and cached >= CACHED:
        return (_cached(case, cached),)
    inside = declared_system.fits_memory(case)
    if buffered and inside is not None:
        return (_fits(case, *inside),)
    return cannot_tell(
        "audit.page_cache_read.device", essential=buffered is not False, where=case_queries.where(case)
    )


def _cached_share(case: Case) -> float | None:
    """Return at least which part of the reads found their files in the page cache; None: nobody asked it.

    What lay there before was found; so was all that was read again of a file that lies there after.
    """
    files = [one for one in case.targets if one.kind == "file" and one.size_bytes]
    if not files or len(files) < len(case.targets) or any(one.cached_bytes_before is None for one in files):
        return None
    size = sum(one.size_bytes or 0 for one in files)
    before = sum(one.cached_bytes_before or 0 for one in files) / size
    after = sum(one.cached_bytes_after or 0 for one in files) / size
    read = (case.ops["read"].bytes or 0) if "read" in case.ops else 0
    again = 1 - size / read if read > size and after >= KEPT else 0.0
    return min(1.0, max(before, again))


def _cached(case: Case, share: float) -> Finding:
    return Finding(
        effect="not_valid",
        confidence=0.9,
        text=say(
            "audit.page_cache_read.lies.text",
            cached_share=share,
            limit_share=CACHED,
            where=case_queries.where(case),
        ),
        evidence={"cached_share": round(share, 3)},
        advice=_advice(case),
        layer="page cache",
    )


def _fits(case: Case, data_bytes: int, memory_bytes: int) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.7,
        text=say("audit.page_cache_read.fits.text", data_bytes=data_bytes, memory_bytes=memory_bytes),
        evidence={"data_bytes": data_bytes, "memory_bytes": memory_bytes},
        advice=_advice(case),
        layer="page cache",
    )


def _missed(case: Case, share: float, *, buffered: bool | None) -> Answer:
    if reached_storage.unwritten(case) or reached_storage.reduction_explains(case, share):
        return Clear()
    evidence = reached_storage.evidence(case, "read")
    return (
        Finding(
            effect="not_valid",
            # Past the cache and still not at the device: some cache did it, though not surely this one.
            confidence=0.97 if buffered else 0.75,
            # fio stops counting a little before its end: what it may have missed is added.
            text=say(
                f"audit.page_cache_read.{'served' if case.source == 'bundle' else 'served_at_most'}.text",
                cached_share=1 - min(share, 1.0),
                device_bytes=float(evidence["device_bytes"]),
                read_bytes=float(evidence["asked_bytes"]),
                device=case_queries.under(case),
            ),
            evidence=evidence,
            advice=_advice(case),
            layer="page cache",
            chart=reached_storage.chart(case, "read"),
        ),
    )


def _advice(case: Case) -> str:
    """Say how to read from the storage; who reads past the page cache already needs another cache's name."""
    direct = case_queries.buffered(case) is False
    return say("audit.page_cache_read.below.advice" if direct else "audit.page_cache_read.served.advice")


def _read_ahead(case: Case) -> bool:
    traffic = case.traffic
    requested_ios = traffic.asked["read"].ios if traffic is not None else 0.0
    return traffic is not None and traffic.moved["read"].ios < READ_AHEAD * requested_ios


def _from_read_ahead(case: Case) -> Finding:
    evidence = reached_storage.evidence(case, "read")
    return Finding(
        effect="not_valid",
        confidence=0.85,
        text=say(
            "audit.page_cache_read.readahead.text",
            device=case_queries.under(case),
            device_ios=float(evidence["device_ios"]),
            job_ios=float(evidence["asked_ios"]),
        ),
        evidence=evidence,
        advice=_advice(case),
        layer="page cache",
    )


RULE: Final = Rule(
    name="page_cache_read",
    asks="Did the reads reach the storage?",
    basis="bytes asked for against the block layer's own count of bytes moved, in the same seconds",
    judge=_judge,
)
