"""What of a phase's jobs decides which explanations can hold for it, from what was asked of them.

Knows requests and the targets' sizes; no Plan and no sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.explanations.job_facts import GRID_BYTES, WHOLE, JobFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.audit.case import JobRequest, PayloadProperties, TargetState


def job_facts(jobs: Sequence[JobRequest], targets: Sequence[TargetState]) -> JobFacts | None:
    """Return the facts of the jobs of a phase; None where it is not known what one of them does."""
    if not jobs or any(not job.operations or job.depth is None for job in jobs):
        return None
    does = frozenset[str]().union(*(job.operations for job in jobs))
    ranges = [one for job in jobs for clone in job.ranges for one in clone]
    used = dict.fromkeys((one.target for one in ranges), 0)
    for one in ranges:
        used[one.target] = max(used[one.target], one.length_bytes)
    whole = sum(target.size_bytes or 0 for target in targets if target.path in used)
    sizes = [size for job in jobs for size in job.block_bytes]
    return JobFacts(
        reads="read" in does,
        writes="write" in does,
        in_order=any(job.random_percent is not None and job.random_percent < 100 for job in jobs),
        paced=any(job.paced for job in jobs),
        depth=sum(job.depth or 0 for job in jobs),
        targets=len(used),
        partial=sum(used.values()) < WHOLE * whole,
        off_grid=any(number % GRID_BYTES for number in (*sizes, *(one.start_bytes for one in ranges))),
        repeats_payload=any(_repeats(job.payload) for job in jobs if job.payload is not None),
        in_tree=any(target.kind == "tree" for target in targets),
    )


def _repeats(payload: PayloadProperties) -> bool:
    is_new = payload.kind in {"random", "stamped"} and not payload.repeats
    return not is_new or bool(payload.compress_percent or payload.dedupe_percent)
