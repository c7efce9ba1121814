"""Cases of a run on several hosts: those of each host, and one of all hosts together.

Knows what of each host's own verdict the rules about hosts look at. Judges nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadstone.audit import case as shape
from loadstone.audit.from_bundle import cases, loads, measured
from loadstone.bundle.earlier_runs import sequence
from loadstone.plan.derived import targets_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.analysis.summary import Summary
    from loadstone.bundle.hosts import HostPart, SharedSeen
    from loadstone.verdict import RuleName, Verdict

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
    record = made.bundle.hosts
    parts = {part.name: part for part in record.hosts} if record is not None else {}
    own_part = parts[name]
    return [
        load
        for other, one in made.by_host.items()
        if other != name and own_part.kernel is not None and parts[other].kernel == own_part.kernel
        for load in loads(one, parts[other].shift_ns - own_part.shift_ns)
    ]


def case_of_all(
    made: Summary, own: Mapping[str, Sequence[shape.Case]], verdicts: Mapping[str, Sequence[Verdict]]
) -> shape.Case:
    """Return the case of all hosts together; `own` are the cases of each, `verdicts` those on them."""
    record = made.bundle.hosts
    parts = record.hosts if record is not None else ()
    total = made.total
    return shape.Case(
        name="the sum of all hosts",
        source="hosts",
        jobs=(),
        total=measured(total.data),
        ops={},
        seconds=total.measured_ns / 1e9 or None,
        hosts=tuple(_host(made, part, own.get(part.name, ()), verdicts.get(part.name, ())) for part in parts),
        shared=None if record is None else tuple(_shared(made, one) for one in record.shared),
    )


def _host(
    made: Summary, part: HostPart, own: Sequence[shape.Case], verdicts: Sequence[Verdict]
) -> shape.HostFigures:
    line = next((one for one in made.totals("host") if one.line.name == part.name), None)
    stats = measured(line.data if line is not None else None)
    units = made.measurement.plan.units[part.first_unit : part.first_unit + part.units]
    limits = [
        (cause.layer or cause.rule, cause.confidence)
        for verdict in verdicts
        if verdict.kind == "limited"
        for cause in verdict.causes[:1]
        if cause.rule in OWN_LIMITS
    ]
    return shape.HostFigures(
        name=part.name,
        operations=stats.operations or 0,
        iops=stats.iops,
        start_skew_ns=part.start_skew_ns,
        clock_error_ns=part.clock_error_ns,
        limited_by=limits[0][0] if limits else None,
        confidence=limits[0][1] if limits else 0.0,
        jobs=tuple(unit.name for unit in units),
        paced=any(_has_rate(job) for case in own for job in case.jobs),
    )


def _has_rate(job: shape.JobRequest) -> bool:
    return bool(job.rate_iops or job.rate_bytes_per_s or (job.paced and not job.thinks))


def _shared(made: Summary, one: SharedSeen) -> shape.SharedByHosts:
    record = made.bundle.hosts
    plan = made.measurement.plan
    hosts_by_sequence: dict[object, set[str]] = {}
    for part in record.hosts if record is not None else ():
        path = one.paths.get(part.name)
        for stream in plan.streams[part.first_stream : part.first_stream + part.streams]:
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
