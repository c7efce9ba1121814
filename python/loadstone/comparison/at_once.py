"""Results of another tool that ran at the same time: together they are one load, and no repeats.

Eight LUNs loaded by eight programs side by side are told in eight files. Their mean is the rate of no
device anybody has: what was measured is their sum, as one program with eight jobs would tell it. Two counts
of one run, as fio prints them while it goes on, are neither a sum nor repeats: the last one has the others.
Knows when results ran, by the calendar of their hosts; pairs and compares nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.audit.foreign.reader import added
from loadstone.audit.judge import judge
from loadstone.comparison.phase import of_case
from loadstone.comparison.settings import first_of
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from loadstone.analysis.latency import Latency
    from loadstone.audit.case import Case, JobRequest, OpMeasurement
    from loadstone.comparison.phase import ComparedPhase

ALL_OF_IT: Final = 0.8
"""Of the longer one, for a sum: programs begin one after the other."""
LEAST_S: Final = 2.0
"""Two moments that are printed in whole seconds are apart by less."""
COUNTED_AGAIN_S: Final = 0.5
"""Programs that were started together, each for as long, are apart by less at their ends."""
MOST_FASTER: Final = 5.0
"""Times the rate until then: what one run does between two of its counts is not more."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The phases of a side, those that ran together as one, and what is to be said of that."""

    phases: tuple[ComparedPhase, ...]
    notes: tuple[str, ...]


def joined(phases: Sequence[ComparedPhase]) -> AtOnce:
    """Put together what would be repeats of one load and ran at the same time; of a run its last count."""
    phases, earlier = _last_counts(phases)
    groups: dict[int, list[ComparedPhase]] = {}
    loads: dict[Hashable, list[int]] = {}
    for at, phase in enumerate(phases):
        of_load = loads.setdefault((phase.pattern, phase.depth, phase.asked, phase.label), [])
        first = next((one for one in of_load if all(_ran_with(phase, other) for other in groups[one])), None)
        if first is None:
            of_load.append(at)
        groups.setdefault(at if first is None else first, []).append(phase)
    notes = [
        say("comparison.sides.at_once", runs=_runs(group), results=len(group))
        for group in groups.values()
        if len(group) > 1
    ]
    by_place = {at: _sum(group) for at, group in groups.items()}
    notes += _in_part([[by_place[at] for at in of_load] for of_load in loads.values()])
    notes += [
        say("comparison.sides.earlier_count", run=one.run, last=last.run, counted_s=one.case.seconds or 0.0)
        for one, last in earlier
    ]
    return AtOnce(tuple(by_place.values()), tuple(notes))


def _last_counts(
    phases: Sequence[ComparedPhase],
) -> tuple[list[ComparedPhase], list[tuple[ComparedPhase, ComparedPhase]]]:
    """Return phases without earlier counts of the same run, and those with the last count of each."""
    timed = [one for one in phases if one.case.ran_s is not None]
    later = [[other for other in timed if _is_counted_on(one, other)] for one in phases]
    last = [max(others, key=lambda one: one.case.seconds or 0.0, default=None) for others in later]
    return (
        [one for one, other in zip(phases, last, strict=True) if other is None],
        [(one, other) for one, other in zip(phases, last, strict=True) if other is not None],
    )


def _is_counted_on(one: ComparedPhase, later: ComparedPhase) -> bool:
    """Tell whether the second is a later count of the first's run: all has grown, about as fast as before."""
    if one.form != later.form or one.path == later.path or one.case.ran_s is None or later.case.ran_s is None:
        return False
    (start_s, end_s), (later_start_s, later_end_s) = one.case.ran_s, later.case.ran_s
    if abs(start_s - later_start_s) > LEAST_S or _requested(one.case) != _requested(later.case):
        return False
    more_s = (later.case.seconds or 0.0) - (one.case.seconds or 0.0)
    if more_s <= 0 or later_end_s < end_s:
        return False
    if more_s < COUNTED_AGAIN_S and not _has_extremes_of(one.case, later.case):
        return False
    return one.case.ops.keys() <= later.case.ops.keys() and all(
        _has_grown(measured, later.case.ops[op], more_s / (one.case.seconds or more_s))
        for op, measured in one.case.ops.items()
    )


def _requested(case: Case) -> tuple[JobRequest, ...]:
    """Return what was asked for; how many clones a job has may be worked out from how long all ran."""
    return tuple(replace(job, clones=None) for job in case.jobs)


