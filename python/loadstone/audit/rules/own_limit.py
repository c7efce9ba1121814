"""Rule `own_limit`: the job itself asked for no more than this.

A rate that was kept, or pauses between I/Os (think time): the number is then what the job asks for,
and says of the storage that it can do at least that. Latencies stay the storage's at that load. An
engine that does no I/O has no storage at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import case_queries
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import Case, JobRequest

KEPT: Final = 0.98
"""A rate is kept from this part of it on: less is a storage that was too slow for it. Jobs that all have
a rate are asked together: of few I/Os each, chance takes more than this from some of them."""
ABOVE: Final = 1.02
"""From this part of it on it was more than a limit lets through."""
PAUSED: Final = 0.2
"""Think time of this part of a job's time changes its rate."""


def _judge(case: Case) -> Answer:
    if not case.jobs or case.total.iops is None or not case.total.iops.value:
        return cannot_tell("audit.own_limit.request")
    together = any(_kept(case.jobs, case.ops, unit) for unit in _UNITS)
    findings = [one for job in case.jobs if (one := _of(case, job, together=together)) is not None]
    if not findings:
        unsaid = any(job.paced is None and job.rate_iops is None for job in case.jobs)
        return NotMine() if unsaid and case.source != "bundle" else Clear()
    whole = len(findings) == len(case.jobs)
    # Of one of several jobs it says nothing about the others.
    return tuple(findings) if whole else tuple(_as_note(one) for one in findings)


def _of(case: Case, job: JobRequest, *, together: bool) -> Finding | None:
    if job.backend == case_queries.NULL:
        return _finding(
            job,
            say("audit.own_limit.null.text", job=job.job),
            {"backend": case_queries.NULL},
            say("audit.own_limit.null.advice"),
            say("audit.own_limit.null.layer"),
        )
    done = case.by_job.get(job.job, {}) if len(case.jobs) > 1 else case.ops
    unit = "iops" if job.rate_iops is not None else "bytes_per_s"
    requested_rate, reached = _asked(job, unit), _sum(done, _UNITS[unit])
    if requested_rate and reached and (together or _kept([job], done, unit)):
        rate_text = (
            units.count(requested_rate) + " IOPS" if unit == "iops" else units.bandwidth(requested_rate)
        )
        got = units.count(reached) if unit == "iops" else units.bandwidth(reached)
        return _finding(
            job,
            say(
                f"audit.own_limit.{'above' if reached > ABOVE * requested_rate else 'rate'}.text",
                job=job.job,
                asked=rate_text,
                reached=got,
            ),
            {f"asked_{unit}": requested_rate, f"done_{unit}": reached},
            say("audit.own_limit.rate.advice"),
            say("audit.own_limit.rate.layer", job=job.job),
        )
    paused = _paused(case, job, done)
    if paused is not None and paused >= PAUSED:
        return _finding(
            job,
            say("audit.own_limit.pauses.text", job=job.job, paused_share=paused, limit_share=PAUSED),
            {"paused_share": round(paused, 3)},
            say("audit.own_limit.pauses.advice"),
            say("audit.own_limit.pauses.layer", job=job.job),
        )
    return None


_UNITS: Final = {"iops": "iops", "bytes_per_s": "bandwidth"}
"""What a rate may count, and the figure that it is held against."""


def _asked(job: JobRequest, unit: str) -> float | None:
    return job.rate_iops if unit == "iops" else job.rate_bytes_per_s


def _kept(jobs: Sequence[JobRequest], done: dict, unit: str) -> bool:  # type: ignore[type-arg]
    """Whether jobs that all have a rate in this unit did what they were to do together."""
    rates = [_asked(job, unit) for job in jobs]
    reached = _sum(done, _UNITS[unit])
    return reached is not None and all(rates) and reached >= KEPT * sum(rate or 0.0 for rate in rates)


def _paused(case: Case, job: JobRequest, done: dict) -> float | None:  # type: ignore[type-arg]
    """Return the part of a job's slots that waited for nothing: Little's law without rate or schedule."""
    if not job.thinks or job.iodepth is None:
        return None
    outstanding = case_queries.flushing(case) if len(case.jobs) == 1 else 0.0
    for one in done.values():
        if one.iops is None or one.latency is None or one.latency.mean_ns is None:
            return None
        outstanding += one.iops.value * one.latency.mean_ns / 1e9
    return 1 - outstanding / (job.iodepth * (job.clones or 1))


def _sum(done: dict, figure: str) -> float | None:  # type: ignore[type-arg]
    known = [getattr(one, figure) for one in done.values()]
    rates = [one.value for one in known if one is not None]
    return sum(rates) if rates else None


def _finding(
    job: JobRequest, text: str, evidence: dict[str, float | int | str], advice: str, layer: str
) -> Finding:
    return Finding(
        effect="limited",
        confidence=0.97,
        text=text,
        evidence=evidence,
        advice=advice,
        layer=layer,
        job=job.job,
    )


def _as_note(one: Finding) -> Finding:
    return Finding(
        effect="note",
        confidence=one.confidence,
        text=one.text,
        evidence=one.evidence,
        advice=one.advice,
        layer=one.layer,
        job=one.job,
    )


RULE: Final = Rule(
    name="own_limit",
    asks="Did the job ask for no more than it got?",
    basis="rates kept to 98 %; outstanding I/Os by Little's law against the depth, where a job pauses; "
    "an engine without I/O",
    judge=_judge,
)
