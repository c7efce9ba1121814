"""Rule `generator_cpu`: the host that makes the load had no CPU left for it.

Signs, surest first: the engine's control group was stopped for its quota; its threads stood ready
and had no CPU; a thread of it was busy all the time; a guest's own host took its CPUs away;
the host as a whole was busy, which is a suspicion: others may have used it. Threads that poll
because the job asked for it are busy whatever happens, and say nothing; time in which the engine
spun for completions counts as idle. While an I/O is at the device, no thread of the engine can hold
it up: threads that waited while nearly all I/Os were there limited nothing. A paced load has the time
that each I/O started late: where that is most of the latency, the latency is the generator's.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.cpu import SPUN
from loadstone.audit import case_queries, monitor_readings
from loadstone.audit.above_device import above_device
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    import polars as pl

    from loadstone.audit.case import Case

STOPPED: Final = 0.05
WAITED: Final = 0.20
"""Of the time that threads wanted a CPU."""
WAITED_OF_TIME: Final = 0.20
MUCH_OF_TIME: Final = 0.40
"""Of the measured time, each thread of the engine: waiting that is rare does no harm."""
OF_LATENCY: Final = 0.25
MOST_OF_LATENCY: Final = 0.5
"""From here on a paced load's latency is the load generator's."""
FREE_SLOTS: Final = 0.5
"""Up to this part of the iodepth in flight, no I/O waits for another to come back."""
THREAD_BUSY: Final = 0.95
HOST_FULL_PERCENT: Final = 92.0
UNTOLD: Final = 0.85
"""CPUs that were all busy, it is not known with what. Too much to believe a number, and no cause of it."""
NEAR_CEILING: Final = 0.5
STOLEN: Final = 0.05
ABOVE: Final = 0.85
"""Processors in other hands and I/Os that wait above the device: two signs of one thing."""
WHOLE: Final = re.compile(r"cpu\.all\.\w+_ns")
THREAD: Final = re.compile(r"engine\.(\d+-.+)\.on_cpu_ns")
WORKER: Final = re.compile(r"engine\.\d+-(worker|iou-wrk)-.*\.run_queue_ns")
SCHEDULED: Final = ("engine.on_cpu_ns", "engine.run_queue_ns")
LAYER: Final = "the load generator's CPU"


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case):
        return NotMine()
    looks = (_stopped, _waited, _busy_thread, _near_ceiling, _taken, _busy_host)
    findings = [one for look in looks if (one := look(case)) is not None]
    if findings:
        return (next((one for one in findings if one.effect != "note"), findings[0]),)
    if case.generator_cpu_percent is None and case.host_cpu_percent is None:
        return cannot_tell("audit.generator_cpu.watched")
    return Clear()


def _finding(
    text: str, confidence: float, evidence: dict[str, float | int | str], *, sure: bool = True
) -> Finding:
    return Finding(
        effect="limited" if sure else "suspect",
        confidence=confidence,
        text=text,
        evidence=evidence,
        advice=say("audit.generator_cpu.waited.advice"),
        layer=LAYER,
    )


def _stopped(case: Case) -> Finding | None:
    stopped_ns = monitor_readings.total(case.host, "cgroup.cpu.throttled_ns")
    time_s = monitor_readings.seconds(case.host)
    if not stopped_ns or not time_s or stopped_ns / 1e9 / time_s < STOPPED:
        return None
    share = stopped_ns / 1e9 / time_s
    return _finding(
        say("audit.generator_cpu.throttled.text", throttled_share=share, limit_share=STOPPED),
        0.96,
        {"throttled_s": round(stopped_ns / 1e9, 3), "throttled_share": round(share, 3)},
    )


def _waited(case: Case) -> Finding | None:
    if case.host is None or not set(SCHEDULED) <= set(case.host.columns):
        return None
    known = case.host.drop_nulls(list(SCHEDULED))
    ran_ns, waited_ns = (monitor_readings.total(known, name) for name in SCHEDULED)
    time_ns = monitor_readings.seconds(known) * 1e9
    if waited_ns is None or not ran_ns or not time_ns:
        return None
    share, of_time = waited_ns / (waited_ns + ran_ns), waited_ns / time_ns / _workers(known)
    if share < WAITED or of_time < WAITED_OF_TIME:
        return None
    finding = _finding(
        say("audit.generator_cpu.waited.text", waiting_share=share, limit_share=WAITED),
        0.9 if of_time >= MUCH_OF_TIME else 0.75,
        {
            "run_queue_s": round(waited_ns / 1e9, 3),
            "on_cpu_s": round(ran_ns / 1e9, 3),
            "waited_share": round(share, 3),
        },
    )
    return (
        _of_paced(case, finding, waited_ns) if case_queries.paced(case) else _unless_at_device(case, finding)
    )


def _workers(known: pl.DataFrame) -> float:
    """Return how many threads did I/O on average: what all of them waited is shared among them."""
    worker_columns = [name for name in known.columns if WORKER.fullmatch(name)]
    there_s = sum(monitor_readings.seconds(known.drop_nulls(name)) for name in worker_columns)
    return max(1.0, there_s / monitor_readings.seconds(known))


def _unless_at_device(case: Case, found: Finding) -> Finding:
    """Take a limit back where the device's own clock says that nearly all I/Os waited there."""
    above = above_device(case)
    if above is None or above.share >= OF_LATENCY:
        return found
    at = say(
        "audit.generator_cpu.at_device.text", at_device_share=1 - above.share, device=case_queries.under(case)
    )
    return replace(
        found,
        effect="note",
        text=f"{found.text} {at}",
        evidence={**found.evidence, "above_device_share": round(above.share, 3)},
    )


