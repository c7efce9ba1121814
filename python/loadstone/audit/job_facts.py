"""What of a phase's jobs decides which explanations can hold for it, from what was asked of them.

Knows requests and what a Plan makes of them; no sample. The audit of a run and the probes after it, or
before it, take the facts from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.audit.planned import jobs_of_units, planned
from loadstone.audit.requested import DueRates, request
from loadstone.explanations.job_facts import GRID_BYTES, WHOLE, JobFacts
from loadstone.plan.derived import cells_of
from loadstone.plan.model import TargetKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import JobRequest, PayloadProperties
    from loadstone.plan.model import Plan, Stream
    from loadstone.workload.model import Job


def job_facts(plan: Plan, jobs: Sequence[Job], streams: Sequence[Stream]) -> JobFacts | None:
    """Return the facts of a phase with these streams; None where it is not known what one of them does."""
    requests = _requests(plan, jobs, streams)
    if not requests or any(not job.operations or job.depth is None for job in requests):
        return None
    does = frozenset[str]().union(*(job.operations for job in requests))
    ranges = [one for job in requests for clone in job.ranges for one in clone]
    used = dict.fromkeys((one.target for one in ranges), 0)
    for one in ranges:
        used[one.target] = max(used[one.target], one.length_bytes)
    whole = sum(target.size_bytes for target in plan.targets if target.path in used)
    trees = {target.path for target in plan.targets if target.kind is TargetKind.TREE}
    sizes = [size for job in requests for size in job.block_bytes]
    return JobFacts(
        reads="read" in does,
        writes="write" in does,
        in_order=any(job.random_percent is not None and job.random_percent < 100 for job in requests),
        paced=any(job.paced for job in requests),
        depth=sum(job.depth or 0 for job in requests),
        targets=len(used),
        partial=sum(used.values()) < WHOLE * whole,
        off_grid=any(
            number % GRID_BYTES for number in (*sizes, *(one.start_bytes for one in ranges), *_grids(streams))
        ),
        repeats_payload=any(_repeats(job.payload) for job in requests if job.payload is not None),
        in_tree=any(path in trees for job in requests for path in job.targets),
    )


def _requests(plan: Plan, jobs: Sequence[Job], streams: Sequence[Stream]) -> list[JobRequest]:
    """Return what was asked of the jobs of these streams. No rate is measured here, only asked for."""
    number_of = jobs_of_units(plan, jobs)
    working: dict[tuple[str, int], list[Stream]] = {}
    jobs_of_line: dict[tuple[str, int], dict[int, Job]] = {}
    for stream in streams:
        for unit in sorted({plan.cells[cell].unit for cell in cells_of(stream)}):
            line = (plan.units[unit].name, plan.units[unit].group)
            working.setdefault(line, []).append(stream)
            if unit in number_of:
                jobs_of_line.setdefault(line, {})[number_of[unit]] = jobs[number_of[unit]]
    return [
        request(line[0], list(jobs_of_line.get(line, {}).values()), planned(plan, works), DueRates({}, {}))
        for line, works in working.items()
    ]


def _grids(streams: Sequence[Stream]) -> set[int]:
    """Return what the addresses of reads and writes are multiples of."""
    patterns = [stream.pattern for stream in streams]
    read = {one.read.align_bytes for one in patterns if one.read_percent}
    return read | {one.write.align_bytes for one in patterns if one.write_percent}


def _repeats(payload: PayloadProperties) -> bool:
    is_new = payload.kind in {"random", "stamped"} and not payload.repeats
    return not is_new or bool(payload.compress_percent or payload.dedupe_percent)
