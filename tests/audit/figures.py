"""Cases as another tool or a document would give them: a load, a rate, and little else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.analysis.latency import Latency
from loadstone.audit.case import (
    Case,
    Declared,
    Figure,
    JobRequest,
    OpMeasurement,
    Range,
    TargetState,
)
from loadstone.path.ceilings import parse_link

if TYPE_CHECKING:
    from loadstone.audit.case import Op
    from loadstone.audit.rule import Finding, Rule
    from loadstone.path.layers import Ceiling

KIB = 1024
GB = 10**9


def job(**changed: Any) -> JobRequest:
    block = changed.pop("block_bytes", 4 * KIB)
    told: dict[str, Any] = {
        "job": "job",
        "clones": 1,
        "iodepth": 1,
        "read_percent": 100.0,
        "random_percent": 100.0,
        "block_bytes": {block: 1.0},
        "direct": True,
        "paced": False,
    }
    return JobRequest(**told | changed)


def overlapping(clones: int, *, step_bytes: int = 0, targets: int = 1) -> tuple[tuple[Range, ...], ...]:
    """Where clones work that start `step_bytes` apart on each of so many targets."""
    return tuple(
        (Range(f"/dev/t{target}", clone * step_bytes, GB),)
        for target in range(targets)
        for clone in range(clones)
    )


def told(
    *,
    iops: float | None = None,
    bytes_per_s: float | None = None,
    op: Op = "read",
    jobs: tuple[JobRequest, ...] | None = None,
    mean_ns: float | None = None,
    links: tuple[str, ...] = (),
    ceilings: tuple[Ceiling, ...] = (),
    rotational: bool | None = None,
    spindles: int | None = None,
    name: str = "this",
    **changed: Any,
) -> Case:
    """A published result: bandwidth follows from IOPS and the block where only IOPS are given."""
    asked = jobs if jobs is not None else (job(read_percent=100.0 if op == "read" else 0.0),)
    block = next(iter(asked[0].block_bytes), None) if asked else None
    if bytes_per_s is None and iops is not None and block:
        bytes_per_s = iops * block
    if iops is None and bytes_per_s is not None and block:
        iops = bytes_per_s / block
    measured = OpMeasurement(
        iops=Figure(iops) if iops is not None else None,
        bandwidth=Figure(bytes_per_s) if bytes_per_s is not None else None,
        latencies={"unknown": Latency(mean_ns=mean_ns)} if mean_ns is not None else {},
    )
    carried = tuple(ceiling for link in links if (ceiling := parse_link(link)) is not None)
    given: dict[str, Any] = {
        "source": "published",
        "targets": (TargetState(path="t"),),
        "declared": Declared(
            ceilings=(*carried, *ceilings), links=links, rotational=rotational, spindles=spindles
        ),
    }
    return Case(name=name, jobs=asked, total=measured, ops={op: measured}, **given | changed)


def finding(rule: Rule, case: Case) -> Finding:
    """The one finding of a rule; anything else fails the test."""
    answer = rule.judge(case)
    assert isinstance(answer, tuple)
    assert len(answer) == 1
    return answer[0]
