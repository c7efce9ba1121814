"""Rule `foreign_load`: somebody else used the same device while it was measured.

What the device moved and the run did not ask for, from whichever of its hosts, is of somebody
else: another program or a rebuild. Only said where one byte of the job is one byte of the device.

Under a file it may be the file system's own: its journal, or a new one's inode tables that are
zeroed in the background. The kernel counts such writes for no process, and they do not come out of
the page cache, where those of most other programs come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, monitor_readings, reached_storage
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import CarrierTraffic, Case
    from loadstone.path.layers import Layer
    from loadstone.verdict import Chart, Effect

EXCESS: Final = 0.05
MUCH: Final = 0.20
IOS_EXCESS: Final = 0.10
LEAST_BYTES_PER_S: Final = 256 * 1024
LEAST_IOS_PER_S: Final = 20.0
COPYING: Final = ("btrfs", "zfs", "bcachefs", "f2fs")
"""File systems that write more than they are given, by design."""
PARITY: Final = ("raid4", "raid5", "raid6")


@dataclass(frozen=True, slots=True)
class _Whose:
    """Of whom the excess is, which message says so, and how sure that is."""

    effect: Effect
    confidence: float
    key: str
    advice: str = "audit.foreign_load.other.advice"
    cached_bytes: float | None = None


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case) or case_queries.in_memory(case):
        return NotMine()
    beside = _beside(case)
    if beside is not None:
        return (beside,)
    traffic = case.traffic
    if traffic is None:
        return cannot_tell("audit.foreign_load.device", where=case_queries.where(case))
    hidden = _hidden(case, traffic)
    return hidden or _excess(case, traffic)


def _hidden(case: Case, traffic: CarrierTraffic) -> CannotTell | None:
    """Return what keeps the job's I/Os from being told from others at the device."""
    if case_queries.buffered(case):
        return cannot_tell("audit.foreign_load.buffered")
    programs = [layers[0].name for one in case.targets if (layers := case_queries.user_space_layers(one))]
    if programs:
        return cannot_tell("audit.foreign_load.user_space", layer=programs[0])
    parity = _parity(case)
    if parity is not None and traffic.asked["write"].ios:
        return cannot_tell("audit.foreign_load.parity", layer=parity)
    return None


def _excess(case: Case, traffic: CarrierTraffic) -> Answer:
    own = _own_work(case, traffic)
    requested, moved = _bytes(traffic, own=own), _bytes(traffic, own=own, moved=True)
    excess_bytes, excess_ios = moved[0] - requested[0], moved[1] - requested[1]
    more_bytes = excess_bytes > (EXCESS + reached_storage.EDGES_S / traffic.seconds) * requested[0]
    visible = excess_bytes / traffic.seconds > LEAST_BYTES_PER_S or (
        excess_ios > IOS_EXCESS * requested[1] and excess_ios / traffic.seconds > LEAST_IOS_PER_S
    )
    if not more_bytes or not visible:
        return Clear()
    return (_finding(case, traffic, requested[0], excess_bytes, did="read" if own else "moved"),)


def _beside(case: Case) -> Finding | None:
    """Look at the disks under partitions: what they move for other partitions is of somebody else."""
    carriers = {name for target in case.targets for name in target.carriers}
    layers = [layer for one in case.targets if one.path_layers for layer in one.path_layers.layers]
    known = {layer.name: layer.counters for layer in layers}
    parts = [layer for layer in layers if layer.kind == "partition" and layer.counters in carriers]
    for part in parts:
        disk = next((known.get(name) for name in part.below if known.get(name)), None)
        own, whole = (
            monitor_readings.total(case.host, f"{prefix}.read_bytes", f"{prefix}.write_bytes")
            for prefix in (part.counters, disk)
        )
        seconds = monitor_readings.seconds(case.host)
        if own is None or whole is None or not seconds:
            continue
        other = whole - own - _of_our_hosts(case, part, carriers)
        if other / seconds >= LEAST_BYTES_PER_S and other > EXCESS * own:
            return _other_partitions(str(part.below[0]), part.name, own, other, seconds)
    return None


def _of_our_hosts(case: Case, part: Layer, carriers: set[str]) -> float:
    """Return the bytes that other hosts of the run on this machine moved on the disk's other partitions."""
    partitions = {
        layer.counters
        for load in case.beside
        for layer in load.layers
        if layer.kind == "partition" and layer.below == part.below and layer.counters not in carriers
    }
    columns = [f"{name}.{op}_bytes" for name in partitions for op in ("read", "write")]
    return monitor_readings.total(case.host, *columns) or 0.0


