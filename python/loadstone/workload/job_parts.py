"""The parts of a job beside its work: schedule, pace, threads, priorities, stop conditions, verification.

What was asked, before anything is resolved. I/O priorities are class, level and hint as the kernel's
`ioprio_set(2)` has them (1 real time, 2 best effort, 3 idle). Knows no job-file language and no engine.
"""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel
from loadstone.workload.addresses import NumbersByDirection
from loadstone.workload.placement import Amount


class JobSchedule(FrozenModel):
    """How many clones, and when they run beside other jobs."""

    numjobs: int | None = None
    stonewall: bool | None = None
    new_group: bool | None = None
    group_reporting: bool | None = None
    exitall: bool | None = None
    exitall_on_error: bool | None = None
    exit_what: Literal["group", "stonewall", "all"] | None = None
    start_delay_ns: tuple[int, int] | None = None
    """Smallest and largest: one of them is drawn."""
    wait_for: str | None = None
    """Name of the job that has to end first."""
    thread_of: str | None = None
    """Jobs with the same name here are served by one thread, one I/O at a time in all."""


class JobLimits(FrozenModel):
    """What is left out at the start, and when it ends."""

    ramp_ns: int | None = None
    runtime_ns: int | None = None
    time_based: bool | None = None
    io_size: Amount | None = None
    number_ios: int | None = None
    loops: int | None = None
    max_latency_ns: NumbersByDirection = (None, None, None)


class PaceRequests(FrozenModel):
    """When the next I/O is due."""

    rate_bytes: NumbersByDirection = (None, None, None)
    rate_min_bytes: NumbersByDirection = (None, None, None)
    rate_iops: NumbersByDirection = (None, None, None)
    rate_iops_min: NumbersByDirection = (None, None, None)
    rate_process: Literal["linear", "poisson", "uniform", "spike"] | None = None
    rate_cycle_ns: int = 1_000_000_000
    """What a minimum is held over."""
    rate_profile: tuple[tuple[int, float], ...] = ()
    """Time since the clone's start in ns and share of its rate; straight lines between."""
    thinktime_ns: int | None = None
    thinktime_spin_ns: int | None = None
    thinktime_blocks: int | None = None
    thinktime_iotime_ns: int | None = None
    """Pause after so long, not after so many I/Os."""
    thinktime_blocks_type: Literal["complete", "issue"] | None = None
    flow: int | None = None
    flow_id: int | None = None
    flow_sleep_ns: int | None = None
    flow_ahead: int | None = None
    """I/Os it may be ahead of its share, at most 1/64 of its own; none: shares are exact."""


class MemoryPolicy(FrozenModel):
    """A policy of the kernel's (set_mempolicy(2)) and its nodes."""

    mode: Literal["default", "local", "prefer", "bind", "interleave"]
    nodes: tuple[int, ...] | Literal["all"] = ()


class ProcessRequests(FrozenModel):
    """The threads, and what runs around them."""

    cpus_allowed: tuple[int, ...] | None = None
    cpus_policy: Literal["shared", "split"] | None = None
    numa_nodes: tuple[int, ...] | Literal["all"] | None = None
    """Whose CPUs may be used."""
    numa_memory: MemoryPolicy | None = None
    """Where memory is to come from."""
    nice: int | None = None
    ioscheduler: str | None = None
    """Set for the devices of its targets, for as long as the run goes."""
    exec_prerun: str | None = None
    exec_postrun: str | None = None


class ErrorRequests(FrozenModel):
    """What happens on an error."""

    continue_on_error: Literal["none", "read", "write", "io", "verify", "all"] | None = None
    continue_after: tuple[int, ...] = ()
    """Only after these errors; empty: after any."""
    ignore_read_errors: tuple[int, ...] = ()
    ignore_write_errors: tuple[int, ...] = ()


Pair = tuple[int | None, int | None]
"""For reads and for writes."""


class SizePriority(FrozenModel):
    """A share of the I/Os of one size."""

    block_bytes: int
    percent: int
    priority: tuple[int, int, int] | None
    """Class, level and hint; none: those of `PriorityRequests`."""


class PriorityRequests(FrozenModel):
    """Priorities a job asks for."""

    job_class: int | None = None
    """Of all I/Os that have none of their own, as the next two."""
    job_level: int | None = None
    job_hint: int | None = None
    percent: Pair = (None, None)
    """Share of the I/Os with the following priority."""
    classes: Pair = (None, None)
    levels: Pair = (None, None)
    hints: Pair = (None, None)
    by_size: tuple[tuple[SizePriority, ...], tuple[SizePriority, ...]] = ((), ())
    """Shares of reads and writes of some sizes."""

    @property
    def of_some(self) -> bool:
        """Whether some I/Os have another priority than the rest."""
        return any(self.percent) or any(share.percent for shares in self.by_size for share in shares)


class SteadyRule(FrozenModel):
    """What has to be steady, and how much."""

    metric: Literal["iops", "bw", "lat"]
    slope: bool
    limit: float
    """Percent of the mean, or I/Os or bytes per second, or nanoseconds."""
    percent: bool


class DepthTarget(FrozenModel):
    """A latency to keep by searching for the depth."""

    latency_target_ns: int | None = None
    latency_window_ns: int | None = None
    latency_percentile: float | None = None
    latency_run: bool | None = None


class SteadyRequest(FrozenModel):
    """A state that ends the job when it is reached."""

    rule: SteadyRule | None = None
    duration_ns: int | None = None
    ramp_ns: int | None = None
    interval_ns: int | None = None


class VerificationRequests(FrozenModel):
    """What is checked of what was written."""

    by: Literal["stamps", "headers"] = "stamps"
    """Stamps in every sector, read back in a stage of its own; or a header before every block, in the
    format of fio, read back by the job itself."""
    verify: str | None = None
    """The method: a check sum, `pattern` or `null`; None: nothing is verified."""
    verify_pattern: tuple[int, ...] | None = None
    """Bytes 0 to 255."""
    verify_pattern_offsets: tuple[int, ...] = ()
    """Where in the pattern the offset of the I/O stands, 8 bytes."""
    do_verify: bool | None = None
    verify_only: bool | None = None
    verify_interval_bytes: int | None = None
    verify_fatal: bool | None = None
    verify_before_write: bool | None = None
    """What is known of the place of a write is read and checked before it."""
    verify_after_write: bool | None = None
    """What was written is read and checked at once."""


class HeaderRequests(FrozenModel):
    """What only verification by headers does."""

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


class Recording(FrozenModel):
    """How finely a job is recorded."""

    every_io: bool = False
    """One row for each I/O."""
    windows_msec: tuple[int, ...] = ()
    """Something averages over windows of so long: samples have to fit into them."""
