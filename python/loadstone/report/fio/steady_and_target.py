"""What fio says of a steady state and of a latency target.

Knows the events that tell of them and which jobs they are of. Knows no output format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.report.fio.stats import LatencyGoal, SteadyState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from loadstone.plan.model import Plan
    from loadstone.report.fio.reported_lines import Member

SECOND_NS = 1_000_000_000


def steady(together: Sequence[Member], plan: Plan, events: Iterable[Mapping[str, Any]]) -> SteadyState | None:
    """Return what came of the rule of a line's jobs, None when they have none.

    fio has room for all samples from the start and shows those that were not taken as 0.
    """
    job = together[0].job
    if job.steady.rule is None or not job.steady.duration_ns:
        return None
    streams = {stream for member in together for stream in member.streams}
    rules = {index for index, rule in enumerate(plan.steady) if streams & set(rule.streams)}
    event = next((e for e in events if e.get("type") == "steady" and e.get("rule") in rules), {})
    size = (job.steady.duration_ns or 0) // (job.steady.interval_ns or SECOND_NS)

    def samples(name: str) -> list[int]:
        measured = [int(value) for value in event.get(name, ())]
        return measured + [0] * (size - len(measured))

    rule = job.steady.rule
    name = rule.metric + ("_slope" if rule.slope else "")
    return SteadyState(
        rule=f"{name}:{rule.limit:f}{'%' if rule.percent else ''}",
        metric=rule.metric,
        slope_wanted=rule.slope,
        percent=rule.percent,
        duration_s=(job.steady.duration_ns or 0) // SECOND_NS,
        attained=bool(event.get("attained")),
        criterion=float(event.get("criterion") or 0.0),
        deviation=float(event.get("deviation") or 0.0),
        slope=float(event.get("slope") or 0.0),
        iops=samples("ops_per_second"),
        bytes_per_s=samples("bytes_per_second"),
        lat_ns=samples("lat_mean_ns"),
    )


def latency(
    together: Sequence[Member], events: Iterable[Mapping[str, Any]], still_searching: Set[int]
) -> LatencyGoal | None:
    """Return the target of a line's last job and the last depth of its last clone, as fio does."""
    job = together[-1].job
    if not job.search.latency_target_ns:
        return None
    depths = [
        int(event["depth"])
        for event in events
        if event.get("type") == "depth" and event.get("stream") == together[-1].streams[0]
    ]
    return LatencyGoal(
        target_ns=job.search.latency_target_ns,
        window_ns=job.search.latency_window_ns or 0,
        percentile=100.0 if job.search.latency_percentile is None else job.search.latency_percentile,
        depth=depths[-1] if depths else 1,
        found=not any(stream in still_searching for member in together for stream in member.streams),
    )
