"""Rule `page_cache_read`: reads were served from memory of this host and never reached the storage.

Compares the bytes that were read with the bytes that the devices nearest under the targets moved
in the same seconds. Of reads that do not go past the page cache, fewer bytes from the device are
cache hits; reads of holes, and of compressed data, are other rules' business. Where nothing was
counted, the sizes of data and memory tell what they can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask, declared, reached
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

READ_AHEAD: Final = 0.7
"""Fewer I/Os than this of those asked for, at random places: pages that lay beside were in memory."""
ADVICE: Final = (
    "read past the page cache (direct=1), or drop the cache and read much more than the memory of the host"
)


def _judge(case: Case) -> Answer:
    if not ask.does(case, "read") or ask.virtual(case):
        return NotMine()
    in_memory = ask.in_memory(case)
    if in_memory is not None:
        return (reached.memory(in_memory),)
    buffered = ask.buffered(case)
    share = case.traffic.share("read") if case.traffic is not None else None
    if share is None:
        return _uncounted(case, buffered=buffered)
    if share < reached.enough(case):
        return _missed(case, share, buffered=buffered)
    if buffered and ask.random(case) and _read_ahead(case):
        return (_from_read_ahead(case),)
    return Clear()


def _uncounted(case: Case, *, buffered: bool | None) -> Answer:
    """Answer by what is stated of the system, where nothing counted what reached the storage."""
    if declared.only_heads(case) or declared.too_large_for_memory(case):
        return Clear()
    if declared.as_specified(case, "read"):
        return Clear()
    inside = declared.fits_memory(case)
    if buffered and inside is not None:
        return (_fits(case, *inside),)
    what = f"how many of the bytes read came from the storage under {ask.where(case)}"
    return CannotTell(what, essential=buffered is not False)


def _fits(case: Case, data_bytes: int, memory_bytes: int) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.7,
        text=f"{units.size(data_bytes)} were read through the page cache of a host with "
        f"{units.size(memory_bytes)} of memory: less than twice as much may have stayed in it.",
        evidence={"data_bytes": data_bytes, "memory_bytes": memory_bytes},
        advice=_advice(case),
        layer="page cache",
    )


def _missed(case: Case, share: float, *, buffered: bool | None) -> Answer:
    if reached.unwritten(case) or ask.reducing(case):
        return Clear()
    evidence = reached.evidence(case, "read")
    from_memory = f"{100 * (1 - share):.0f} %"
    return (
        Finding(
            effect="not_valid",
            # Past the cache and still not at the device: some cache did it, though not surely this one.
            confidence=0.97 if buffered else 0.75,
            text=f"{from_memory} of the bytes read came from memory: "
            f"{units.size(float(evidence['device_bytes']))} reached {ask.under(case)} "
            f"of {units.size(float(evidence['asked_bytes']))} read.",
            evidence=evidence,
            advice=_advice(case),
            layer="page cache",
            chart=reached.chart(case, "read"),
        ),
    )


def _advice(case: Case) -> str:
    """Say how to read from the storage; who reads past the page cache already needs another cache's name."""
    if ask.buffered(case) is False:
        return (
            "the reads went past the page cache: look for a cache below (a loop device without direct I/O, a "
            "cache device, an array), or read much more than it holds"
        )
    return ADVICE


def _read_ahead(case: Case) -> bool:
    traffic = case.traffic
    asked = traffic.asked["read"].ios if traffic is not None else 0.0
    return traffic is not None and traffic.moved["read"].ios < READ_AHEAD * asked


def _from_read_ahead(case: Case) -> Finding:
    evidence = reached.evidence(case, "read")
    return Finding(
        effect="not_valid",
        confidence=0.85,
        text=f"The device did {units.count(float(evidence['device_ios']))} reads for "
        f"{units.count(float(evidence['asked_ios']))} asked for at random places: the others "
        "were in memory already, read ahead.",
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
