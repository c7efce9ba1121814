"""Rule `write_amplification`: how many bytes the storage's disks wrote for each byte of the load.

Copies, parity, logs and whole records are the price of a layout, not a fault: two copies are a factor
of 2, a full stripe of 4 + 1 one of 1.25, small writes to parity 2 and more, copy on write with
records of 128 KiB up to 32. So it is a note. Below ten seconds what lies in memory at the edges weighs too
much, and below 1.2 nothing is amplified that an edge could not explain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import watched_hosts
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched

MORE: Final = 1.2
LEAST_BYTES: Final = 16 << 20
LEAST_S: Final = 8.0


def _judge(case: Case) -> Answer:
    return watched_hosts.each(case, _host) if case.watched else NotMine()


def _host(case: Case, host: Watched) -> Answer:
    asked = watched_hosts.asked(case, host, "write")
    if asked is None or asked.bytes < LEAST_BYTES:
        return NotMine()
    moved = host.moved("write_bytes")
    if moved is None:
        return cannot_tell("audit.write_amplification.disks", host=host.name)
    if host.seconds < LEAST_S:
        return cannot_tell("audit.write_amplification.short", host=host.name, seen_s=host.seconds)
    factor = moved / asked.bytes
    if factor < MORE:
        return Clear()
    writes = host.moved("writes")
    return (
        Finding(
            effect="note",
            confidence=0.8,
            text=say(
                "audit.write_amplification.more.text",
                host=host.name,
                factor_count=factor,
                disks_bytes=moved,
                asked_bytes=asked.bytes,
            ),
            evidence={
                "factor": float(f"{factor:.3g}"),
                "asked_bytes": asked.bytes,
                "disks_bytes": moved,
                **(
                    {"disks_writes_per_write": float(f"{writes / asked.ios:.3g}")}
                    if writes and asked.ios
                    else {}
                ),
                "disks": ", ".join(host.lowest_disks[:8]),
                "watched_s": host.seconds,
            },
            advice=say("audit.write_amplification.more.advice"),
            layer=f"disks of {host.name}",
        ),
    )


RULE: Final = Rule(
    name="write_amplification",
    asks="How many bytes did the disks write for each byte of the load?",
    basis="bytes written by the lowest disks of a watched host over 1.2 times the load's, in 8 s and more",
    judge=_judge,
)
