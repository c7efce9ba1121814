"""Rule `storage_disk`: a disk of the storage was busy all the time.

That is what a load test of storage is there to find, so it speaks against nothing: it says which disk
set the number. A disk that always has something to do is full when it does one thing at a time
(rotating media, a limited volume); flash that is busy may still take more at once, which is why the
mean number in its queue is told beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import watched_hosts
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.audit.watched_hosts import DISK_BUSY_PERCENT
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched


def _judge(case: Case) -> Answer:
    return watched_hosts.each(case, _host) if case.watched else NotMine()


def _host(case: Case, host: Watched) -> Answer:
    del case
    known = host.disks_use
    if not known:
        return cannot_tell("audit.storage_disk.counters", host=host.name)
    disk, busy = next(iter(known.items()))
    if busy.mean.value < DISK_BUSY_PERCENT:
        return Clear()
    full = [one for one in known.values() if one.mean.value >= DISK_BUSY_PERCENT]
    queue = host.track(f"disk_{disk}_queue")
    evidence: dict[str, float | int | str] = {
        "disk": disk,
        "busy_percent": min(100.0, busy.mean.value),
        "busy_disks": len(full),
        "disks": len(known),
        "watched_s": host.seconds,
    }
    if queue is not None:
        evidence["mean_queue"] = float(f"{queue.mean.value:.3g}")
    return (
        Finding(
            effect="note",
            confidence=0.85,
            text=say(
                "audit.storage_disk.busy.text",
                host=host.name,
                disk=disk,
                busy_percent=min(100.0, busy.mean.value),
                queue_count=None if queue is None else queue.mean.value,
            ),
            evidence=evidence,
            advice=say("audit.storage_disk.busy.advice"),
            layer=f"disk {disk} of {host.name}",
            chart=watched_hosts.chart(busy, "% of the time", 100.0, "always"),
        ),
    )


RULE: Final = Rule(
    name="storage_disk",
    asks="Which of the storage's disks was busy all the time?",
    basis="a disk of a watched host, with none below it, that was busy for 90 % of the time",
    judge=_judge,
    scope="either",
)
