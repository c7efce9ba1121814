"""Rule `volatile_ack`: writes counted as done while they lay in a cache that forgets.

That is how most benchmarks are run and no mistake; it is told so that nobody takes the rate for
one of durable writes. Where durability was asked for and the device never saw a flush, or flushes
faster than its platters turn, it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.audit import case_queries
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case

TURNS_PER_S: Final = 250.0
"""Of the fastest disks (15,000 a minute): one durable write each turn and place."""


def _judge(case: Case) -> Answer:
    if not case_queries.does(case, "write") or case_queries.virtual(case) or case_queries.in_memory(case):
        return NotMine()
    if all(job.synchronous for job in case.jobs):
        return _durable(case)
    if case_queries.buffered(case):
        # What lies in the host's own memory is `writeback_absorbed`'s business.
        return NotMine()
    caches = _caches(case)
    if caches is None:
        return cannot_tell("audit.volatile_ack.mode")
    if "write back" not in caches.values():
        return Clear()
    names = case_queries.names(name for name, kind in caches.items() if kind == "write back")
    key = "audit.volatile_ack.flushed_sometimes.text" if _flushes(case) else "audit.volatile_ack.cached.text"
    return (
        Finding(
            effect="note",
            confidence=0.7,
            text=say(key, device=names),
            evidence={"write_cache": "write back", "device": names},
            advice=say("audit.volatile_ack.cached.advice"),
            layer="device cache",
        ),
    )


def _flushes(case: Case) -> bool:
    return any(job.synchronous or job.flushes for job in case.jobs)


def _durable(case: Case) -> Answer:
    traffic, caches = case.traffic, _caches(case)
    if traffic is None or caches is None:
        return cannot_tell("audit.volatile_ack.flushes")
    writes = case.ops["write"].iops if "write" in case.ops else None
    cached = "write back" in caches.values()
    if cached and not traffic.flushes and traffic.asked["write"].ios >= 1:
        return (_never_flushed(case, traffic.asked["write"].ios),)
    spinning = all(target.rotational for target in case.targets) and bool(case.targets)
    declared = case.declared.rotational if case.declared is not None else None
    spindles = (case.declared.spindles if case.declared is not None else None) or 1
    if (declared or (declared is None and spinning and _is_disk(case))) and writes is not None:
        clones = sum(job.clones or 1 for job in case.jobs)
        most = TURNS_PER_S * spindles * clones
        if writes.value > most:
            return (_too_fast(writes.value, most, spindles),)
    return Clear()


def _never_flushed(case: Case, writes: float) -> Finding:
    return Finding(
        effect="not_valid",
        confidence=0.85,
        text=say(
            "audit.volatile_ack.never_flushed.text",
            device=case_queries.under(case),
            durable_ios=round(writes),
        ),
        evidence={"writes": round(writes), "flushes": 0, "device": case_queries.under(case)},
        advice=say("audit.volatile_ack.never_flushed.advice"),
        layer="device cache",
    )


def _too_fast(rate: float, most: float, spindles: int) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.8,
        text=say("audit.volatile_ack.too_fast.text", durable_iops=rate, possible_iops=most),
        evidence={"write_iops": rate, "possible_iops": most, "spindles": spindles},
        advice=say("audit.volatile_ack.too_fast.advice"),
        layer="device cache",
    )


def _is_disk(case: Case) -> bool:
    """Whether what says that it rotates is a disk and no loop device, which only hands that on."""
    return all(not name.startswith(("block.loop", "nfs.")) for t in case.targets for name in t.carriers)


def _caches(case: Case) -> dict[str, str] | None:
    """Return the cache mode of each carrier, None when one does not tell."""
    devices: dict[str, Any] = (case.environment or {}).get("devices", {})
    names = [name.partition(".")[2] for target in case.targets for name in target.carriers]
    cache_modes = {name: devices.get(name, {}).get("queue", {}).get("write_cache") for name in names}
    return cache_modes if cache_modes and all(cache_modes.values()) else None


RULE: Final = Rule(
    name="volatile_ack",
    asks="Were writes durable when they counted as done?",
    basis="the device's cache mode and the flushes it counted; one durable write for each turn of a platter",
    judge=_judge,
)
