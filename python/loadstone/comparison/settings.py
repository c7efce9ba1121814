"""What the jobs of a phase asked for, in the field's words, whatever tool ran them.

Knows which settings tell two loads apart, and which only say how long or on what a load ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.audit import job_options
from loadstone.comparison.pattern_name import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from loadstone.audit.case import Case, JobRequest, Source
    from loadstone.comparison.phase import ComparedPhase

TARGETS: Final = "targets"
JOB_WORDS: Final = (
    "block size",
    "read share",
    "reads of all I/Os",
    "random share",
    "iodepth",
    "clones",
    "direct I/O",
    "synchronous writes",
    "fsync at the end",
    "I/O backend",
    "rate",
    "working set",
    "fill of the target",
    "written data",
    "shares of block sizes",
    *job_options.NAMES_OF_LOAD,
    *job_options.NAMES_OF_OTHERS,
    "run time",
    "ramp",
)
"""Settings of a job, the most suspect first; `fill` is what of the target had been written before.

Those that only name what was tested come after everything."""
ANOTHER_LOAD: Final = (
    "reads of all I/Os",
    "clones",
    "direct I/O",
    "synchronous writes",
    "fsync at the end",
    "working set",
    "written data",
    "shares of block sizes",
    *job_options.NAMES_OF_LOAD,
)
"""Settings with another value of which other work reaches the storage: a cache answers, or another mix."""
LOAD_WORDS: Final = ("iodepth", "I/O backend", *ANOTHER_LOAD)
"""Settings with another value of which a pattern is another load."""
UNCERTAIN: Final = ("iodepth", "clones", "working set")
"""Settings that depend on how many clones there are."""
MIX_STEP: Final = 5
"""Points of a hundred that a mix may be off what was asked for, and to which another one is rounded."""
MOST_SHARES: Final = 8
"""Of more block sizes the shares are not compared: a range has hundreds."""
MOST_NAMED: Final = 3
"""Of more values of one kind the first are named."""

MEASURED_BY: Final[dict[Source, str]] = {
    "bundle": "Loadstone",
    "fio": "fio",
    "vdbench": "vdbench",
    "iometer": "Iometer",
    "diskspd": "DiskSpd",
    "published": "as published",
}


def of_phase(phase: ComparedPhase) -> dict[str, str]:
    """Return what the jobs of a phase asked for; what none of them tells is left out.

    It is kept as `ComparedPhase.settings`.
    """
    case = phase.case
    by_key: dict[str, dict[str, None]] = {}
    for job in case.jobs:
        for key, value in (("reads of all I/Os", _mix_done(job, case)), *_of_job(job)):
            if value is not None:
                by_key.setdefault(key, {})[value] = None
    words = {key: first_of(values) for key, values in by_key.items()}
    words["measured by"] = MEASURED_BY[case.source]
    ops, moved = phase.asked
    rates = [f"{units.count(ops)} IOPS"] if ops else []
    rates += [units.bandwidth(moved)] if moved else []
    if rates:
        words["rate"] = " and ".join(rates)
    fill = _fill(case)
    if fill is not None:
        words["fill of the target"] = fill
    return words


def load(phase: ComparedPhase) -> dict[str, str]:
    """Return the settings that make its pattern another load, but for those that are only worked out."""
    uncertain = UNCERTAIN if any(job.clones_from_times for job in phase.case.jobs) else ()
    words = phase.settings
    return {key: words[key] for key in LOAD_WORDS if key in words and key not in uncertain}


def _of_job(job: JobRequest) -> Iterator[tuple[str, str | None]]:
    sizes = sorted(job.block_bytes)
    yield "block size", ("/".join(size(one) for one in sizes[:4]) + ("/…" if sizes[4:] else "")) or None
    yield "read share", _percent(job.read_percent)
    yield "random share", _percent(job.random_percent)
    yield "iodepth", None if job.iodepth is None else str(job.iodepth)
    yield "clones", None if job.clones is None else str(job.clones)
    yield "direct I/O", _yes(job.direct)
    yield "synchronous writes", _yes(job.synchronous)
    yield "fsync at the end", _yes(job.end_fsync)
    yield "I/O backend", job.backend
    yield "working set", None if not job.size_bytes else units.size(job.size_bytes)
    yield "written data", None if job.payload is None else _payload(job)
    yield "shares of block sizes", _shares(job)
    yield from job.options.items()
    for target in job.targets:
        yield TARGETS, target
    yield "run time", None if job.runtime_s is None else units.seconds(job.runtime_s)
    yield "ramp", None if job.ramp_s is None else units.seconds(job.ramp_s)


def _mix_done(job: JobRequest, case: Case) -> str | None:
    """Return which share of a job's I/Os were reads; with a rate of each operation it is not that of `rw`."""
    job_ops = case.by_job.get(job.job) or (case.ops if len(case.jobs) == 1 else {})
    rates = {op: one.iops.value for op, one in job_ops.items() if one.iops is not None}
    reads, writes = rates.get("read", 0.0), rates.get("write", 0.0)
    if not reads or not writes:
        return None
    percent = 100 * reads / (reads + writes)
    if job.read_percent is None or abs(percent - job.read_percent) > MIX_STEP:
        return _percent(MIX_STEP * round(percent / MIX_STEP))
    return _percent(job.read_percent)


def _shares(job: JobRequest) -> str | None:
    if not 1 < len(job.block_bytes) <= MOST_SHARES:
        return None
    return ", ".join(f"{size(one)} {_percent(100 * share)}" for one, share in sorted(job.block_bytes.items()))


def _payload(job: JobRequest) -> str | None:
    payload = job.payload
    if payload is None or payload.kind == "unknown":
        return None
    parts: list[str] = [payload.kind]
    parts += [f"{payload.compress_percent:.3g} % compressible"] if payload.compress_percent else []
    parts += [f"{payload.dedupe_percent:.3g} % duplicates"] if payload.dedupe_percent else []
    return ", ".join(parts)


def _fill(case: Case) -> str | None:
    """Return how much of the targets had been written before the run."""
    known = [
        (one.size_bytes, one.unwritten_bytes_before)
        for one in case.targets
        if one.size_bytes and one.unwritten_bytes_before is not None
    ]
    if not known or len(known) < len(case.targets):
        return None
    whole = sum(size_bytes for size_bytes, _ in known)
    written = whole - sum(unwritten for _, unwritten in known)
    return f"{100 * max(0, written) / whole:.0f} % written before"


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g} %"


def _yes(value: bool | None) -> str | None:
    return None if value is None else ("yes" if value else "no")


def first_of(values: Iterable[str], *, separator: str = ", ", most: int = MOST_NAMED) -> str:
    """Return the first of many values, and how many more there are."""
    every = list(values)
    more = len(every) - most
    return separator.join(every[:most]) + (f" and {more} more" if more > 0 else "")
