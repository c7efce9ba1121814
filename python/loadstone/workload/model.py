"""The Workload: what was asked, before anything is resolved against a host.

Knows jobs in the field's words, where each value was written and what was said about it
on the way. A value that was not asked for is None: no default is filled in here. Knows
no job-file syntax, no device and no file on disk.
Units stand last in the names: `_ns` nanoseconds, `_bytes` bytes, `_hz` per second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import Field

from loadstone import units
from loadstone.errors import InputError, Where
from loadstone.frozen_model import FrozenModel
from loadstone.workload.missing_target import refuse_missing_target
from loadstone.workload.priorities import PriorityRequests
from loadstone.workload.trees import TreeWork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Direction = Literal["read", "write", "trim"]
MAX_PATTERN_BYTES: Final = 65_536
"""The longest pattern that writes repeat; the engine keeps no longer one."""
DIRECTIONS: Final[tuple[Direction, ...]] = ("read", "write", "trim")

ReadWrite = Literal[
    "read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "randrw", "trimwrite", "randtrimwrite"
]
NoteKind = Literal["harmless", "trap", "changed", "info"]


class Note(FrozenModel):
    """Something the user should know that is not an error.

    `harmless`: an option that changes nothing here. `trap`: another tool would have read
    it differently. `changed`: done another way than written. `info`: the rest.
    """

    where: Where | None
    text: str
    kind: NoteKind


class Amount(FrozenModel):
    """Bytes, or a percentage of what is there: exactly one of the two."""

    bytes: int | None = None
    percent: float | None = None

    def of(self, whole_bytes: int) -> int:
        """Return the bytes meant when the whole has `whole_bytes`."""
        if self.bytes is not None:
            return self.bytes
        return int(whole_bytes * (self.percent or 0) // 100)


class FixedSize(FrozenModel):
    """Every I/O has this size."""

    type: Literal["fixed"] = "fixed"
    bytes: int


class SizeRange(FrozenModel):
    """Sizes between two, both included."""

    type: Literal["range"] = "range"
    min_bytes: int
    max_bytes: int


class SizeShare(NamedTuple):
    """One size and its share of the I/Os; None: an equal part of what the others leave."""

    bytes: int
    percent: float | None


class SizeTable(FrozenModel):
    """Sizes with shares."""

    type: Literal["table"] = "table"
    entries: tuple[SizeShare, ...]


BlockSizes = Annotated[FixedSize | SizeRange | SizeTable, Field(discriminator="type")]

SizesByDirection = tuple[BlockSizes | None, BlockSizes | None, BlockSizes | None]
"""For reads, writes and trims; None: not asked for."""
NumbersByDirection = tuple[float | None, float | None, float | None]


class Reuse(FrozenModel):
    """A hierarchical reuse random walk: a place in a binary tree that mostly stays near."""

    leaf_bytes: int
    least_leaves: int
    """The next leaf is one of so many around the last, or of twice as many, and again."""
    climb_percent: int
    """Chance of each doubling."""
    step_leaves: int = 1
    """Only leaves whose number is a multiple of this."""
    again_percent: int = 0
    """Share of I/Os that are done once more."""


class Distribution(FrozenModel):
    """How random addresses are spread; `parameter` is theta, h or a percentage."""

    kind: Literal["random", "zipf", "pareto", "normal", "zoned", "zoned_abs", "reuse", "sequence"]
    parameter: float | None = None
    reuse: Reuse | None = None
    """Of the kind `reuse`, which walks on with every I/O of the job, of any direction."""
    center: float | None = None
    blocks: tuple[int, ...] = ()
    """Of the kind `sequence`: numbers of blocks, in order, over and over."""
    zones: tuple[tuple[float, float], ...] = ()
    """(access percent, size) in order; size is percent (`zoned`) or bytes (`zoned_abs`)."""


class WorkloadRow(FrozenModel):
    """One kind of I/O among several: its part of them, and what is its own."""

    percent: Annotated[float, Field(gt=0)]
    bytes: Annotated[int, Field(gt=0)]
    read_percent: Annotated[int, Field(ge=0, le=100)]
    random_percent: Annotated[int, Field(ge=0, le=100)]
    """Others go on where the I/O before them ended, of whichever row it was."""
    align_bytes: Annotated[int, Field(gt=0)] | None = None
    """None: what the target can do."""
    burst: Annotated[int, Field(gt=0)] = 1
    """I/Os that follow each other when it is the row's turn."""


