"""The pattern of a load in the words of a results table: `4k random read`, `128k sequential write`.

Knows how block sizes, randomness and mix are written, and what of them is not known. Two sides
that asked for the same pattern have the same words, whatever language they were asked in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.messages import say

if TYPE_CHECKING:
    from loadstone.audit.case import Case, JobRequest, OpMeasurement

MAX_NAMED: Final = 3
"""More patterns than this at the same time are counted."""
MAX_SIZES: Final = 4
ALMOST: Final = 0.01
"""A mean size this near a power of two is that size: tools round the rates it is computed from."""


def pattern(case: Case) -> str:
    """Return what the jobs of a phase did together; the phase's name where nothing is known of it."""
    known = list(dict.fromkeys(one for job in case.jobs if (one := of_job(job, case))))
    if not known:
        return case.name
    if len(known) > MAX_NAMED:
        return say("comparison.pattern.at_once", patterns=len(known))
    return " + ".join(known)


def of_job(job: JobRequest, case: Case) -> str:
    """Return the pattern of one job; empty when nothing is known."""
    if job.operation is not None:
        return job.operation
    alone = len(case.jobs) == 1
    job_ops = case.by_job.get(job.job) or (case.ops if alone else {})
    moved: list[str] = [op for op, one in job_ops.items() if one.operations or one.iops is not None]
    mix = _mix(job, moved)
    size = _sizes(job) or (_measured_size(case.total) if alone else "")
    order = "" if job.random_percent is None or mix == "trim" else _order(job.random_percent)
    words = " ".join(part for part in (size, order) if part)
    if "%" in mix:
        return f"{words}, {mix}" if words else mix
    return " ".join(part for part in (words, mix) if part)


def may_be_one(case: Case, other: Case) -> bool:
    """Tell whether two phases have no part of a pattern that both tell, and tell differently."""
    jobs, other_jobs = (list(dict.fromkeys(_parts(job, one) for job in one.jobs)) for one in (case, other))
    return len(jobs) == len(other_jobs) and all(
        part == other_part or None in (part, other_part)
        for job, other_job in zip(jobs, other_jobs, strict=True)
        for part, other_part in zip(job, other_job, strict=True)
    )


def _parts(job: JobRequest, case: Case) -> tuple[object, ...]:
    """Return the parts of a job's pattern, each None where it is not known."""
    size_known = _sizes(job) or (_measured_size(case.total) if len(case.jobs) == 1 else "")
    return job.operation or "", size_known or None, job.random_percent, job.read_percent


def size(value_bytes: float) -> str:
    """Write a block size as fio does: `4k`, `1m`, `512`."""
    for unit, text in ((1 << 20, "m"), (1 << 10, "k")):
        if value_bytes >= unit and value_bytes % unit == 0:
            return f"{value_bytes // unit:.0f}{text}"
    for unit, text in ((1 << 20, "m"), (1 << 10, "k")):
        if value_bytes >= unit:
            parts = value_bytes / unit
            return f"{parts:.3g}{text}" if parts < 999.5 else f"{parts:.0f}{text}"
    return f"{value_bytes:.0f}"


def _sizes(job: JobRequest) -> str:
    sizes = sorted(job.block_bytes)
    if not sizes:
        return ""
    if len(sizes) <= MAX_SIZES:
        return "/".join(size(one) for one in sizes)
    return f"{size(sizes[0])}-{size(sizes[-1])}"


def _measured_size(total: OpMeasurement) -> str:
    if total.iops is None or total.bandwidth is None or not total.iops.value:
        return ""
    mean = total.bandwidth.value / total.iops.value
    near = 1 << max(9, round(mean).bit_length() - 1)
    nearest = min((near, 2 * near), key=lambda one: abs(one - mean))
    return size(nearest) if abs(mean / nearest - 1) < ALMOST else ""


def _order(random_percent: float) -> str:
    if random_percent == 0:
        return "sequential"
    return "random" if random_percent == 100 else f"{random_percent:.3g} % random"


def _mix(job: JobRequest, moved: list[str]) -> str:
    if job.read_percent is None:
        return " and ".join(moved)
    if job.read_percent in (0, 100):
        return "read" if job.read_percent else "write"
    return f"{job.read_percent:.3g} % read"
