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

OPS: Final[tuple[shape.Op, ...]] = ("read", "write", "trim")
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
    errors = [job.error for job in jobs if job.error]
    cpu = [job.cpu_percent for job in jobs if job.cpu_percent is not None]
    return shape.Case(
        name=", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else ""),
        source="fio",
        jobs=asked,
        total=reader.added(parts) if parts else shape.OpMeasurement(),
        ops=ops,
        seconds=max(seconds, default=None),
        by_job={name: added(mine) for name, mine in by_name.items()},
        targets=fio_options.targets(asked),
        flush=_flushes(jobs),
        problems=tuple(
            shape.ErrorCount("io_error", f"fio ended a job with error {errno}", errors.count(errno))
            for errno in dict.fromkeys(errors)
        ),
        generator_cpu_percent=sum(cpu) if len(cpu) == len(jobs) else None,
    )


def _flushes(jobs: Sequence[FioJob]) -> shape.OpMeasurement | None:
    known = [job.flush for job in jobs if job.flush is not None]
    return reader.added(known) if known else None


def added(jobs: Sequence[FioJob]) -> dict[shape.Op, shape.OpMeasurement]:
    """Add up what jobs did, direction by direction."""
    found = {op: [job.ops[op] for job in jobs if op in job.ops] for op in OPS}
    return {op: reader.added(parts) for op, parts in found.items() if parts}


def read_percent(ops: set[shape.Op]) -> float | None:
    """Return the share of reads that directions alone can tell."""
    return {frozenset({"read"}): 100.0, frozenset({"write"}): 0.0}.get(frozenset(ops))
