"""Which lines fio would report for a run, and what each job asked to be shown.

Knows how a Plan's units and streams come from the Workload's jobs, fio's thread numbers
and what `group_reporting` puts on one line. Knows no measurement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.errors import BundleError
from loadstone.formats.fio.grammar import COMMAND_LINE
from loadstone.formats.fio.table import BY_NAME
from loadstone.messages import make_error
from loadstone.plan.asking_jobs import jobs_of_units
from loadstone.plan.backends import of_engine
from loadstone.plan.derived import reads_back
from loadstone.plan.large_blocks import MAX_MOVED_BYTES
from loadstone.plan.pattern import blocks_of
from loadstone.report.fio.number_text import scaled
from loadstone.report.fio.stats import DEFAULT_PERCENTILES, READ, TRIM, WRITE, JobLine
from loadstone.workload.block_sizes import FixedSize
from loadstone.workload.rows import RowWork

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.plan.model import OpPattern, Plan
    from loadstone.workload.block_sizes import BlockSizes
    from loadstone.workload.model import Job, Workload

DEFAULT_ENGINE: Final = "psync"
DEFAULT_IODEPTH: Final = 1


@dataclass(slots=True)
class Member:
    """A unit of the Plan, with the job it comes from and the streams that feed it."""

    unit: int
    job: Job
    streams: list[int] = field(default_factory=list)
    number: int = 1
    """fio's thread number of its first stream, from 1."""

    @property
    def is_shown(self) -> bool:
        """Whether the job is in the results: `stats=0` leaves it out."""
        return self.job.outputs.stats.show_job is not False

    @property
    def has_slat(self) -> bool:
        """Whether fio measures a submission latency for this job."""
        engine = self.job.engine.ioengine or DEFAULT_ENGINE
        if engine == "null":
            return (self.job.engine.iodepth or DEFAULT_IODEPTH) > 1
        return of_engine(engine).native_depth


def members(plan: Plan, workload: Workload) -> list[Member]:
    """Every unit with its job and streams, in the Plan's order."""
    everyone: list[Member] = []
    for index, job in enumerate(jobs_of_units(plan, workload)):
        if job is None:
            raise make_error(BundleError, "report.fio.unit", name=repr(plan.units[index].name))
        everyone.append(Member(index, job))
    number_of = numbers(plan)
    for index, stream in enumerate(plan.streams):
        member = everyone[plan.cells[stream.files[0].cell].unit]
        if not member.streams:
            member.number = number_of[index]
        member.streams.append(index)
    return everyone


def numbers(plan: Plan) -> list[int]:
    """Return fio's number of each stream: reading back is a part of the clone that wrote."""
    stream_numbers: list[int] = []
    for index, stream in enumerate(plan.streams):
        of_the_one_before = index > 0 and stream.name == f"{plan.streams[index - 1].name}.verify"
        last = stream_numbers[-1] if stream_numbers else 0
        stream_numbers.append(last if of_the_one_before else last + 1)
    return stream_numbers


def group_members(plan: Plan, everyone: Sequence[Member]) -> list[list[Member]]:
    """Members by line of the result: with `group_reporting` a group's jobs share a line.

    Those that are left out follow last, each on a line of its own.
    """
    groups: list[list[Member]] = []
    last_group: int | None = None
    for member in (one for one in everyone if one.is_shown):
        group = plan.units[member.unit].group
        if member.job.schedule.group_reporting and last_group == group:
            groups[-1].append(member)
        else:
            groups.append([member])
        last_group = group
    return groups + [[member] for member in everyone if not member.is_shown]


def empty_line(plan: Plan, together: Sequence[Member]) -> JobLine:
    """Make a line without figures yet: what the first job asked for, and the last where fio overwrites it."""
    first = together[0]
    job, last = first.job, together[-1].job
    stats, last_stats = job.outputs.stats, last.outputs.stats
    return JobLine(
        name=job.name,
        group=plan.units[first.unit].group,
        members=sum(not reads_back(plan.streams[n]) for member in together for n in member.streams),
        number=first.number,
        description=job.outputs.description or "",
        options=_options(last),
        continue_on_error=_goes_on(last),
        percentiles=tuple(sorted(last_stats.percentile_list or DEFAULT_PERCENTILES)),
        slat_percentiles=bool(last_stats.slat_percentiles) and last_stats.show_slat is not False,
        clat_percentiles=_clat_percentiles(last),
        lat_percentiles=bool(last_stats.lat_percentiles) and last_stats.show_lat is not False,
        unified=stats.unified_rw or "none",
        significant_figures=stats.significant_figures or 4,
        bits=stats.unit_base == 1,
        iodepth=last.engine.iodepth or DEFAULT_IODEPTH,
    )


