"""Rule `rate_not_reached`: a load that was to come at a rate came slower.

Then the storage was overloaded. In an open loop its queue grew as long as the run lasted, and the
latencies are those of the queue. Other tools count from when an I/O was issued, and issue no more
than their depth: their numbers are the storage's at that depth, though not at the rate asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import timeline
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, JobRequest

REACHED: Final = 0.95
CHANCE: Final = 3.0
"""Standard deviations of a count that chance makes (Poisson arrivals)."""


def _judge(case: Case) -> Answer:
    rated = [job for job in case.jobs if job.rate_iops or job.rate_bytes_per_s]
    if not rated:
        return NotMine()
    done = [(job, _achieved(case, job)) for job in rated]
    if all(rate is None for _, rate in done):
        return cannot_tell("audit.rate_not_reached.reached")
    findings = tuple(
        _short(case, job, rate) for job, rate in done if rate is not None and _missed(case, job, rate)
    )
    return findings or Clear()


def _achieved(case: Case, job: JobRequest) -> float | None:
    by_op = case.by_job.get(job.job)
    if by_op is None:
        if len(case.jobs) > 1:
            return None
        by_op = case.ops
    figures = [(one.iops if job.rate_iops else one.bandwidth) for one in by_op.values()]
    known = [figure.value for figure in figures if figure is not None]
    return sum(known) if known else None


def _asked(job: JobRequest) -> float:
    return job.rate_iops or job.rate_bytes_per_s or 0.0


def _missed(case: Case, job: JobRequest, achieved: float) -> bool:
    requested_rate = _asked(job)
    due = requested_rate * (case.seconds or 0.0)
    chance = CHANCE / math.sqrt(due) if job.rate_iops and due else 0.0
    return achieved < (REACHED - chance) * requested_rate


def _short(case: Case, job: JobRequest, achieved: float) -> Finding:
    requested_rate, by_ops = _asked(job), bool(job.rate_iops)
    write = (
        (lambda value: say("audit.rate_not_reached.ops.value", rate_count=value))
        if by_ops
        else units.bandwidth
    )
    got, due = write(achieved), write(requested_rate)
    unit = "iops" if by_ops else "bytes_per_s"
    open_loop = case.source == "bundle"
    return Finding(
        effect="not_valid" if open_loop else "suspect",
        confidence=0.95 if open_loop else 0.6,
        text=say(
            "audit.rate_not_reached.open_loop.text"
            if open_loop
            else "audit.rate_not_reached.closed_loop.text",
            job=job.job,
            achieved=got,
            asked=due,
        ),
        evidence={f"asked_{unit}": requested_rate, f"achieved_{unit}": achieved},
        advice=say("audit.rate_not_reached.short.advice", achieved=got),
        job=job.job,
        chart=timeline.chart(
            case,
            "the rate and what was asked for",
            "iops" if by_ops else "bytes_per_s",
            level=requested_rate,
            level_name="asked",
        )
        if len(case.jobs) == 1
        else None,
    )


RULE: Final = Rule(
    name="rate_not_reached",
    asks="Did every job keep the rate it was given?",
    basis="below 95 % of the rate asked for a point is one of saturation",
    judge=_judge,
)
