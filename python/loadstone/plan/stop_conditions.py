"""When a job starts and ends by what others do or by what is measured.

Knows whom a job waits for, the search for a depth and steady states. Knows no file and no pace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.messages import make_error, say
from loadstone.plan import model as plan
from loadstone.plan.verification import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.plan.planning_notes import Notes
    from loadstone.workload.model import Job

SECOND_NS: Final = 1_000_000_000
_METRICS: Final = {
    "iops": plan.SteadyMetric.OPS,
    "bw": plan.SteadyMetric.BYTES,
    "lat": plan.SteadyMetric.LATENCY,
}


def waited_for(job: Job, jobs: Sequence[Job]) -> Job | None:
    """Return the job that `job` waits for, None when it waits for none.

    Raises RefusedError unless that is one job, defined before.
    """
    if job.schedule.wait_for is None:
        return None
    where = job.at("schedule.wait_for")
    named = [other for other in jobs if job.schedule.wait_for in {other.name, other.stem}]
    before = [other for other in named if any(other is one for one in jobs[: _place(job, jobs)])]
    if len(named) != 1 or not before:
        flaw = "is not unique" if len(named) > 1 else "stands after it" if named else "is no job"
        raise make_error(
            RefusedError,
            "plan.stop.waits_for",
            where=where,
            name=repr(job.schedule.wait_for),
            found=flaw,
        )
    if verify.reads_back(before[0]):
        raise make_error(RefusedError, "plan.stop.own_stage", where=where, name=job.schedule.wait_for)
    return before[0]


def _place(job: Job, jobs: Sequence[Job]) -> int:
    return next(index for index, other in enumerate(jobs) if other is job)


def search(job: Job, notes: Notes) -> plan.DepthSearch | None:
    """Return the search for the depth that meets a latency target, None when there is none."""
    if not job.search.latency_target_ns:
        for field in ("search.latency_window_ns", "search.latency_run"):
            if job.value(field):
                text = say("plan.notes.no_effect_without", option=job.option(field), needed="latency_target")
                notes.info(job, field, text)
        return None
    if any(job.pacing.rate_bytes) or any(job.pacing.rate_iops):
        raise job.refusal("plan.stop.depth", "search.latency_target_ns")
    if not job.search.latency_window_ns:
        raise job.refusal("plan.stop.no_window", "search.latency_target_ns")
    if job.search.latency_run is not True and job.limits.ramp_ns:
        notes.info(job, "limits.ramp_ns", say("plan.notes.no_ramp"))
    text = say("plan.notes.searched_all" if job.search.latency_run else "plan.notes.searched")
    notes.info(job, "search.latency_target_ns", text)
    return plan.DepthSearch(
        target_ns=job.search.latency_target_ns,
        window_ns=job.search.latency_window_ns,
        percentile=100.0 if job.search.latency_percentile is None else job.search.latency_percentile,
        keep_on=bool(job.search.latency_run),
    )


def steady(placed: Iterable[tuple[int, Job, int, int]]) -> tuple[plan.Steady, ...]:
    """Return the rules of streams given by (index, job, unit, group).

    Clones of one unit share a rule, and with `group_reporting` all of their group. Raises
    RefusedError when those of a group differ.
    """
    together: dict[tuple[str, int], list[tuple[int, Job]]] = {}
    for index, job, unit, group in placed:
        key = ("group", group) if job.schedule.group_reporting else ("unit", unit)
        together.setdefault(key, []).append((index, job))
    rules = []
    for members in together.values():
        first = members[0][1]
        for _, job in members:
            if _steady_options(job) != _steady_options(first):
                raise job.refusal("plan.stop.group", "steady.rule")
        if first.steady.rule is not None:
            rules.append(_rule(first, tuple(index for index, _ in members)))
    return tuple(rules)


def _steady_options(job: Job) -> tuple[object, ...]:
    return (job.steady.rule, job.steady.duration_ns, job.steady.ramp_ns, job.steady.interval_ns)


def sample_ns(job: Job) -> int:
    """Length of one sample."""
    return job.steady.interval_ns or SECOND_NS


def _rule(job: Job, streams: tuple[int, ...]) -> plan.Steady:
    rule = job.steady.rule
    if rule is None:
        raise AssertionError("a job without a rule has no steady state")
    samples, rest = divmod(job.steady.duration_ns or 0, sample_ns(job))
    if samples < 2 or rest:
        raise job.refusal("plan.stop.interval", "steady.duration_ns", sample=sample_ns(job) // 1000000)
    return plan.Steady(
        streams=streams,
        metric=_METRICS[rule.metric],
        slope=rule.slope,
        limit=rule.limit,
        percent=rule.percent,
        after_ns=job.steady.ramp_ns or 0,
        sample_ns=sample_ns(job),
        samples=samples,
    )
