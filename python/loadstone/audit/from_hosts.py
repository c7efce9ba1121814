"""Cases of a run on several hosts: those of each host, and one of all hosts together.

Knows what of each host's own verdict the rules about hosts look at. Judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loadstone.audit import case as shape
from loadstone.audit import watched_hosts
from loadstone.audit.belief import DECIDE
from loadstone.audit.from_bundle import (
    cases,
    client_disks,
    loads,
    measured,
    measured_bounds,
    measured_series,
    name_of_stage,
)
from loadstone.bundle.earlier_runs import sequence
from loadstone.plan.derived import targets_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Total
    from loadstone.bundle.hosts import HostPart, SharedSeen
    from loadstone.verdict import Cause, RuleName, Verdict

ALL_HOSTS: Final = "the sum of all hosts"
OWN_LIMITS: Final[frozenset[RuleName]] = frozenset(
    ("generator_cpu", "link_ceiling", "depth_not_reached", "governor", "network_loss")
)
"""What these rules find limits the host, not what lies behind all of them, nor the job on all of them."""


def cases_of_hosts(made: Summary) -> list[tuple[str, list[shape.Case]]]:
    """Return the cases of each host, named after it; of a host without a bundle there are none."""
    host_cases = []
    for name, one in made.by_host.items():
        own = cases(one, _beside(made, name))
        host_cases.append(
            (
                name,
                [
                    replace(case, name=name if len(own) == 1 else f"{name}: {case.name}", of_host=name)
                    for case in own
                ],
            )
        )
    return host_cases


def _beside(made: Summary, name: str) -> list[shape.LoadBeside]:
    """Return the loads of the other hosts on the kernel of this one."""
    parts = {part.name: part for part in _parts(made)}
    own_part = parts[name]
    return [
        load
        for other, one in made.by_host.items()
        if other != name and own_part.kernel is not None and parts[other].kernel == own_part.kernel
        for load in loads(one, parts[other].shift_ns - own_part.shift_ns)
    ]


def cases_of_all(
    made: Summary, own: Mapping[str, Sequence[shape.Case]], verdicts: Mapping[str, Sequence[Verdict]]
) -> list[shape.Case]:
    """Return the case of all hosts together of each phase; `own` are the cases of each host.

    `verdicts` are those on them. Watched storage sees the sum of all hosts, so it is held against that.
    """
    stages = made.totals("stage")
    phases = {
        (name, total.line.name): _HostPhase(case, verdict)
        for name, host_cases in own.items()
        for total, case, verdict in zip(
            made.by_host[name].totals("stage"), host_cases, verdicts[name], strict=True
        )
    }
    return [_case_of_all(made, stage, phases, named=len(stages) > 1) for stage in stages]


def beside_the_sum(
    made: Summary, own: Sequence[tuple[str, Sequence[shape.Case]]], verdicts: Sequence[Verdict]
) -> list[shape.Case]:
    """Return the cases of each host, with whether a finding decides on all of them in that phase.

    `verdicts` are those on the cases of all hosts, in the order of `cases_of_all`.
    """
    decided = {
        stage.line.name
        for stage, verdict in zip(made.totals("stage"), verdicts, strict=True)
        if verdict.kind in DECIDE
    }
    return [
        replace(case, sum_decided=total.line.name in decided)
        for name, host_cases in own
        for total, case in zip(made.by_host[name].totals("stage"), host_cases, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _HostPhase:
    """A phase on one host, and the verdict on it."""

    case: shape.Case
    verdict: Verdict


def _case_of_all(
    made: Summary, stage: Total, phases: Mapping[tuple[str, str], _HostPhase], *, named: bool
) -> shape.Case:
    record, measurement = made.bundle.hosts, made.measurement
    bounds = measured_bounds(measurement, stage.line)
    parts = [part for part in _parts(made) if _streams(part, stage)]
    skews_ns = _start_skews_ns(made, stage, parts)
    own = [phase.case for phase in phases.values()]
    disks = frozenset[str]().union(*(client_disks(case.targets) for case in own))
    return shape.Case(
        name=f"{ALL_HOSTS}: {name_of_stage(made.within(stage, 'job'), stage)}" if named else ALL_HOSTS,
        source="hosts",
        jobs=(),
        total=measured(stage.data),
        ops={},
        seconds=stage.measured_ns / 1e9 or None,
        series=measured_series(measurement, stage.line),
        hosts=tuple(
            _host(made, part, stage, phases.get((part.name, stage.line.name)), skews_ns.get(part.name))
            for part in parts
        ),
        shared=None if record is None else tuple(_shared(made, one, stage) for one in record.shared),
        watched=watched_hosts.of_phase(measurement, bounds, disks),
    )


def _parts(made: Summary) -> Sequence[HostPart]:
    """Return the hosts of a run, in order; none of a run on this one."""
    record = made.bundle.hosts
    return record.hosts if record is not None else ()


def _streams(part: HostPart, stage: Total) -> set[int]:
    """Return the streams of a host in a phase."""
    return set(range(part.first_stream, part.first_stream + part.streams)) & set(stage.line.streams)


def _start_skews_ns(made: Summary, stage: Total, parts: Sequence[HostPart]) -> dict[str, int]:
    """Return how long after the first host each began a phase; where it is not known there is no entry.

    All begin the first phase at a time that was agreed on, and each a later one when it is through.
    """
    if min(made.measurement.stages_of(stage.line)) == 0:
        return {part.name: part.start_skew_ns for part in parts if part.start_skew_ns is not None}
    spans = made.measurement.spans
    begun = {
        part.name: [spans[at][0] for at in _streams(part, stage) if spans[at][2] > spans[at][0]]
        for part in parts
    }
    firsts_ns = {name: min(times) for name, times in begun.items() if times}
    return {name: first_ns - min(firsts_ns.values()) for name, first_ns in firsts_ns.items()}


def _host(
    made: Summary, part: HostPart, stage: Total, phase: _HostPhase | None, start_skew_ns: int | None
) -> shape.HostFigures:
    lines = made.within(stage, "host of stage")
    line = next((one for one in lines if one.line.name == part.name), None)
    stats = measured(line.data if line is not None else None)
    plan = made.measurement.plan
    units = sorted({plan.cells[cell].unit for cell in line.line.cells}) if line is not None else []
    limit = None if phase is None else _own_limit(phase.verdict)
    return shape.HostFigures(
        name=part.name,
        operations=stats.operations or 0,
        iops=stats.iops,
        start_skew_ns=start_skew_ns,
        clock_error_ns=part.clock_error_ns,
        limited_by=None if limit is None else limit.layer or limit.rule,
        confidence=0.0 if limit is None else limit.confidence,
        jobs=tuple(plan.units[unit].name for unit in units),
        paced=phase is not None and any(_has_rate(job) for job in phase.case.jobs),
    )


def _own_limit(verdict: Verdict) -> Cause | None:
    """Return what of a host itself limits a phase."""
    first = verdict.causes[0] if verdict.kind == "limited" and verdict.causes else None
    return first if first is not None and first.rule in OWN_LIMITS else None


def _has_rate(job: shape.JobRequest) -> bool:
    return bool(job.rate_iops or job.rate_bytes_per_s or (job.paced and not job.thinks))


def _shared(made: Summary, one: SharedSeen, stage: Total) -> shape.SharedByHosts:
    plan = made.measurement.plan
    hosts_by_sequence: dict[object, set[str]] = {}
    for part in _parts(made):
        path = one.paths.get(part.name)
        for stream in (plan.streams[at] for at in sorted(_streams(part, stage))):
            names = {plan.targets[at].path for at in targets_of(plan, stream)}
            own_sequence = (
                sequence(plan, stream)
                if path is not None and any(_is(name, one, part) for name in names)
                else None
            )
            if own_sequence is not None:
                hosts_by_sequence.setdefault(repr(own_sequence), set()).add(part.name)
    return shape.SharedByHosts(
        path=next(iter(one.paths.values())),
        hosts=tuple(one.paths),
        written=one.written,
        divided=one.divided,
        same_addresses=any(len(hosts) > 1 for hosts in hosts_by_sequence.values()),
    )


def _is(name: str, one: SharedSeen, part: HostPart) -> bool:
    path = one.paths.get(part.name)
    return path is not None and (name == path or f"{part.name}:{path}" in name)
