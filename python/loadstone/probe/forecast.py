"""What probes would be done after a run that has not run: how long they take and how much they write.

Knows the Plan and its jobs only, so it takes a guess at what the run will measure; the bounds hold
whatever it measures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone.analysis.latency import Latency
from loadstone.audit.job_facts import job_facts
from loadstone.probe.base import Base, largest_block, streams_of, writes
from loadstone.probe.figures import Figures
from loadstone.probe.probe_session import OVERHEAD_S, RuleFindings, offers, ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import Plan, Stream
    from loadstone.probe.probe_session import Offer
    from loadstone.workload.model import Job

GUESS_BYTES_PER_S: Final = 500e6


def forecast(plan: Plan, jobs: Sequence[Job], budget_s: float) -> dict[str, Any]:
    """Return the probes of these jobs in the order in which they would begin, and why others are left out."""
    stage = min((worker.stage for worker in plan.workers), default=0)
    streams = streams_of(plan, stage)
    base = Base(plan, stage, job_facts(plan, jobs, streams), _guess(streams), budget_s)
    offered, left = offers(base)
    order = {one.candidate.name: one for one in ranked(base, offered, None, RuleFindings({}, ()), OVERHEAD_S)}
    by_name = {one.probe.name: one for one in offered}
    return {
        "format": 1,
        "kind": "probes",
        "budget_s": budget_s,
        "probes": [
            {
                "name": name,
                "asks": by_name[name].probe.asks,
                "seconds": round(by_name[name].turns.seconds + OVERHEAD_S, 2),
                "most_written_bytes": most_written(by_name[name]),
                "expected_bits": round(worth.bits, 3),
            }
            for name, worth in order.items()
        ],
        "left_out": [{"name": one.name, "why": one.why} for one in left],
    }


def most_written(offer: Offer) -> int:
    """Return the bytes a probe may write at most: its streams end when they have."""
    return sum(
        int(stream.limits.bytes * stream.pattern.write_percent / 100)
        for stream in offer.plan.streams
        if writes(stream) and offer.plan.workers[stream.worker].backend.type != "null"
    )


def _guess(streams: Sequence[Stream]) -> Figures:
    rate = GUESS_BYTES_PER_S / largest_block(streams)
    written = GUESS_BYTES_PER_S if any(writes(stream) for stream in streams) else 0.0
    return Figures(
        rate=rate,
        log_error=0.05,
        bytes_per_s=GUESS_BYTES_PER_S,
        latency=Latency(count=int(rate), mean_ns=1e6, stddev_ns=1e6, max_ns=1e7),
        seconds=1.0,
        window_cv=None,
        window_count=0.0,
        correlation=0.0,
        quarters=(rate, rate),
        fell=None,
        written_bytes=int(written),
        dips=None,
    )