class FileService(FrozenModel):
    """How a job with several files takes the next one, and after how many I/Os."""

    kind: Literal["roundrobin", "random", "sequential"]
    every: int | None = None


class LogRequests(FrozenModel):
    """Log files asked for, by the prefix of their names; None: not asked for, "": the job's name."""

    bw: str | None = None
    iops: str | None = None
    lat: str | None = None
    hist: str | None = None
    avg_msec: int | None = None
    max_value: int | None = None
    """0 average, 1 the largest of a window, 2 both."""
    per_job: bool | None = None
    offset: bool | None = None
    prio: bool | None = None
    issue_time: bool | None = None
    entries: int | None = None
    hist_msec: int | None = None
    hist_coarseness: int | None = None
    unix_epoch: bool | None = None
    alternate_epoch: bool | None = None
    alternate_epoch_clock_id: int | None = None
    store_compressed: bool | None = None
    compression_bytes: int | None = None
    iolog: str | None = None
    """Where a trace of every I/O goes."""

    @property
    def wanted(self) -> bool:
        """Whether any log file is asked for."""
        return any(log is not None for log in (self.bw, self.iops, self.lat, self.hist))

    @property
    def every_io(self) -> bool:
        """Whether a log or a trace with a line per I/O is asked for."""
        logs = any(log is not None for log in (self.bw, self.iops, self.lat)) and not self.avg_msec
        return logs or self.iolog is not None


class StatRequests(FrozenModel):
    """What to show of the statistics and how."""

    clat_percentiles: bool | None = None
    lat_percentiles: bool | None = None
    slat_percentiles: bool | None = None
    percentile_list: tuple[float, ...] | None = None
    significant_figures: int | None = None
    unified_rw: Literal["none", "mixed", "both"] | None = None
    bw_window_msec: int | None = None
    iops_window_msec: int | None = None
    unit_base: int | None = None
    disk_util: bool | None = None
    show_slat: bool | None = None
    show_clat: bool | None = None
    show_lat: bool | None = None
    show_bw: bool | None = None


class SteadyRule(FrozenModel):
    """What has to be steady, and how much."""

    metric: Literal["iops", "bw", "lat"]
    slope: bool
    limit: float
    """Percent of the mean, or I/Os or bytes per second, or nanoseconds."""
    percent: bool


class TargetName(FrozenModel):
    """A file or device by name; `written` is what the user wrote when it was mapped."""

    path: str
    written: str


class HostPlace(FrozenModel):
    """A host that does a job, or a part of it."""

    names: tuple[str, ...]
    """What it may be called: its label in the job file, its address."""
    where: Where
    targets: tuple[TargetName, ...] = ()
    """The job's targets there, where they are others than elsewhere."""
    away: bool = True
    """It is another machine: its part is not done here."""