def _other_partitions(disk: str, part: str, own: float, other: float, seconds: float) -> Finding:
    return Finding(
        effect="limited",
        confidence=0.9 if other > MUCH * own else 0.75,
        text=say(
            "audit.foreign_load.partitions.text",
            disk=disk,
            other_bytes_per_s=other / seconds,
            part=part,
            own_bytes_per_s=own / seconds,
        ),
        evidence={"partition_bytes": round(own), "other_bytes": round(other), "device": disk},
        advice=say("audit.foreign_load.partitions.advice"),
        layer=f"another load on {disk}",
    )


def _own_work(case: Case, traffic: CarrierTraffic) -> bool:
    """Whether the file system writes of its own so much that only reads can be compared."""
    copies = (traffic.copies or 1.0) > 1.0 or len(traffic.carriers) > len(case.targets)
    # A durable write to a file is a write to its journal, too.
    journal = _on_files(case) and any(job.synchronous or job.flushes for job in case.jobs)
    return copies or journal or any(target.file_system in COPYING for target in case.targets)


def _parity(case: Case) -> str | None:
    """Return a layer that keeps parity: a write smaller than its stripe reads before it writes."""
    for target in case.targets:
        for layer in target.path_layers.layers if target.path_layers else ():
            profile = f"{layer.facts.get('data_profile', '')} {layer.facts.get('level', '')}"
            if any(level in profile for level in PARITY):
                return layer.name
    return None


def _on_files(case: Case) -> bool:
    return any(not target.is_disk for target in case.targets)


def _over_files(case: Case) -> bool:
    """Whether a device under a target is itself a file, whose page cache the job's own writes go through."""
    paths = [target.path_layers for target in case.targets if target.path_layers is not None]
    return any(layer.kind == "loop" for path in paths for layer in path.layers)


def _bytes(traffic: CarrierTraffic, *, own: bool, moved: bool = False) -> tuple[float, float]:
    table = traffic.moved if moved else traffic.asked
    op_traffic = [table["read"]] if own else [table["read"], table["write"]]
    return sum(one.bytes for one in op_traffic), sum(one.ios for one in op_traffic)


def _finding(case: Case, traffic: CarrierTraffic, asked: float, excess: float, *, did: str) -> Finding:
    """Tell of an excess; `did`: what was compared, where a file system's own writes leave reads alone."""
    share = excess / asked if asked else float("inf")
    reads = traffic.moved["read"].bytes - traffic.asked["read"].bytes
    more = f" ({100 * share:.0f} % more)" if share < 10 else ""
    whose = _Whose("limited", 0.95 if share > MUCH else 0.8, "audit.foreign_load.other.text")
    evidence: dict[str, float | int | str] = {
        "asked_bytes": round(asked),
        "device_bytes": round(asked + excess),
        "foreign_bytes_per_s": round(excess / traffic.seconds),
        "device": case_queries.under(case),
    }
    if _on_files(case) and reads < excess / 2:
        cached = None if _over_files(case) else monitor_readings.total(case.host, "vm.cleaned_bytes")
        whose = _of_whom(share, excess, cached)
        evidence |= {} if cached is None else {"page_cache_bytes": round(cached)}
    return Finding(
        effect=whose.effect,
        confidence=whose.confidence,
        text=say(
            whose.key,
            device=case_queries.under(case),
            did=did,
            device_bytes_per_s=(asked + excess) / traffic.seconds,
            job_bytes_per_s=asked / traffic.seconds,
            more=more,
            **({} if whose.cached_bytes is None else {"cached_bytes": whose.cached_bytes}),
        ),
        evidence=evidence,
        advice=say(whose.advice),
        layer=f"another load on {case_queries.under(case)}",
        chart=_chart(case),
    )


def _of_whom(share: float, excess: float, cached: float | None) -> _Whose:
    """Tell whose writes are likely that came to a device under a file; the job's own are direct."""
    if cached is None:
        return _Whose("suspect", 0.6, "audit.foreign_load.unknown.text")
    if cached > excess / 2:
        return _Whose("limited", 0.75, "audit.foreign_load.cached.text", cached_bytes=cached)
    return _Whose(
        "suspect" if share > MUCH else "note",
        0.6,
        "audit.foreign_load.journal.text",
        "audit.foreign_load.journal.advice",
    )


def _chart(case: Case) -> Chart | None:
    if case.traffic is None:
        return None
    moved = case.traffic.moved
    return reached_storage.chart(case, "read" if moved["read"].bytes >= moved["write"].bytes else "write")


RULE: Final = Rule(
    name="foreign_load",
    asks="Was the device the job's alone?",
    basis="bytes at the device above those asked for, by more than 5 %, in the same seconds",
    judge=_judge,
)
