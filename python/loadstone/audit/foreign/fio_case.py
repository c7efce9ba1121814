"""Jobs of fio that ran together, as one Case: the same for all of its outputs.

Knows how directions, errors and CPU of clones add up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.audit import case as shape
from loadstone.audit.foreign import fio_options, reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OPS: Final[tuple[shape.Op, ...]] = ("read", "write", "trim")
NO_STORAGE: Final = frozenset({"net", "netsplice", "rdma", "cpuio", "exec"})
"""Engines that load a network, a CPU or a program."""
SAMPLED_LIKE: Final = 0.1
"""The mean of fio's samples is this near the rate, unless a log made a sample of every I/O."""
SHORTEST_SAMPLE_S: Final = 0.4
"""fio takes one each half second, or as often as a log is told to."""
DEEPEST: Final = 64
"""The last row of fio's table of depths: that many and more."""
TOGETHER: Final = 0.95
"""Jobs whose times differ by more did not all run at once."""


@dataclass(slots=True)
class FioJob:
    """One entry of an output: a clone, a job, or with group_reporting all jobs of a group."""

    name: str
    ops: dict[shape.Op, shape.OpMeasurement] = field(default_factory=dict)
    mixed: shape.OpMeasurement | None = None
    """Reads and writes together, where fio was told not to tell them apart."""
    seconds: float = 0.0
    cpu_percent: float | None = None
    """Of one CPU, all threads together."""
    error: int = 0
    flush: shape.OpMeasurement | None = None
    clones: int = 1
    depths: dict[int, float] = field(default_factory=dict)
    """Percent of I/Os that began with so many outstanding, or up to the next number."""


def spread(
    rate: float | None,
    mean: float | None,
    deviation: float | None,
    samples: int | None,
    *,
    clones: int,
    seconds: float,
) -> shape.RateSpread | None:
    """Return how much the rate of a job's samples varied; None where they are not of its rate.

    Of clones that are reported together fio adds the means and the samples, and tells the deviation of one.
    """
    if not rate or not mean or deviation is None or not samples or samples < clones:
        return None
    of_each = samples // clones
    if abs(mean / rate - 1) > SAMPLED_LIKE or seconds / of_each < SHORTEST_SAMPLE_S:
        return None
    return shape.RateSpread(clones * deviation / mean, of_each)


def case(jobs: Sequence[FioJob], asked: tuple[shape.JobRequest, ...], notes: list[str]) -> shape.Case:
    """Return the case of jobs that ran at the same time; what has to be said goes to `notes`."""
    ops = added(jobs)
    mixed = [job.mixed for job in jobs if job.mixed is not None]
    parts = mixed or [*ops.values()]
    names = list(dict.fromkeys(job.job for job in asked))
    seconds = [job.seconds for job in jobs if job.seconds]
    if seconds and min(seconds) < TOGETHER * max(seconds):
        notes.append(
            f"{names[0]}: jobs ran for different times, so the sum of their rates is more than ran at once"
        )
    by_name: dict[str, list[FioJob]] = defaultdict(list)
    for job in jobs:
        by_name[job.name].append(job)
    failures = [
        # A job that did nothing has no I/O that failed.
        ("io_error" if job.ops or job.mixed else "engine", job.error)
        for job in jobs
        if job.error
    ]
    cpu = [job.cpu_percent for job in jobs if job.cpu_percent is not None]
    return shape.Case(
        name=", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""),
        source="fio",
        jobs=asked,
        total=reader.added(parts) if parts else shape.OpMeasurement(),
        ops=ops,
        seconds=max(seconds, default=None),
        by_job={name: added(named_jobs) for name, named_jobs in by_name.items()},
        targets=fio_options.targets(asked),
        flush=_flushes(jobs),
        most_outstanding=_most_outstanding(jobs),
        counted_percent=max((sum(job.depths.values()) for job in jobs if job.depths), default=None),
        problems=tuple(
            shape.ErrorCount(kind, f"fio ended a job with error {errno}", failures.count((kind, errno)))
            for kind, errno in dict.fromkeys(failures)
        ),
        generator_cpu_percent=sum(cpu) if len(cpu) == len(jobs) else None,
    )


def of_storage(path: Path, cases: Sequence[shape.Case], notes: list[str]) -> tuple[shape.Case, ...]:
    """Leave out phases that loaded no storage. Raises InputError when there is no other."""
    storage_cases = [case for case in cases if not all(job.backend in NO_STORAGE for job in case.jobs)]
    left_out = sorted({job.backend or "" for case in cases if case not in storage_cases for job in case.jobs})
    if not storage_cases:
        raise reader.no_storage(path, "no_storage", engines=", ".join(left_out))
    if left_out:
        notes.append(f"jobs that load no storage are left out: ioengine {', '.join(left_out)}")
    return reader.with_siblings(storage_cases)


def _most_outstanding(jobs: Sequence[FioJob]) -> float | None:
    """Return how many I/Os were outstanding at most, on average; None where no table has an end.

    A row of the table reaches to the next one. The last has no end: there the depth was what was asked for.
    """
    if not all(job.depths for job in jobs) or any(job.depths.get(DEEPEST, 0.0) for job in jobs):
        return None
    return sum(job.clones * _mean_of(job.depths) for job in jobs) or None


def _mean_of(depths: dict[int, float]) -> float:
    whole = sum(depths.values())
    return sum(max(1, 2 * least - 1) * percent for least, percent in depths.items()) / whole if whole else 0.0


def _flushes(jobs: Sequence[FioJob]) -> shape.OpMeasurement | None:
    known = [job.flush for job in jobs if job.flush is not None]
    return reader.added(known) if known else None


def added(jobs: Sequence[FioJob]) -> dict[shape.Op, shape.OpMeasurement]:
    """Add up what jobs did, direction by direction."""
    measurements = {op: [job.ops[op] for job in jobs if op in job.ops] for op in OPS}
    return {op: reader.added(parts) for op, parts in measurements.items() if parts}


def read_percent(ops: set[shape.Op]) -> float | None:
    """Return the share of reads that directions alone can tell."""
    return {frozenset({"read"}): 100.0, frozenset({"write"}): 0.0}.get(frozenset(ops))
