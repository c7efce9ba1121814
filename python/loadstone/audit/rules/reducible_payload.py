"""Rule `reducible_payload`: data that compresses or repeats, on storage that makes it smaller.

Zeros and repeated buffers cost such storage next to nothing to keep, so that the rate says
nothing about data that people have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask, reached
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Asked, Case

SMALLER: Final = 0.9
"""Fewer bytes than this at the device for each byte of the job: a reducing layer reduced them."""


def _judge(case: Case) -> Answer:
    if ask.virtual(case):
        return NotMine()
    layer = ask.reducing(case)
    if not ask.does(case, "write"):
        return _read_only(case, layer)
    told = [(job, what) for job in case.jobs if (what := reducible(job)) is not None]
    if any(job.payload is None and ask.job_does(job, "write") for job in case.jobs):
        return CannotTell("what data was written", essential=layer is not None)
    if not told:
        return Clear()
    return tuple(_written(case, job, what, layer) for job, what in told)


def reducible(job: Asked) -> str | None:
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


def _written(case: Case, job: Asked, what: str, layer: str | None) -> Finding:
    payload = job.payload
    meant = payload is not None and payload.kind not in ("zero", "pattern") and not payload.repeats
    only_repeats = payload is not None and payload.kind == "random" and bool(payload.repeats)
    if layer is None:
        return Finding(
            effect="note" if meant else "suspect",
            confidence=0.5,
            text=f"{job.job} wrote {what}, and whether the storage makes use of that is not known.",
            evidence={"payload": what},
            advice=_advice(job),
            job=job.job,
        )
    saw = case.traffic.share("write") if case.traffic is not None else None
    reduced = f", which kept {100 * saw:.0f} % of it" if saw is not None and saw < SMALLER else ""
    return Finding(
        effect="note" if meant else ("suspect" if only_repeats else "not_valid"),
        # A buffer that only repeats is smaller where whole blocks are compared, not where each is packed.
        confidence=0.6 if only_repeats else 0.95,
        text=f"{job.job} wrote {what} to {layer}{reduced}: the rate is that of data that is not there.",
        evidence={**reached.evidence(case, "write"), "payload": what, "layer": layer},
        advice=_advice(job),
        layer=layer,
        job=job.job,
    )


def _advice(job: Asked) -> str:
    """Name the options that made the data so, or would make it otherwise."""
    payload = job.payload
    if payload is not None and payload.kind not in ("zero", "pattern") and payload.compress_percent:
        how = "leave buffer_compress_percentage out"
    elif payload is not None and payload.kind not in ("zero", "pattern") and payload.dedupe_percent:
        how = "leave dedupe_percentage out"
    elif payload is not None and payload.kind in ("zero", "pattern"):
        how = "leave zero_buffers and buffer_pattern out, and take refill_buffers=1"
    else:
        how = "refill_buffers=1"
    return f"write data that neither compresses nor repeats ({how}), or as your own data do"


def _read_only(case: Case, layer: str | None) -> Answer:
    if layer is None or not ask.does(case, "read"):
        return NotMine()
    traffic = case.traffic
    share = traffic.share("read") if traffic is not None else None
    if traffic is None or share is None or layer.startswith("zram"):
        return CannotTell(f"how far {layer} had made the data smaller that was read")
    if share >= SMALLER or ask.buffered(case) or reached.unwritten(case):
        return Clear()
    moved, asked = traffic.moved["read"].bytes, traffic.asked["read"].bytes
    return (
        Finding(
            effect="not_valid",
            confidence=0.9,
            text=f"{layer} read {units.size(moved)} for {units.size(asked)}: it keeps the data smaller.",
            evidence=reached.evidence(case, "read"),
            advice="fill the target with data that neither compresses nor repeats before reading it",
            layer=layer,
        ),
    )


RULE: Final = Rule(
    name="reducible_payload",
    asks="Could the storage make the data smaller?",
    basis="the job's payload, and a layer that says of itself that it compresses or deduplicates",
    judge=_judge,
)
