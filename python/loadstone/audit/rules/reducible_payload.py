"""Rule `reducible_payload`: data that compresses or repeats, on storage that makes it smaller.

Zeros and repeated buffers cost such storage next to nothing to keep, so that the rate says
nothing about data that people have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit import case_queries, reached_storage
from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, JobRequest

SMALLER: Final = 0.9
"""Fewer bytes than this at the device for each byte of the job: a reducing layer reduced them."""


def _judge(case: Case) -> Answer:
    if case_queries.virtual(case):
        return NotMine()
    layer = case_queries.reducing(case)
    if not case_queries.does(case, "write"):
        return _read_only(case, layer)
    reducible_jobs = [(job, contents) for job in case.jobs if (contents := reducible(job)) is not None]
    if any(job.payload is None and case_queries.job_does(job, "write") for job in case.jobs):
        return cannot_tell("audit.reducible_payload.written", essential=layer is not None)
    if not reducible_jobs:
        return Clear()
    return tuple(_written(case, job, contents, layer) for job, contents in reducible_jobs)


def reducible(job: JobRequest) -> str | None:
    """Return in words what makes a job's data reducible."""
    payload = job.payload
    if payload is None or payload.kind == "unknown":
        return None
    if payload.kind in ("zero", "pattern"):
        return "zeros" if payload.kind == "zero" else "one short pattern again and again"
    if payload.compress_percent:
        return f"data that compresses by {payload.compress_percent:.0f} %"
    if payload.dedupe_percent:
        return f"data of which {payload.dedupe_percent:.0f} % repeats"
    return "the same buffer again and again" if payload.repeats else None


def _written(case: Case, job: JobRequest, what: str, layer: str | None) -> Finding:
    payload = job.payload
    meant = payload is not None and payload.kind not in ("zero", "pattern") and not payload.repeats
    only_repeats = payload is not None and payload.kind == "random" and bool(payload.repeats)
    if layer is None:
        return Finding(
            effect="note" if meant else "suspect",
            confidence=0.5,
            text=say("audit.reducible_payload.unknown_use.text", job=job.job, payload=what),
            evidence={"payload": what},
            advice=_advice(job),
            job=job.job,
        )
    saw = case.traffic.share("write") if case.traffic is not None else None
    if saw is not None and saw < SMALLER and not reached_storage.reduction_explains(case, saw):
        saw = None  # The page cache has it still: what compression made of it nobody saw.
    values = {"job": job.job, "payload": what, "layer": layer}
    if saw is not None and saw < SMALLER:
        text = say("audit.reducible_payload.kept.text", kept_share=saw, **values)
    else:
        text = say("audit.reducible_payload.reduced.text", **values)
    return Finding(
        effect="note" if meant else ("suspect" if only_repeats else "not_valid"),
        # A buffer that only repeats is smaller where whole blocks are compared, not where each is packed.
        confidence=0.6 if only_repeats else 0.95,
        text=text,
        evidence={**reached_storage.evidence(case, "write"), "payload": what, "layer": layer},
        advice=_advice(job),
        layer=layer,
        job=job.job,
    )


def _advice(job: JobRequest) -> str:
    """Name the options that made the data so, or would make it otherwise."""
    payload = job.payload
    if payload is not None and payload.kind not in ("zero", "pattern") and payload.compress_percent:
        return say("audit.reducible_payload.compress.advice")
    if payload is not None and payload.kind not in ("zero", "pattern") and payload.dedupe_percent:
        return say("audit.reducible_payload.dedupe.advice")
    if payload is not None and payload.kind in ("zero", "pattern"):
        return say("audit.reducible_payload.pattern.advice")
    return say("audit.reducible_payload.repeat.advice")


def _read_only(case: Case, layer: str | None) -> Answer:
    if layer is None or not case_queries.does(case, "read"):
        return NotMine()
    traffic = case.traffic
    share = traffic.share("read") if traffic is not None else None
    if traffic is None or share is None or layer.startswith("zram"):
        return cannot_tell("audit.reducible_payload.stored", layer=layer)
    explained = share < SMALLER and reached_storage.reduction_explains(case, share)
    if not explained or case_queries.buffered(case) or reached_storage.unwritten(case):
        return Clear()
    moved, requested_bytes = traffic.moved["read"].bytes, traffic.asked["read"].bytes
    return (
        Finding(
            effect="not_valid",
            confidence=0.9,
            text=say(
                "audit.reducible_payload.read.text",
                layer=layer,
                moved_bytes=moved,
                asked_bytes=requested_bytes,
            ),
            evidence=reached_storage.evidence(case, "read"),
            advice=say("audit.reducible_payload.read.advice"),
            layer=layer,
        ),
    )


RULE: Final = Rule(
    name="reducible_payload",
    asks="Could the storage make the data smaller?",
    basis="the job's payload, and a layer that says of itself that it compresses or deduplicates",
    judge=_judge,
)
