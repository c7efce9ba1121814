"""What only outputs in the shape of another tool show: nothing that is done depends on it. Writes nothing."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel


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
    def windows_msec(self) -> tuple[int, ...]:
        """The windows that logs average over."""
        return tuple(one for one in (self.avg_msec, self.hist_msec) if one) if self.wanted else ()

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
    show_job: bool | None = None
    """Whether the job is in the results at all, and in their sums."""


class OutputRequests(FrozenModel):
    """What such outputs repeat of a job file, or leave out."""

    logs: LogRequests = LogRequests()
    stats: StatRequests = StatRequests()
    description: str | None = None
    thread: bool = False
    """They say `threads` of its clones, not `processes`."""
    bs_is_seq_rand: bool = False
    """They say so of its sizes."""
