"""Rule `storage_cpu`: the processors of the storage set the number, not its media.

From nine tenths on a processor is a queue of its own: at 90 % the mean wait in front of one is nine
times the work (M/M/1), and what is left is mostly what no thread could use. A limit on the container
that serves the data is as hard: where its periods end before their work does, the work waits. One
full core of several may be the one thread that all I/O goes through, or somebody else's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import watched_hosts
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.analysis.watched import Track
    from loadstone.audit.case import Case
    from loadstone.audit.watched_hosts import Watched

FULL_PERCENT: Final = 90.0
CORE_PERCENT: Final = 97.0
OF_LIMIT_PERCENT: Final = 70.0
"""A limit is given out in slices, and what is left of the last one is lost: less than all of it is full."""
THROTTLED_PERCENT: Final = 30.0
"""Of the periods: fewer are the bursts of something that is not the load."""
MINUTE_S: Final = 60.0


def _judge(case: Case) -> Answer:
    return watched_hosts.each(case, _host) if case.watched else NotMine()


def _host(case: Case, host: Watched) -> Answer:
    limit, throttled = host.track("cpu_of_limit_percent"), host.track("cpu_throttled_percent")
    if (
        limit is not None
        and throttled is not None
        and limit.mean.value >= OF_LIMIT_PERCENT
        and throttled.mean.value >= THROTTLED_PERCENT
    ):
        return (_limited(host, limit, throttled),)
    if host.same_host:
        # Its processors are those of the load generator: what is left of them tells nothing of the storage.
        return Clear() if limit is not None else cannot_tell("audit.storage_cpu.same_host", host=host.name)
    whole = host.track("cpu_percent")
    if whole is None and case.seconds is not None and case.seconds >= MINUTE_S:
        whole = host.track("cpu_minute_percent")
    if whole is None:
        return cannot_tell("audit.storage_cpu.counters", host=host.name)
    if whole.mean.value >= FULL_PERCENT:
        return (_full(host, whole),)
    core = host.track("busiest_core_percent")
    if core is not None and core.mean.value >= CORE_PERCENT:
        return (_core(host, core, whole),)
    return Clear()


def _limited(host: Watched, limit: Track, throttled: Track) -> Finding:
    return Finding(
        effect="limited",
        confidence=0.9,
        text=say(
            "audit.storage_cpu.limit.text",
            host=host.name,
            used_percent=limit.mean.value,
            allowed_count=float(host.facts["cpu_limit"]),
            throttled_percent=throttled.mean.value,
        ),
        evidence={
            "of_the_limit_percent": limit.mean.value,
            "limit_cpus": float(host.facts["cpu_limit"]),
            "throttled_periods_percent": throttled.mean.value,
            "watched_s": host.seconds,
        },
        advice=say("audit.storage_cpu.limit.advice", host=host.name),
        layer=f"CPU of {host.name}",
        chart=watched_hosts.chart(limit, "% of the limit", 100.0, "limit"),
    )


def _full(host: Watched, whole: Track) -> Finding:
    return Finding(
        effect="limited",
        confidence=0.9,
        text=say("audit.storage_cpu.full.text", host=host.name, busy_percent=whole.mean.value),
        evidence={"busy_percent": whole.mean.value, "most_percent": whole.most, "watched_s": host.seconds},
        advice=say("audit.storage_cpu.full.advice", host=host.name),
        layer=f"CPU of {host.name}",
        chart=watched_hosts.chart(whole, "% of all CPUs", FULL_PERCENT, "limit"),
    )


def _core(host: Watched, core: Track, whole: Track) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.6,
        text=say(
            "audit.storage_cpu.core.text",
            host=host.name,
            core=core.name,
            core_percent=core.mean.value,
            busy_percent=whole.mean.value,
        ),
        evidence={"busiest_core_percent": core.mean.value, "busy_percent": whole.mean.value},
        advice=say("audit.storage_cpu.core.advice", host=host.name),
        layer=f"CPU of {host.name}",
    )


RULE: Final = Rule(
    name="storage_cpu",
    asks="Did the storage's CPUs set the number?",
    basis="a watched host whose CPUs are busy for 90 %, or whose container is throttled in 30 % of its "
    "periods. One CPU of 97 % is suspect",
    judge=_judge,
    scope="either",
)