class Job(FrozenModel):
    """One job section: every field None (or empty) when it was not asked for."""

    name: str
    where: Where
    section: str = ""
    """What files made for the job are called after; empty: its name."""
    set_at: dict[str, Where] = Field(default_factory=dict)
    """Field name (`logs.bw` for nested ones) to where its value was written."""
    own_options: dict[str, str] = Field(default_factory=dict)
    """The options of the job's own section, as text, by their canonical names."""

    # Which I/O
    rw: ReadWrite | None = None
    rw_number: int | None = None
    stride_spread_bytes: int = 0
    """Sequential: at most so many bytes more than `rw_number`, drawn for each I/O."""
    """The number after `rw=randread:` (I/Os per address) or `rw=read:` (bytes skipped)."""
    rw_sequencer: Literal["sequential", "identical"] | None = None
    rwmix_read_percent: int | None = None
    bs: SizesByDirection = (None, None, None)
    bsrange: SizesByDirection = (None, None, None)
    bssplit: SizesByDirection = (None, None, None)
    bs_unaligned: bool | None = None
    bs_is_seq_rand: bool | None = None
    blockalign_bytes: tuple[int | None, int | None, int | None] = (None, None, None)
    random_distribution: tuple[Distribution | None, Distribution | None, Distribution | None] = (
        None,
        None,
        None,
    )
    sequence_advances: bool | None = None
    """A `sequence` lies further on each time it begins again."""
    percentage_random: NumbersByDirection = (None, None, None)
    rows: tuple[WorkloadRow, ...] = ()
    """In place of all of the above: I/Os whose size, direction and address depend on each other."""
    norandommap: bool | None = None
    random_generator: Literal["tausworthe", "tausworthe64", "lfsr"] | None = None
    softrandommap: bool | None = None
    randrepeat: bool | None = None
    allrandrepeat: bool | None = None
    randseed: int | None = None

    # Where and how much
    targets: tuple[TargetName, ...] = ()
    directories: tuple[str, ...] = ()
    filename_format: str | None = None
    nrfiles: int | None = None
    openfiles: int | None = None
    file_service: FileService | None = None
    size: Amount | None = None
    io_size: Amount | None = None
    filesize_bytes: tuple[int, int] | None = None
    """Smallest and largest."""
    offset: Amount | None = None
    offset_increment: Amount | None = None
    offset_align_bytes: int | None = None
    number_ios: int | None = None
    fill_device: bool | None = None
    loops: int | None = None
    allow_file_create: bool | None = None
    create_fsync: bool | None = None
    create_on_open: bool | None = None
    overwrite: bool | None = None
    fallocate: Literal["none", "native", "posix", "keep", "truncate"] | None = None
    fadvise: Literal["none", "pattern", "random", "sequential"] | None = None
    invalidate: bool | None = None
    unlink: bool | None = None

    tree: TreeWork | None = None
    """In place of I/O to its targets: operations on the files of a tree; the anchor is the target."""

    zone_mode: Literal["none", "strided"] | None = None
    zone_size_bytes: int | None = None
    zone_range_bytes: int | None = None
    zone_skip_bytes: int | None = None

    # How
    ioengine: str | None = None
    command_type: Literal["nvme"] | None = None
    """Whose commands `ioengine=io_uring_cmd` sends; None: the only ones there are."""
    stat_type: Literal["stat", "lstat", "statx"] | None = None
    """The call of `ioengine=filestat` and `dirstat`."""
    donor: str | None = None
    """Of `ioengine=e4defrag`: the file blocks come from, in the job's directory."""
    donor_in_place: bool | None = None
    """It gets its blocks for each I/O anew."""
    iodepth: int | None = None
    iodepth_batch: int | None = None
    iodepth_batch_complete_min: int | None = None
    iodepth_batch_complete_max: int | None = None
    iodepth_low: int | None = None
    direct: bool | None = None
    sync: Literal["none", "sync", "dsync"] | None = None
    hipri: bool | None = None
    registerfiles: bool | None = None
    fixedbufs: bool | None = None
    sqthread_poll: bool | None = None
    thread: bool | None = None
    fsync_every: int | None = None
    fdatasync_every: int | None = None
    end_fsync: bool | None = None
    fsync_on_close: bool | None = None
    serialize_overlap: bool | None = None
    force_async: int | None = None
    """Of a ring: every so manieth I/O goes to a kernel worker without a try in the caller."""
    create_only: bool | None = None
    """Its files are prepared, and nothing else is done."""
    ioscheduler: str | None = None
    """Set for the devices of its targets, for as long as the run goes."""

    # When
    numjobs: int | None = None
    stonewall: bool | None = None
    new_group: bool | None = None
    group_reporting: bool | None = None
    exitall: bool | None = None
    exitall_on_error: bool | None = None
    exit_what: Literal["group", "stonewall", "all"] | None = None
    start_delay_ns: tuple[int, int] | None = None
    """Smallest and largest: one of them is drawn."""
    ramp_ns: int | None = None
    runtime_ns: int | None = None
    time_based: bool | None = None
    rate_bytes: NumbersByDirection = (None, None, None)
    rate_min_bytes: NumbersByDirection = (None, None, None)
    rate_iops: NumbersByDirection = (None, None, None)
    rate_iops_min: NumbersByDirection = (None, None, None)
    rate_process: Literal["linear", "poisson", "uniform", "spike"] | None = None
    rate_cycle_ns: int | None = None
    rate_profile: tuple[tuple[int, float], ...] = ()
    """Time since the clone's start in ns and share of its rate; straight lines between."""
    thinktime_ns: int | None = None
    thinktime_spin_ns: int | None = None
    thinktime_blocks: int | None = None
    thinktime_iotime_ns: int | None = None
    """Pause after so long, not after so many I/Os."""
    thinktime_blocks_type: Literal["complete", "issue"] | None = None
    wait_for: str | None = None
    """Name of the job that has to end first."""
    latency_target_ns: int | None = None
    latency_window_ns: int | None = None
    latency_percentile: float | None = None
    latency_run: bool | None = None
    max_latency_ns: NumbersByDirection = (None, None, None)
    steady: SteadyRule | None = None
    steady_duration_ns: int | None = None
    steady_ramp_ns: int | None = None
    steady_interval_ns: int | None = None
    flow: int | None = None
    flow_id: int | None = None
    thread_of: str | None = None
    """Jobs with the same name here are served by one thread, one I/O at a time in all."""
    flow_sleep_ns: int | None = None
    flow_ahead: int | None = None
    """I/Os it may be ahead of its share, at most 1/64 of its own; none: shares are exact."""

    # Payload
    zero_buffers: bool | None = None
    refill_buffers: bool | None = None
    scramble_buffers: bool | None = None
    buffer_pattern: tuple[int, ...] | None = None
    """Bytes 0 to 255, at most `MAX_PATTERN_BYTES` of them."""
    compress_percent: int | None = None
    compress_chunk_bytes: int | None = None
    dedupe_percent: int | None = None
    dedupe_unit_bytes: int | None = None
    """What is drawn together, new or repeated; `None`: a whole write."""
    dedupe_mode: Literal["repeat", "working_set"] | None = None
    dedupe_set_percent: int | None = None
    """Of the size: how much content there is to repeat from."""
    dedupe_global: bool | None = None

    # Verification
    verify: str | None = None
    """The method as fio calls it; all of them are done by the engine's own stamps."""
    verify_pattern: tuple[int, ...] | None = None
    """Bytes 0 to 255; given alone it means `verify=pattern`, as in fio."""
    do_verify: bool | None = None
    verify_only: bool | None = None
    verify_interval_bytes: int | None = None
    verify_fatal: bool | None = None
    verify_pattern_offsets: tuple[int, ...] = ()
    """Where in the pattern the offset of the I/O stands, 8 bytes."""
    verify_pattern_interval_bytes: int | None = None
    verify_offset_bytes: int | None = None
    verify_backlog: int | None = None
    verify_backlog_batch: int | None = None
    verify_dump: bool | None = None
    verify_header_seed: bool | None = None
    verify_write_sequence: bool | None = None
    verify_state_save: bool | None = None
    verify_state_load: bool | None = None
    verify_policy: Literal["completed", "fsynced"] | None = None
    experimental_verify: bool | None = None
    trim_percent: int | None = None
    trim_backlog: int | None = None
    trim_backlog_batch: int | None = None
    trim_verify_zero: bool | None = None
    verify_before_write: bool | None = None
    """What is known of the place of a write is read and checked before it."""
    verify_after_write: bool | None = None
    """What was written is read and checked at once."""

    # The process
    cpus_allowed: tuple[int, ...] | None = None
    cpus_policy: Literal["shared", "split"] | None = None
    numa_nodes: tuple[int, ...] | Literal["all"] | None = None
    """Whose CPUs may be used."""
    numa_memory: str | None = None
    """Where memory is to come from, as fio writes it: `bind:0`."""
    nice: int | None = None
    priorities: PriorityRequests = PriorityRequests()
    exec_prerun: str | None = None
    exec_postrun: str | None = None
    description: str | None = None

    hosts: tuple[HostPlace, ...] = ()
    """Of a job file for several hosts: those that do the job together, each its part of depth and rate.
    Empty: every host of the run does all of it."""

    # Errors and results
    continue_on_error: Literal["none", "read", "write", "io", "verify", "all"] | None = None
    continue_after: tuple[int, ...] = ()
    """Only after these errors; empty: after any."""
    ignore_read_errors: tuple[int, ...] = ()
    ignore_write_errors: tuple[int, ...] = ()
    logs: LogRequests = LogRequests()
    stats: StatRequests = StatRequests()

    @property
    def stem(self) -> str:
        """What files made for the job are called after."""
        return self.section or self.name

    def at(self, field: str) -> Where:
        """Where a field was written, or the job's section when it was not."""
        return self.set_at.get(field, self.where)


