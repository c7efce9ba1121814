"""Rule `background_work`: the storage rebuilt, checked, balanced or trimmed while it was measured.

Such work takes the disks' time from the load, and how much of it is a setting of the storage, so that
the number is of this moment. Less than a tenth of the time is told as a note. Trims that the load did
not ask for count on disks that move its bytes in the same seconds, from 1 MiB/s on and 64 MiB in all: less
is a file system's ordinary discarding, and on other disks it is another one's work. So are writes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import monitor_readings, watched_hosts
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched

LONG: Final = 0.1
LEAST_TRIM_BYTES: Final = 64 << 20
LEAST_TRIM_BYTES_PER_S: Final = float(1 << 20)
LEAST_FOREIGN_BYTES_PER_S: Final = 5e6
FOREIGN: Final = 0.2
"""Of the load's own rate: below it journals and time stamps explain it."""


def _judge(case: Case) -> Answer:
    return watched_hosts.each(case, _host) if case.watched else NotMine()


def _host(case: Case, host: Watched) -> Answer:
    if host.kind == "snmp":
        return cannot_tell("audit.background_work.snmp", host=host.name)
    findings = [*_work(host), *_trims(case, host), *_writes(case, host)]
    if findings:
        return tuple(findings)
    return (
        Clear()
        if host.lowest_disks or host.things("work")
        else cannot_tell("audit.background_work.counters", host=host.name)
    )


def _work(host: Watched) -> list[Finding]:
    findings = []
    for thing in host.things("work"):
        running = monitor_readings.levels(host.rows, f"work.{thing}.running")
        share = sum(running) / len(running) if running else 0.0
        if share:
            kinds = _kinds(host, thing)
            findings.append(
                Finding(
                    effect="suspect" if share >= LONG else "note",
                    confidence=0.8,
                    text=say(
                        "audit.background_work.running.text",
                        host=host.name,
                        work=kinds,
                        where=thing,
                        time_share=share,
                    ),
                    evidence={"work": kinds, "of_the_time_percent": 100 * share, "watched_s": host.seconds},
                    advice=say("audit.background_work.running.advice", host=host.name),
                    layer=f"disks of {host.name}",
                )
            )
        if any(monitor_readings.levels(host.rows, f"work.{thing}.degraded")):
            findings.append(
                Finding(
                    effect="suspect",
                    confidence=0.7,
                    text=say("audit.background_work.degraded.text", host=host.name, where=thing),
                    evidence={"degraded": thing},
                    advice=say("audit.background_work.degraded.advice", host=host.name),
                    layer=f"disks of {host.name}",
                )
            )
    return findings


def _kinds(host: Watched, thing: str) -> str:
    plain = ("running", "degraded")
    names = [name.rpartition(".")[2] for name in host.rows.columns if name.startswith(f"work.{thing}.")]
    kinds = [
        one
        for one in names
        if one not in plain and any(monitor_readings.levels(host.rows, f"work.{thing}.{one}"))
    ]
    return " and ".join(one.replace("_", " ") for one in kinds) or "work"


def _trims(case: Case, host: Watched) -> list[Finding]:
    requested = watched_hosts.asked(case, host, "trim")
    # A disk that carries the load is in step with it; what others are told to trim is not the load's.
    disks = {disk for op in ("read", "write") for disk in watched_hosts.in_step(case, host, op) or ()}
    trimmed = host.moved("trim_bytes", sorted(disks))
    if trimmed is None or requested is None:
        return []
    more = trimmed - requested.bytes
    if more < LEAST_TRIM_BYTES or more / host.seconds < LEAST_TRIM_BYTES_PER_S:
        return []
    return [
        Finding(
            effect="suspect",
            confidence=0.7,
            text=say(
                "audit.background_work.trim.text",
                host=host.name,
                trimmed_bytes=trimmed,
                asked_bytes=requested.bytes,
            ),
            evidence={"trimmed_bytes": trimmed, "asked_bytes": requested.bytes, "watched_s": host.seconds},
            advice=say("audit.background_work.trim.advice", host=host.name),
            layer=f"disks of {host.name}",
        )
    ]


def _writes(case: Case, host: Watched) -> list[Finding]:
    """Tell writes at the disks while the load wrote nothing; on our own machine they are anybody's."""
    write, read = watched_hosts.asked(case, host, "write"), watched_hosts.asked(case, host, "read")
    written = host.moved("write_bytes", watched_hosts.in_step(case, host, "read"))
    if host.same_host or write is None or read is None or written is None or write.bytes or not read.bytes:
        return []
    rate, own = written / host.seconds, read.bytes / host.seconds
    if rate < LEAST_FOREIGN_BYTES_PER_S or rate < FOREIGN * own:
        return []
    return [
        Finding(
            effect="suspect",
            confidence=0.6,
            text=say("audit.background_work.writes.text", host=host.name, written_bytes_per_s=rate),
            evidence={"written_bytes_per_s": rate, "load_bytes_per_s": own, "watched_s": host.seconds},
            advice=say("audit.background_work.writes.advice", host=host.name),
            layer=f"disks of {host.name}",
        )
    ]


RULE: Final = Rule(
    name="background_work",
    asks="Did the storage do work of its own meanwhile?",
    basis="a rebuild, check, scrub or balance on a watched host. 64 MiB of trims that the job did not ask "
    "for. Writes at its disks during a load that only reads",
    judge=_judge,
    scope="either",
)
