"""What only planning decides of a job: who runs it, at which depth, and where.

Knows the Plan. What the job is to do there is the Workload's (`requested`), and nothing here says it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.audit.case import Range
from loadstone.plan.derived import targets_of
from loadstone.plan.model import BackendIoUring, BackendIoUringCmd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.plan.model import Plan, Stream
    from loadstone.workload.model import Job


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of a job's clones on the host of the run."""

    iodepth: int | None
    """The depth its backend can do; None: clones differ."""
    depth: int
    """Of all clones together."""
    backend: str
    polls: bool
    """It spins for completions."""
    targets: tuple[str, ...]
    direct: bool | None
    """How the targets are opened: what kind they are may leave no choice."""
    ranges: tuple[tuple[Range, ...], ...]
    """One tuple for each clone; none in trees."""
    size_bytes: int
    seeds: tuple[int, ...]


def planned(plan: Plan, streams: Sequence[Stream]) -> Planned:
    """Return what is planned for the streams of one job. What it wrote is read back in a later stage."""
    first_stage = min(plan.workers[stream.worker].stage for stream in streams)
    does = [stream for stream in streams if plan.workers[stream.worker].stage == first_stage]
    numbers = dict.fromkeys(number for stream in does for number in targets_of(plan, stream))
    used = [plan.targets[number] for number in numbers]
    ranges = tuple(_ranges(plan, stream) for stream in does if stream.tree is None)
    backend = plan.workers[does[0].worker].backend
    depths = {stream.iodepth for stream in does}
    return Planned(
        iodepth=depths.pop() if len(depths) == 1 else None,
        depth=sum(stream.iodepth for stream in does),
        backend=backend.type,
        polls=isinstance(backend, BackendIoUring | BackendIoUringCmd) and (backend.iopoll or backend.sqpoll),
        targets=tuple(dict.fromkeys(target.path for target in used)),
        direct=all(target.direct for target in used) if used else None,
        ranges=ranges,
        size_bytes=union_bytes(one for clone in ranges for one in clone) if ranges else used[0].size_bytes,
        seeds=tuple(stream.seed for stream in does),
    )


def _ranges(plan: Plan, stream: Stream) -> tuple[Range, ...]:
    return tuple(
        Range(plan.targets[use.target].path, use.offset_bytes, use.length_bytes) for use in stream.files
    )


def jobs_of_units(plan: Plan, jobs: Sequence[Job]) -> dict[int, int]:
    """Return for each unit of a Plan which of the jobs it is of.

    Units are in the order of the jobs: one for each, or one for each of its clones. A job that had
    nothing to remove has none.
    """
    job_numbers: dict[int, int] = {}
    at = 0
    for number, job in enumerate(jobs):
        if at == len(plan.units):
            break
        count = 1 if plan.units[at].clone is None else job.schedule.numjobs or 1
        units = plan.units[at : at + count]
        if all(unit.name == job.name for unit in units):
            job_numbers |= dict.fromkeys(range(at, at + len(units)), number)
            at += count
    return job_numbers


def union_bytes(ranges: Iterable[Range]) -> int:
    """Return the bytes of all ranges together, those in several counted once."""
    by_target: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in ranges:
        by_target[one.target].append((one.start_bytes, one.start_bytes + one.length_bytes))
    whole = 0
    for parts in by_target.values():
        reached = -1
        for start, end in sorted(parts):
            whole += max(0, end - max(start, reached))
            reached = max(reached, end)
    return whole
