"""Rates asked for and rates achieved: one row per paced job and operation.

Knows what a Plan's schedules ask for in the measured time, and when a rate counts as held.
What was not held is never left out: late I/Os carry their wait, and the shortfall is here.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from loadstone.analysis import stops
from loadstone.bundle.layout import OPS
from loadstone.plan.derived import asked_operations
from loadstone.plan.model import RateAmountOps, RateProcess

if TYPE_CHECKING:
    from loadstone.analysis.latency import Latency
    from loadstone.analysis.measurement import Measurement
    from loadstone.analysis.totals import OpTotals, Total
    from loadstone.bundle.layout import OpName
    from loadstone.plan.model import Rate, RatePoint, Stream

_STREAMED: Final = ("read", "write", "trim")
"""What has a pace outside of trees."""
TOLERANCE: Final = 0.01
"""A rate within this share of what was asked for is held."""
SECOND_NS: Final = 1_000_000_000
DEVIATIONS: Final = 3.0
"""Random arrivals differ from their mean; this many standard deviations of their count are chance."""
_VARIANCES: Final = {
    RateProcess.LINEAR: 0.0,
    RateProcess.POISSON: 1.0,
    RateProcess.UNIFORM: 1 / 3,
    RateProcess.SPIKE: 0.0,
}
"""Variance of a count by its mean: that of the gaps by their mean squared."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """One operation of one job; rates are in `unit` per second over the measured time.

    `asked_per_s` follows the profile where the rate has one, so it is the mean of what was due.
    """

    job: str
    job_key: int
    """The job's line."""
    op: OpName
    unit: Literal["ops", "bytes"]
    process: str
    asked_per_s: float
    achieved_per_s: float
    held: bool
    wait: Latency | None
    """Late starts, of the I/Os that completed; `None` when none did."""


def pacing(measurement: Measurement, jobs: list[Total]) -> list[Pacing]:
    """Return the rows of all paced jobs in the Plan's order; jobs without measured time have none."""
    rows: list[Pacing] = []
    for total in jobs:
        for op in OPS:
            row = _row(measurement, total, op)
            if row is not None:
                rows.append(row)
    return rows


def _row(measurement: Measurement, total: Total, op: OpName) -> Pacing | None:
    streams = measurement.plan.streams
    paced = [(i, rate) for i in total.line.streams if (rate := _rate(streams[i], op)) is not None]
    unpaced = len(paced) < sum(_does(streams[i], op) for i in total.line.streams)
    if not paced or unpaced or not total.measured_ns:
        return None
    by_ops = isinstance(paced[0][1].amount, RateAmountOps)
    left_out = measurement.stops.left_out
    requested_amount = sum(_asked(rate, streams[i], measurement.spans[i], left_out) for i, rate in paced)
    stats = total.ops.get(op)
    achieved = float((stats.operations + stats.errors) if by_ops else stats.bytes) if stats else 0.0
    seconds = total.measured_ns / 1e9
    return Pacing(
        job=total.line.name,
        job_key=total.line.key,
        op=op,
        unit="ops" if by_ops else "bytes",
        process=paced[0][1].process.value,
        asked_per_s=requested_amount / seconds,
        achieved_per_s=achieved / seconds,
        held=_held(
            requested_amount, achieved, paced[0][1], stats, len(paced), share=_share(streams[paced[0][0]], op)
        ),
        wait=stats.latencies.get("wait") if stats else None,
    )


def _does(stream: Stream, op: str) -> bool:
    if stream.tree is not None:
        return op in asked_operations(stream)
    return bool(getattr(stream.pattern, f"{op}_percent", 0))


def _rate(stream: Stream, op: str) -> Rate | None:
    """Return the rate of one operation; reads and writes in a tree share one by their shares."""
    if stream.tree is None:
        op_rate: Rate | None = getattr(stream.pace, op, None)
        return op_rate if op in _STREAMED else None
    rate = stream.tree.rate
    if rate is None or op not in asked_operations(stream) or not isinstance(rate.amount, RateAmountOps):
        return None
    amount = RateAmountOps(per_second=rate.amount.per_second * _share(stream, op))
    return rate.model_copy(update={"amount": amount})


def _share(stream: Stream, op: str) -> float:
    """Return the part of what arrives at a stream's rate that is this operation."""
    if stream.tree is None or stream.tree.operation.type != "transfer":
        return 1.0
    return float(getattr(stream.pattern, f"{op}_percent")) / 100


def _held(
    asked: float, achieved: float, rate: Rate, stats: OpTotals | None, streams: int, *, share: float
) -> bool:
    """Return whether the shortfall is within tolerance, chance, and one I/O of each stream.

    `share`: of all that arrive at this rate; which of them are these is chance, too.
    """
    by_bytes = not isinstance(rate.amount, RateAmountOps)
    size = stats.bytes / stats.operations if by_bytes and stats and stats.operations else 1.0
    variance = 1 - share + share * _VARIANCES[rate.process]
    chance = DEVIATIONS * math.sqrt(asked / size * variance) * size
    return asked - achieved <= max(TOLERANCE * asked, streams * size) + chance


def _asked(
    rate: Rate, stream: Stream, span: tuple[int, int, int], left_out: tuple[tuple[int, int], ...]
) -> float:
    """Return the units due in the measured time of a stream, without the stops of the engine."""
    start, ramp_end, end = span
    limits = stream.limits
    if limits.runtime_ns:
        # What is still in flight at the end is drained; nothing is due meanwhile.
        end = min(end, start + limits.ramp_ns + limits.runtime_ns)
    due_ns = 0.0
    for first, last in stops.without([(ramp_end, end)], left_out):
        bounds = (first - start, last - start)
        if rate.process == RateProcess.SPIKE:
            # A second that has begun is due as a whole.
            bounds = (_next_second(bounds[0]), _next_second(bounds[1]))
        due_ns += max(0.0, full_rate_ns(rate.profile, bounds[1]) - full_rate_ns(rate.profile, bounds[0]))
    return due_ns * rate.amount.per_second / 1e9


def _next_second(time_ns: int) -> int:
    return -(-time_ns // SECOND_NS) * SECOND_NS


def full_rate_ns(profile: tuple[RatePoint, ...], time_ns: float) -> float:
    """Return how long the full rate takes for the I/Os that the profile gives up to `time_ns`, in ns."""
    if not profile:
        return time_ns
    edges = [(0.0, profile[0].share), *((float(point.at_ns), point.share) for point in profile)]
    edges.append((math.inf, profile[-1].share))
    whole = 0.0
    for (begin, low), (end, high) in itertools.pairwise(edges):
        length = min(end, time_ns) - begin
        if length <= 0:
            continue
        share = low if math.isinf(end) else low + (high - low) * length / (end - begin)
        whole += length * (low + share) / 2
    return whole
