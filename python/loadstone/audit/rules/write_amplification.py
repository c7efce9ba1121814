"""Rule `write_amplification`: how many bytes the storage's disks wrote for each byte of the load.

Copies, parity, logs and whole records are the price of a layout, not a fault: two copies are a factor
of 2, a full stripe of 4 + 1 one of 1.25, small writes to parity 2 and more, copy on write with
records of 128 KiB up to 32. So it is a note. Below ten seconds what lies in memory at the edges weighs too
much, and below 1.2 nothing is amplified that an edge could not explain.

Disks that wrote in the same seconds as the load, and all of it, carry it; what the others wrote may be
another load's, or what a cache writes later, and is not held against the load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import watched_hosts
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched

MORE: Final = 1.2
LEAST_BYTES: Final = 16 << 20
LEAST_S: Final = 8.0


def _judge(case: Case) -> Answer:
    return watched_hosts.each(case, _host) if case.watched else NotMine()


def _host(case: Case, host: Watched) -> Answer:
    requested = watched_hosts.asked(case, host, "write")
    if requested is None or requested.bytes < LEAST_BYTES:
        return NotMine()
    all_moved = host.moved("write_bytes")
    if all_moved is None:
        return cannot_tell("audit.write_amplification.disks", host=host.name)
    if host.seconds < LEAST_S:
        return cannot_tell("audit.write_amplification.short", host=host.name, seen_s=host.seconds)
    if all_moved < MORE * requested.bytes:
        return Clear()
    disks = watched_hosts.in_step(case, host, "write")
    moved = 0.0 if disks is None else host.moved("write_bytes", disks) or 0.0
    factor, others = moved / requested.bytes, all_moved - moved
    if disks is None or factor < MORE:
        return _others(host, others)
    writes = host.moved("writes", disks)
    return (
        Finding(
            effect="note",
            confidence=0.8,
            text=say(
                "audit.write_amplification.more.text",
                host=host.name,
                factor_count=factor,
                disks_bytes=moved,
                asked_bytes=requested.bytes,
            ),
            evidence={
                "factor": float(f"{factor:.3g}"),
                "asked_bytes": requested.bytes,
                "disks_bytes": moved,
                **(
                    {"disks_writes_per_write": float(f"{writes / requested.ios:.3g}")}
                    if writes and requested.ios
                    else {}
                ),
                "disks": ", ".join(_busiest(host, disks)),
                "watched_s": host.seconds,
            },
            advice=say("audit.write_amplification.more.advice"),
            layer=f"disks of {host.name}",
        ),
    )


def _others(host: Watched, written_bytes: float) -> CannotTell:
    return cannot_tell("audit.write_amplification.others", host=host.name, written_bytes=written_bytes)


def _busiest(host: Watched, disks: Sequence[str]) -> list[str]:
    """Return the disks that wrote, those first that wrote most."""
    written = {disk: host.moved("write_bytes", [disk]) or 0.0 for disk in disks}
    return sorted((disk for disk in disks if written[disk]), key=lambda disk: -written[disk])[:8]


RULE: Final = Rule(
    name="write_amplification",
    asks="How many bytes did the disks write for each byte of the load?",
    basis="bytes written by the disks that carry the load over 1.2 times its own, in 8 s and more",
    judge=_judge,
    scope="either",
)