def _of_paced(case: Case, found: Finding, waited_ns: float) -> Finding:
    """Say what waiting does to a load that keeps its rate: it is in the latencies, or is too little."""
    late = _late_share(case)
    if late is not None and late >= MOST_OF_LATENCY:
        sentence = say("audit.generator_cpu.late.text", late_share=late)
        evidence = {**found.evidence, "late_share": round(late, 3)}
        return replace(found, confidence=0.95, text=f"{found.text} {sentence}", evidence=evidence)
    latency, ios = case.total.latency, case.total.operations
    if latency is None or not latency.mean_ns or not ios or waited_ns / ios > OF_LATENCY * latency.mean_ns:
        return replace(found, effect="suspect")
    return replace(found, effect="note")


def _late_share(case: Case) -> float | None:
    """Return the part of the mean latency before the kernel had the I/O; None where slots may be why."""
    depths = [job.depth for job in case.jobs]
    if case.time is None or not case.time.measured_ns or case.total.iops is None or not all(depths):
        return None
    in_flight = (case.time.measured_ns - case.time.generator_ns) / 1e9 * case.total.iops.value
    if not depths or in_flight > FREE_SLOTS * sum(depth or 0 for depth in depths):
        return None
    return case.time.generator_ns / case.time.measured_ns


def _busy_thread(case: Case) -> Finding | None:
    if any(job.polls for job in case.jobs) or case.host is None:
        return None
    time_ns = monitor_readings.seconds(case.host) * 1e9
    busiest, most = "", 0.0
    spun_ns = (monitor_readings.total(case.host, SPUN) or 0.0) / _workers(case.host)
    for column in case.host.columns:
        match = THREAD.fullmatch(column)
        used_ns = (monitor_readings.total(case.host, column) or 0.0) - spun_ns
        share = used_ns / time_ns if match and time_ns else 0.0
        if match and share > most:
            busiest, most = match.group(1), share
    if most < THREAD_BUSY:
        return None
    return _finding(
        say(
            "audit.generator_cpu.thread.text",
            thread=busiest,
            busy_share=min(most, 1),
            limit_share=THREAD_BUSY,
        ),
        0.9,
        {"thread": busiest, "busy_share": round(most, 3)},
    )


def _near_ceiling(case: Case) -> Finding | None:
    share = case.share_of_ceiling
    if share is None or share < NEAR_CEILING:
        return None
    return _unless_at_device(
        case,
        _finding(
            say("audit.generator_cpu.ceiling.text", ceiling_share=share, limit_share=NEAR_CEILING),
            0.85,
            {"of_ceiling_share": round(share, 3)},
        ),
    )


def _taken(case: Case) -> Finding | None:
    """Look at the part of all processors' time that the host of a guest used for others."""
    columns = case.host.columns if case.host is not None else []
    whole = monitor_readings.total(case.host, *(name for name in columns if WHOLE.fullmatch(name)))
    steal_ns = monitor_readings.total(case.host, "cpu.all.steal_ns")
    if not whole or steal_ns is None or steal_ns < STOLEN * whole:
        return None
    share = steal_ns / whole
    text = say("audit.generator_cpu.stolen.text", steal_share=share, limit_share=STOLEN)
    return _with_waiting(case, _finding(text, 0.8, {"steal_share": round(share, 4)}, sure=False))


def _with_waiting(case: Case, found: Finding) -> Finding:
    """Make a finding surer where the device's own clock says that I/Os wait above it: for this."""
    above = above_device(case)
    if above is None or not above.held or case_queries.paced(case):
        return found
    waits = say("audit.generator_cpu.above.text", above_percent=100 * above.share, waited_ns=above.waited_ns)
    return replace(
        found,
        effect="limited",
        confidence=ABOVE,
        text=f"{found.text} {waits}",
        evidence={**found.evidence, "above_device_ns": round(above.waited_ns)},
    )


def _busy_host(case: Case) -> Finding | None:
    busy = case.host_cpu_percent
    if busy is None or busy < case_queries.HOST_BUSY_PERCENT:
        return None
    full = busy >= HOST_FULL_PERCENT
    # The scheduler says that the engine's threads did not wait; of the kernel's own it says nothing.
    served = monitor_readings.total(case.host, "engine.run_queue_ns") is not None
    finding = _finding(
        say(
            "audit.generator_cpu.host_served.text" if served else "audit.generator_cpu.host.text",
            busy_percent=busy,
            limit_percent=case_queries.HOST_BUSY_PERCENT,
        ),
        (0.6 if served else UNTOLD) if full else 0.55,
        {"host_cpu_percent": round(busy, 1)},
        sure=False,
    )
    # A paced load did what it was to do, whoever else was busy.
    harmless = case_queries.paced(case) or (served and not full)
    return _with_waiting(case, replace(finding, effect="note") if harmless else finding)


RULE: Final = Rule(
    name="generator_cpu",
    asks="Had the load generator the CPU it needed?",
    basis="scheduler's own account of waiting; vdbench warns at 80 % of the host",
    judge=_judge,
)
