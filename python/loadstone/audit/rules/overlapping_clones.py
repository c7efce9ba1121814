"""Rule `overlapping_clones`: several clones walk over the same blocks in order.

Clones of a job share its file unless they are told to start elsewhere, so each block is asked for
once by every one of them: all but the first are served by whatever cache comes first, or make the
device do the same again. Random clones over one range are an ordinary load and no finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.planned import union_bytes
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, JobRequest

SEQUENTIAL_PERCENT: Final = 50.0
"""More random addresses than this, and the clones do not follow each other."""
TIMES: Final = 1.1
"""Asked for more often than this on average, blocks are shared."""


def _judge(case: Case) -> Answer:
    several = [job for job in case.jobs if (job.clones or 1) > 1]
    if len(case.jobs) < 2 and not several:
        return NotMine() if case.jobs else cannot_tell("audit.overlapping_clones.ranges")
    ordered = [job for job in case.jobs if (job.random_percent or 0.0) <= SEQUENTIAL_PERCENT]
    if not ordered:
        return Clear()
    unknown = [job for job in ordered if not job.ranges and (job.clones or 1) > 1]
    if any(job.clones_share is None for job in unknown):
        return cannot_tell("audit.overlapping_clones.ranges")
    findings = [_unsized(job) for job in unknown if job.clones_share] + [
        finding
        for reads in (True, False)
        if (finding := _shared([job for job in ordered if _reads(job) == reads], reads=reads)) is not None
    ]
    # Jobs that are alike in all that is known are told once.
    return tuple({finding.text: finding for finding in findings}.values()) or Clear()


def _reads(job: JobRequest) -> bool:
    return (job.read_percent if job.read_percent is not None else 100.0) >= 50


def _shared(jobs: list[JobRequest], *, reads: bool) -> Finding | None:
    every = [one for job in jobs for clone in job.ranges for one in clone]
    clones = sum(len(job.ranges) for job in jobs)
    requested_bytes = sum(one.length_bytes for one in every)
    union = union_bytes(every)
    if clones < 2 or not union or requested_bytes / union < TIMES:
        return None
    times = requested_bytes / union
    buffered = any(job.direct is False for job in jobs)
    targets = len({one.target for one in every})
    even = targets > 1 and clones % targets == 0
    who = (
        say("audit.overlapping_clones.on_targets.value", clones=clones // targets, targets=targets)
        if even
        else say("audit.overlapping_clones.clones.value", clones=clones)
    )
    kind = "write" if not reads else "read_cached" if buffered else "read"
    return Finding(
        effect="not_valid" if buffered and reads else "suspect",
        confidence=0.9 if all(job.random_percent is not None for job in jobs) else 0.7,
        text=(
            say(
                f"audit.overlapping_clones.{kind}.text",
                who=who,
                shared_bytes=union,
                times=f"{times:.0f}",
            )
        ),
        evidence={
            "clones": clones,
            "targets": targets,
            "asked_bytes": requested_bytes,
            "distinct_bytes": union,
            "asked_for_each_block_factor": times,
        },
        advice=say("audit.overlapping_clones.read.advice"),
        job=jobs[0].job if len(jobs) == 1 else None,
    )


def _unsized(job: JobRequest) -> Finding:
    """Tell clones that share a part of which nobody knows how large it is."""
    clones = job.clones or 1
    reads, buffered = _reads(job), job.direct is False
    kind = "unsized_write" if not reads else "unsized_read_cached" if buffered else "unsized_read"
    return Finding(
        effect="not_valid" if buffered and reads else "suspect",
        confidence=0.9,
        text=(say(f"audit.overlapping_clones.{kind}.text", clones=clones, times=clones)),
        evidence={"clones": clones, "asked_for_each_block_factor": clones},
        advice=say("audit.overlapping_clones.read.advice"),
        job=job.job,
    )


RULE: Final = Rule(
    name="overlapping_clones",
    asks="Do clones walk over the same blocks?",
    basis="clones of a job share its file; a block that is asked for again comes from a cache",
    judge=_judge,
)
