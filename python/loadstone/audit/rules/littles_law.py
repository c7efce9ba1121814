"""Rule `littles_law`: rate times latency is not the number of I/Os outstanding.

J. D. C. Little, A proof for the queuing formula L = lambda W, Operations Research 9 (1961):
in steady state mean outstanding = rate x mean latency, whatever the distributions. A closed loop
that keeps N outstanding must show N = IOPS x latency; where it does not, one of the three
numbers was measured somewhere else or is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import case_queries
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, OpMeasurement

TOLERANCE: Final = 0.10
WRONG: Final = 0.5
"""More than this far off, the numbers are not of one place and time."""
HARDLY_KEPT: Final = 0.1
"""A tool that measures all three in one place may keep less than its depth outstanding: it reaps in
batches, and waits in submission. Below this part of it that is no reason any more."""
ONE_PLACE: Final = ("fio", "vdbench", "iometer", "diskspd")
WHOLE: Final = 0.05
"""Of a depth: as near rate and latency of one place come to a whole number of depths."""
MOST_PERCENT: Final = 102.0
"""Shares that are printed with one decimal, `0.1%` for less, add up to no more."""
PRINTED: Final = 0.051
"""Depths are printed with one decimal."""


def _judge(case: Case) -> Answer:
    findings = [
        finding
        for op, done in case.ops.items()
        for finding in (_part_of_less(case, op, done), _longer_than_run(case, op, done))
    ]
    impossible = [finding for finding in findings if finding is not None]
    if impossible:
        return tuple(impossible)
    answer = _by_littles_law(case)
    if case.counted_percent is None or case.counted_percent <= MOST_PERCENT:
        return answer
    return (_more_than_all(case.counted_percent), *(answer if isinstance(answer, tuple) else ()))


def _by_littles_law(case: Case) -> Answer:
    latency = case.total.latency
    if case.total.iops is None or not case.total.iops.value or latency is None or latency.mean_ns is None:
        return cannot_tell("audit.littles_law.numbers")
    outstanding = case.queue_depth or case_queries.outstanding(case)
    if outstanding is None:
        matters = case.source != "bundle" and not any(
            job.rate_iops or job.rate_bytes_per_s for job in case.jobs
        )
        return cannot_tell("audit.littles_law.outstanding") if matters or not case.jobs else NotMine()
    flushing = case_queries.flushing(case)
    inflight = case.total.iops.value * latency.mean_ns / 1e9 + flushing
    evidence: dict[str, float | int | str] = {
        "iops": case.total.iops.value,
        "mean_latency_ns": latency.mean_ns,
        "outstanding_asked": outstanding,
        "outstanding_by_littles_law": round(inflight, 2),
        "latency_expected_ns": 1e9 * outstanding / case.total.iops.value,
    }
    if flushing:
        evidence["flushes_outstanding"] = round(flushing, 2)
    off = abs(inflight - outstanding) / outstanding
    if off <= TOLERANCE or (case.queue_depth is not None and abs(inflight - outstanding) <= PRINTED):
        return (_agree(inflight, outstanding, evidence),) if case.source == "published" else Clear()
    short = inflight < outstanding
    if short and (case.source == "bundle" or (case.source in ONE_PLACE and inflight > WRONG * outstanding)):
        # Both are measured there in one place: what is short is the depth, another rule's business.
        return Clear()
    # At a rate fewer are outstanding than may be; and what fio's outputs call slat may be waiting for a turn.
    unsaid = case.source in ONE_PLACE and any(job.paced is None for job in case.jobs)
    if unsaid and (short or case.source == "fio"):
        return cannot_tell("audit.littles_law.paced")
    return (_disagreement(case, inflight, outstanding, evidence, latency.mean_ns),)


def _disagreement(
    case: Case, seen: float, asked: float, evidence: dict[str, float | int | str], latency_ns: float
) -> Finding:
    """Say how far rate, latency and depth are from each other."""
    if (clones := _clones_unsaid(case, seen, asked)) is not None:
        return _unsaid(clones, asked, evidence)
    short = seen < asked
    wrong = (
        seen < HARDLY_KEPT * asked
        if short and case.source in ONE_PLACE
        else abs(seen - asked) > WRONG * asked
    )
    # A document's latency may come from elsewhere (the array's own counters) and its rate stand all the same.
    elsewhere = case.source == "published" and short
    return Finding(
        effect="not_valid" if wrong and not elsewhere else "suspect",
        confidence=0.95 if wrong else 0.6,
        text=say(
            "audit.littles_law.disagree.text",
            outstanding=f"{asked:g}",
            total_iops=float(evidence["iops"]),
            expected_ns=float(evidence["latency_expected_ns"]),
            latency_ns=latency_ns,
        ),
        evidence=evidence,
        advice=say("audit.littles_law.disagree.advice"),
    )


def _clones_unsaid(case: Case, seen: float, asked: float) -> int | None:
    """Return how many times its depth fio shows outstanding, where that is a whole number.

    It measures rate and latency in one place: clones that its file does not name do that.
    """
    times = seen / asked
    is_whole = round(times) > 1 and abs(times - round(times)) <= WHOLE
    return round(times) if case.source == "fio" and is_whole else None


def _unsaid(clones: int, asked: float, evidence: dict[str, float | int | str]) -> Finding:
    return Finding(
        effect="suspect",
        confidence=0.6,
        text=say(
            "audit.littles_law.clones.text",
            seen_ios=float(evidence["outstanding_by_littles_law"]),
            outstanding=f"{asked:g}",
            clones=clones,
        ),
        evidence=evidence | {"clones": clones},
        advice=say("audit.littles_law.clones.advice"),
    )


def _part_of_less(case: Case, op: str, done: OpMeasurement) -> Finding | None:
    """Find a completion latency of another tool that is longer than the latency it is a part of."""
    whole, part = done.latencies.get("lat"), done.latencies.get("clat")
    if case.source == "bundle" or whole is None or part is None or not whole.mean_ns or not part.mean_ns:
        return None
    if part.mean_ns <= whole.mean_ns * (1 + TOLERANCE):
        return None
    return Finding(
        effect="not_valid",
        confidence=0.97,
        text=say(
            "audit.littles_law.part.text",
            op=op,
            completion_ns=part.mean_ns,
            latency_ns=whole.mean_ns,
        ),
        evidence={"completion_latency_ns": part.mean_ns, "mean_latency_ns": whole.mean_ns},
        advice=say("audit.littles_law.part.advice"),
    )


def _longer_than_run(case: Case, op: str, done: OpMeasurement) -> Finding | None:
    """Find a mean latency that no I/O of another tool's run can have: it began and ended within that run."""
    latency = done.latency
    if case.source == "bundle" or not case.seconds or latency is None or latency.mean_ns is None:
        return None
    ramp_s = max((job.ramp_s or 0.0 for job in case.jobs), default=0.0)
    if latency.mean_ns <= (case.seconds + ramp_s) * 1e9 * (1 + TOLERANCE):
        return None
    return Finding(
        effect="not_valid",
        confidence=0.97,
        text=say(
            "audit.littles_law.longer_than_run.text", op=op, latency_ns=latency.mean_ns, run_s=case.seconds
        ),
        evidence={"mean_latency_ns": latency.mean_ns, "seconds": case.seconds},
        advice=say("audit.littles_law.longer_than_run.advice"),
    )


def _more_than_all(counted_percent: float) -> Finding:
    return Finding(
        effect="note",
        confidence=0.9,
        text=say("audit.littles_law.more_than_all.text", counted_percent=counted_percent),
        evidence={"depths_percent": round(counted_percent, 1)},
        advice=say("audit.littles_law.more_than_all.advice"),
    )


def _agree(seen: float, asked: float, evidence: dict[str, float | int | str]) -> Finding:
    """Tell the arithmetic of printed figures that belong together."""
    return Finding(
        effect="note",
        confidence=0.9,
        text=(
            say(
                "audit.littles_law.agree.text",
                total_iops=float(evidence["iops"]),
                latency_ns=float(evidence["mean_latency_ns"]),
                seen_ios=round(seen, 1),
                outstanding=units.count(asked),
            )
        ),
        evidence=evidence,
        advice=say("audit.littles_law.agree.advice"),
    )


RULE: Final = Rule(
    name="littles_law",
    asks="Do rate, latency and outstanding I/Os agree?",
    basis="Little 1961: mean outstanding = rate x mean latency",
    judge=_judge,
)