def _goes_on(job: Job) -> bool:
    """Whether a failed I/O may be no end, as `ignore_error` says, too: then fio tells of errors."""
    errors = job.errors
    return (errors.continue_on_error or "none") != "none" or bool(
        errors.ignore_read_errors or errors.ignore_write_errors
    )


def _options(job: Job) -> dict[str, str]:
    """Give the section's own options; on a command line `name` is one of them."""
    if job.where.file == COMMAND_LINE:
        return {"name": job.name, **job.own_options}
    return of_fio(job.own_options)


def of_fio(options: dict[str, str]) -> dict[str, str]:
    """Return options as fio's, none of them where they are words of another language.

    Whoever reads fio's results takes its defaults for what is not there.
    """
    return options if options.keys() <= BY_NAME.keys() else {}


def _clat_percentiles(job: Job) -> bool:
    """Whether there are percentiles; where a latency is not measured fio has none of it."""
    option = job.outputs.stats.clat_percentiles
    return job.outputs.stats.show_clat is not False and (True if option is None else option)


def headers(plan: Plan, everyone: Sequence[Member]) -> list[str]:
    """Write the lines fio prints about each section before the run; `...` stands for its clones."""
    rows: list[str] = []
    described: set[int] = set()
    for member in everyone:
        if id(member.job) in described:
            continue
        described.add(id(member.job))
        rows.append(_header(plan, member))
        if (member.job.schedule.numjobs or 1) > 1:
            rows.append("...")
    return rows


def _header(plan: Plan, member: Member) -> str:
    job = member.job
    digits = job.outputs.stats.significant_figures or 4
    sizes = _spans(plan, member, digits)
    sizes_text = f"(R) {sizes[READ]}, (W) {sizes[WRITE]}, " + (
        "bs_is_seq_rand" if job.outputs.bs_is_seq_rand else f"(T) {sizes[TRIM]}"
    )
    return (
        f"{job.name}: (g={plan.units[member.unit].group}): rw={_kind(job)}, bs={sizes_text},"
        f" ioengine={job.engine.ioengine or DEFAULT_ENGINE}, iodepth={job.engine.iodepth or DEFAULT_IODEPTH}"
    )


def _asked_size(block_sizes: BlockSizes | None, digits: int) -> str | None:
    """Write a size that is too large for one call, and so stands in the Plan in parts."""
    if not isinstance(block_sizes, FixedSize) or block_sizes.bytes <= MAX_MOVED_BYTES:
        return None
    return "-".join([scaled(block_sizes.bytes, digits, binary=True, unit="B")] * 2)


def _kind(job: Job) -> str:
    """Return fio's word for the mix of a job; rows of other languages have one together."""
    if not isinstance(job.work, RowWork):
        return blocks_of(job).mix.rw
    reads = {row.read_percent for row in job.work.rows}
    name = "read" if reads == {100} else "write" if reads == {0} else "rw"
    return f"rand{name}" if any(row.random_percent for row in job.work.rows) else name


def _spans(plan: Plan, member: Member, digits: int) -> list[str]:
    """Return the smallest and the largest size of reads, writes and trims, as fio prints them."""
    work = member.job.work
    if not isinstance(work, RowWork):
        pattern = plan.streams[member.streams[0]].pattern
        return [
            _asked_size(requested, digits) or _span(done, digits)
            for requested, done in zip(
                blocks_of(member.job).sizes.bs, (pattern.read, pattern.write, pattern.trim), strict=True
            )
        ]
    every = [row.bytes for row in work.rows]
    reads = [row.bytes for row in work.rows if row.read_percent] or every
    writes = [row.bytes for row in work.rows if row.read_percent < 100] or every
    return [_ends(min(sizes), max(sizes), digits) for sizes in (reads, writes, every)]


def _span(pattern: OpPattern, digits: int) -> str:
    sizes = pattern.sizes
    if sizes.type == "fixed":
        low = high = sizes.bytes
    elif sizes.type == "range":
        low, high = sizes.min_bytes, sizes.max_bytes
    else:
        low = min(entry.bytes for entry in sizes.table)
        high = max(entry.bytes for entry in sizes.table)
    return _ends(low, high, digits)


def _ends(low: int, high: int, digits: int) -> str:
    return "-".join(scaled(size, digits, binary=True, unit="B") for size in (low, high))
