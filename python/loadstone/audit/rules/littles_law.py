"""Rule `littles_law`: rate times latency is not the number of I/Os outstanding.

J. D. C. Little, A proof for the queuing formula L = lambda W, Operations Research 9 (1961):
in steady state mean outstanding = rate x mean latency, whatever the distributions. A closed loop
that keeps N outstanding must show N = IOPS x latency; where it does not, one of the three
numbers was measured somewhere else or is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import ask
from loadstone.audit.rule import Answer, CannotTell, Clear, Finding, NotMine, Rule

if TYPE_CHECKING:
    from loadstone.audit.case import Case

TOLERANCE: Final = 0.10
WRONG: Final = 0.5
"""More than this far off, the numbers are not of one place and time."""
HARDLY_KEPT: Final = 0.1
"""A tool that measures all three in one place may keep less than its depth outstanding: it reaps in
batches, and waits in submission. Below this part of it that is no reason any more."""
ONE_PLACE: Final = ("fio", "vdbench", "iometer", "diskspd")
PRINTED: Final = 0.051
"""Depths are printed with one decimal."""


def _judge(case: Case) -> Answer:
    latency = case.total.latency
    if case.total.iops is None or not case.total.iops.value or latency is None or latency.mean_ns is None:
        return CannotTell("IOPS and mean latency of the same load")
    asked = case.queue_depth or ask.outstanding(case)
    if asked is None:
        mine = case.source != "bundle" and not any(job.rate_iops or job.rate_bytes_per_s for job in case.jobs)
        return CannotTell("the number of outstanding I/Os") if mine or not case.jobs else NotMine()
    seen = case.total.iops.value * latency.mean_ns / 1e9
    evidence: dict[str, float | int | str] = {
        "iops": case.total.iops.value,
        "mean_latency_ns": latency.mean_ns,
        "outstanding_asked": asked,
        "outstanding_by_littles_law": round(seen, 2),
        "latency_expected_ns": 1e9 * asked / case.total.iops.value,
    }
    off = abs(seen - asked) / asked
    if off <= TOLERANCE or (case.queue_depth is not None and abs(seen - asked) <= PRINTED):
        return (_agree(seen, asked, evidence),) if case.source == "published" else Clear()
    short = seen < asked
    if short and (case.source == "bundle" or (case.source in ONE_PLACE and seen > WRONG * asked)):
        # Both are measured there in one place: what is short is the depth, another rule's business.
        return Clear()
    # At a rate fewer are outstanding than may be; and what fio's outputs call slat may be waiting for a turn.
    unsaid = case.source in ONE_PLACE and any(job.paced is None for job in case.jobs)
    if unsaid and (short or case.source == "fio"):
        return CannotTell("whether the load came at a rate")
    expected_ms = evidence["latency_expected_ns"]
    wrong = seen < HARDLY_KEPT * asked if short and case.source in ONE_PLACE else off > WRONG
    # A document's latency may come from elsewhere (the array's own counters) and its rate stand all the same.
    elsewhere = case.source == "published" and seen < asked
    return (
        Finding(
            effect="not_valid" if wrong and not elsewhere else "suspect",
            confidence=0.95 if wrong else 0.6,
            text=(
                f"{asked:g} outstanding I/Os at this rate take {float(expected_ms) / 1e6:.3g} ms each, "
                f"not {latency.mean_ns / 1e6:.3g} ms: the latency was not measured where the load was made."
            ),
            evidence=evidence,
            advice="take rate, latency and depth from the same host and the same time",
        ),
    )


def _agree(seen: float, asked: float, evidence: dict[str, float | int | str]) -> Finding:
    """Tell the arithmetic of printed figures that belong together."""
    iops, mean_ns = float(evidence["iops"]), float(evidence["mean_latency_ns"])
    return Finding(
        effect="note",
        confidence=0.9,
        text=(
            f"{units.count(iops)} IOPS times {units.duration(mean_ns)} are {units.count(round(seen, 1))} "
            f"I/Os outstanding, of {units.count(asked)}: rate, latency and depth agree."
        ),
        evidence=evidence,
        advice="nothing: the three numbers belong together",
    )


RULE: Final = Rule(
    name="littles_law",
    asks="Do rate, latency and outstanding I/Os agree?",
    basis="Little 1961: mean outstanding = rate x mean latency",
    judge=_judge,
)