def _has_extremes_of(case: Case, other: Case) -> bool:
    """Tell whether the shortest and the longest I/O of each operation are the same: two runs share none."""
    extremes, of_other = (
        {
            op: (measured.latency.min_ns, measured.latency.max_ns)
            for op, measured in one.ops.items()
            if measured.latency is not None and measured.latency.min_ns is not None
        }
        for one in (case, other)
    )
    return bool(extremes) and extremes == of_other


def _has_grown(one: OpMeasurement, later: OpMeasurement, longer: float) -> bool:
    """Tell whether a count may have become another in a share of its time, with all I/Os that it had."""
    if not one.operations or not later.operations or not one.operations < later.operations:
        return False
    if later.operations > one.operations * (1 + MOST_FASTER * longer):
        return False
    return one.latency is None or later.latency is None or _encloses(later.latency, one.latency)


def _encloses(all_of_it: Latency, part: Latency) -> bool:
    """Tell whether the extremes of a part are within those of all, as far as both are told."""
    return not (
        (part.min_ns is not None and all_of_it.min_ns is not None and part.min_ns < all_of_it.min_ns)
        or (part.max_ns is not None and all_of_it.max_ns is not None and part.max_ns > all_of_it.max_ns)
    )


def _in_part(loads: Iterable[Sequence[ComparedPhase]]) -> list[str]:
    """Say which repeats disturbed each other: they overlap, and are no sum."""
    return [
        say("comparison.sides.partly", run=one.run, other=other.run)
        for alike in loads
        if (pair := next(((a, b) for i, a in enumerate(alike) for b in alike[:i] if _overlap_s(a, b)), None))
        for other, one in [pair]
    ]


def _ran_with(one: ComparedPhase, other: ComparedPhase) -> bool:
    """Tell whether two results are of the same time, but for how their programs were started.

    Two forms may be of one run, which must not count twice.
    """
    if one.form != other.form or one.path == other.path or one.case.ran_s is None or other.case.ran_s is None:
        return False
    longer_s = max(end - start for start, end in (one.case.ran_s, other.case.ran_s))
    return _overlap_s(one, other) >= ALL_OF_IT * longer_s


def _overlap_s(one: ComparedPhase, other: ComparedPhase) -> float:
    """Return for how long two results ran at once; 0 for what the printed seconds cannot tell."""
    if one.path == other.path or one.case.ran_s is None or other.case.ran_s is None:
        return 0.0
    (a_start, a_end), (b_start, b_end) = one.case.ran_s, other.case.ran_s
    overlap_s = min(a_end, b_end) - max(a_start, b_start)
    return overlap_s if overlap_s > LEAST_S else 0.0


def _sum(group: Sequence[ComparedPhase]) -> ComparedPhase:
    first = group[0]
    if len(group) == 1:
        return first
    cases = [one.case for one in group]
    case = replace(
        first.case,
        jobs=_jobs(group),
        total=added([one.total for one in cases]),
        ops={
            op: added([one.ops[op] for one in cases if op in one.ops])
            for op in dict.fromkeys(op for one in cases for op in one.ops)
        },
        seconds=max((one.seconds or 0.0 for one in cases), default=0.0) or None,
        by_job={},
        targets=tuple(target for one in cases for target in one.targets),
        flush=None,
        traffic=None,
        generator_cpu_percent=None,
        most_outstanding=None,
        counted_percent=None,
        problems=None
        if any(one.problems is None for one in cases)
        else tuple(problem for one in cases for problem in one.problems or ()),
        siblings=(),
    )
    return replace(
        first,
        run=_runs(group),
        beside=tuple(one.path for one in group[1:]),
        case=case,
        verdict=judge([_alone(one) for one in cases]).verdict,
        **of_case(case),
    )


def _alone(case: Case) -> Case:
    return replace(case, siblings=())


def _runs(group: Sequence[ComparedPhase]) -> str:
    return first_of(dict.fromkeys(one.run for one in group), separator=" + ")


def _jobs(group: Sequence[ComparedPhase]) -> tuple[JobRequest, ...]:
    """Return the jobs of all; those of one name are told apart by their result."""
    times = Counter(name for one in group for name in {job.job for job in one.case.jobs})
    return tuple(
        replace(job, job=f"{one.run}: {job.job}") if times[job.job] > 1 else job
        for one in group
        for job in one.case.jobs
    )