class Workload(FrozenModel):
    """Everything asked for in one run."""

    name: str
    jobs: tuple[Job, ...]
    notes: tuple[Note, ...] = ()
    strict_fio_reading: bool = False
    """Read exactly as fio does, traps included: refusals that fio does not know are off."""
    needs_targets: bool = False
    """The jobs name no target of their own: `with_targets` must be used."""
    job_per_target: bool = False
    """`with_targets` makes one job for each target, not one job on all of them."""
    hand_over: bool = False
    """What is known of verified blocks goes from one run of a study to the next."""
    global_options: dict[str, str] = Field(default_factory=dict)
    """Options of the default sections, as text; where they differ the last."""
    sources: dict[str, bytes] = Field(default={}, exclude=True)
    """Path (or `<command line>`) to what was read there, byte for byte."""

    def map_targets(self, mapping: Mapping[str, str]) -> Workload:
        """Replace targets by name. Raises InputError for an old name that occurs nowhere."""
        jobs = []
        for job in self.jobs:
            targets = tuple(
                TargetName(path=mapping.get(target.path, target.path), written=target.written)
                for target in job.targets
            )
            if not targets and job.stem in mapping:
                targets = (TargetName(path=mapping[job.stem], written=job.stem),)
            jobs.append(job.model_copy(update={"targets": targets}))
        names = {name for job in self.jobs for name in (*(t.path for t in job.targets), *_own_name(job))}
        for old in mapping:
            if old not in names:
                if not self.strict_fio_reading:
                    # The name may be missing because a section forgot it: say that first.
                    refuse_missing_target(jobs)
                known = ", ".join(sorted(names))
                hint = f"the names in use are: {known}" if names else "no job names a file: use --target"
                raise InputError(f"no job uses {old!r}", hint=hint)
        return self._with(jobs, ", ".join(f"{old} is {new}" for old, new in mapping.items()))

    def with_targets(self, paths: Sequence[str]) -> Workload:
        """Let every job use these targets instead of its own. Raises InputError without effect."""
        if not paths:
            raise InputError("no target is given")
        if len(set(paths)) != len(paths):
            raise InputError("a target is given twice")
        if all(job.ioengine == "null" for job in self.jobs):
            raise InputError("no job does I/O on a target (ioengine=null)", hint="leave --target out")
        targets = tuple(TargetName(path=path, written=path) for path in paths)
        update: dict[str, object] = {"directories": (), "filename_format": None, "nrfiles": None}
        jobs = []
        for job in self.jobs:
            if not self.job_per_target:
                jobs.append(job.model_copy(update={**update, "targets": targets}))
                continue
            for number, target in enumerate(targets, start=1):
                name = job.name if len(targets) == 1 else f"{job.name}-{number}"
                wall = job.stonewall if number == 1 else None
                jobs.append(
                    job.model_copy(update={**update, "name": name, "targets": (target,), "stonewall": wall})
                )
        return self._with(jobs, "all jobs use " + ", ".join(paths))

    def with_runtime(self, runtime_ns: int) -> Workload:
        """Let every job run this long at most. Nanoseconds, above 0."""
        if runtime_ns <= 0:
            raise InputError("the runtime is 0: expected a time such as 30s")
        jobs = [job.model_copy(update={"runtime_ns": runtime_ns}) for job in self.jobs]
        return self._with(jobs, f"every job runs at most {runtime_ns / 1e9:g} s")

    def with_size(self, size: Amount) -> Workload:
        """Let every job use this much of its targets. Raises InputError where it has no effect."""
        if not (size.bytes or size.percent):
            raise InputError("the size is 0: expected a size such as 1g or 10%")
        for job in self.jobs:
            if job.filesize_bytes is not None:
                raise InputError(
                    f"[{job.name}] has filesize, so a size has no effect on its range",
                    where=job.at("filesize_bytes"),
                )
        jobs = [job.model_copy(update={"size": size, "io_size": None}) for job in self.jobs]
        amount = f"{size.percent:g}%" if size.percent is not None else units.size(size.bytes)
        return self._with(jobs, f"every job uses {amount}")

    def _with(self, jobs: Sequence[Job], change: str) -> Workload:
        note = Note(where=None, text=f"as asked: {change}", kind="changed")
        return self.model_copy(update={"jobs": tuple(jobs), "notes": (*self.notes, note)})


def _own_name(job: Job) -> tuple[str, ...]:
    """Return the job's name where it may be its target: a path, and no other target given."""
    return (job.stem,) if not job.targets and "/" in job.stem else ()
