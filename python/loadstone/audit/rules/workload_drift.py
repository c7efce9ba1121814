"""Rule `workload_drift`: what was done is not what was asked for, in its mix or its sizes.

Errors, a rate on one of the operations, or files that run out can change the mix on the way, and
the number is then of another load.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries
from loadstone.audit.rule import Answer, Clear, Finding, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, JobRequest, Op, OpMeasurement, Source

POINTS: Final = 2.0
"""Of the read share, in percent of the I/Os."""
SIZE: Final = 0.02
CHANCE: Final = 4.0
"""Standard deviations that chance makes of a share."""


def _judge(case: Case) -> Answer:
    known = [(job, done) for job in case.jobs if (done := _done(case, job))]
    if not known:
        return cannot_tell("audit.workload_drift.request")
    findings = tuple(
        finding
        for job, done in known
        for finding in (_mix(job, done), _size(job, done, _edges(case, job), case.source))
        if finding is not None
    )
    return findings or Clear()


def _done(case: Case, job: JobRequest) -> dict[Op, OpMeasurement]:
    return case.by_job.get(job.job) or (case.ops if len(case.jobs) == 1 else {})


def _mix(job: JobRequest, done: dict[Op, OpMeasurement]) -> Finding | None:
    reads, writes = _ios(done, "read"), _ios(done, "write")
    if job.read_percent is None or reads is None or writes is None or not reads + writes:
        return None
    share = job.read_percent / 100
    got = reads / (reads + writes)
    chance = CHANCE * math.sqrt(share * (1 - share) / (reads + writes))
    if abs(got - share) <= POINTS / 100 + chance:
        return None
    # Who gives each operation its rate asks for a mix twice; the rates are the stronger word.
    twice = bool(job.rate_iops or job.rate_bytes_per_s)
    return Finding(
        effect="note" if twice else "not_valid",
        confidence=0.93,
        text=say(
            "audit.workload_drift.mix_rates.text" if twice else "audit.workload_drift.mix.text",
            job=job.job,
            read_percent=100 * got,
            asked_percent=job.read_percent,
        ),
        evidence={"asked_read_percent": job.read_percent, "read_percent": round(100 * got, 2)},
        advice=say("audit.workload_drift.mix.advice"),
        job=job.job,
    )


def _edges(case: Case, job: JobRequest) -> tuple[int, int]:
    """Return how many I/Os may be counted without their bytes, and how many bytes of I/Os without these.

    fio counts I/Os as they are issued and bytes as they end: what is outstanding at its end has no bytes,
    and what was outstanding at the end of a ramp is not counted.
    """
    outstanding = (job.iodepth or 1) * (job.clones or 1) if case.source == "fio" else 0
    return outstanding, 0 if job.ramp_s == 0.0 else outstanding


def _size(
    job: JobRequest, done: dict[Op, OpMeasurement], edges: tuple[int, int], source: Source
) -> Finding | None:
    for op, sizes in (("read", job.read_block_bytes), ("write", job.write_block_bytes)):
        one = done.get("read" if op == "read" else "write")
        block_bytes = case_queries.mean_bytes(sizes)
        if block_bytes is None or one is None or not one.operations or one.bytes is None:
            continue
        got = one.bytes / one.operations
        spread = math.sqrt(sum(share * (size - block_bytes) ** 2 for size, share in sizes.items()))
        chance = CHANCE * spread / math.sqrt(one.operations)
        edge_ios = edges[0] if got < block_bytes else edges[1]
        edge = block_bytes * min(1.0, edge_ios / one.operations)
        if abs(got - block_bytes) > SIZE * block_bytes + chance + edge:
            # A load of one size has no other mean: its bytes and its I/Os are not of one time.
            message = "size" if len(sizes) > 1 or source == "bundle" else "counts"
            return Finding(
                effect="not_valid",
                confidence=0.9,
                text=say(
                    f"audit.workload_drift.{message}.text",
                    job=job.job,
                    op=op,
                    mean_bytes=got,
                    asked_bytes=block_bytes,
                ),
                evidence={f"asked_{op}_bytes_per_io": block_bytes, f"{op}_bytes_per_io": round(got, 1)},
                advice=say(f"audit.workload_drift.{message}.advice"),
                job=job.job,
            )
    return None


def _ios(done: dict[Op, OpMeasurement], op: Op) -> int | None:
    one = done.get(op)
    return 0 if one is None else one.operations


RULE: Final = Rule(
    name="workload_drift",
    asks="Was what was asked for what was done?",
    basis="SPC-1 allows 2 points of the mix; sizes within 2 %, beyond chance",
    judge=_judge,
)
