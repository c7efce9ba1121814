"""The figures fio reports of one line of its result, and how they add up.

Knows latency statistics with their histogram, window statistics of bandwidth and IOPS,
and what one job line and one group line hold. Knows neither bundles nor text.

A histogram maps a bucket number to a count; the buckets are those of the engine
(64 per power of two), which are also fio's, so bins are exchanged without loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from loadstone.analysis.latency import NO_IO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.analysis.latency import Latency

READ, WRITE, TRIM, SYNC = range(4)
DIRECTION_NAMES: Final = ("read", "write", "trim", "sync")

LAST_FIO_BUCKET: Final = 29 * 64 - 1
"""fio's own histogram ends here (17.1 s); its histogram logs have this many columns."""

UNKNOWN_S: Final = 2**31 - 1
"""What fio writes for the time left when it cannot tell."""

DEFAULT_PERCENTILES: Final = (
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99,
)  # fmt: skip

NS_LIMITS: Final = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
US_LIMITS: Final = NS_LIMITS
MS_LIMITS: Final = (*NS_LIMITS, 2000)


def percentiles(latency: Latency, wanted: Sequence[float]) -> list[tuple[float, int]]:
    """`(percentile, value in ns)` for each wanted one, ascending; nothing without samples.

    As in fio it is the sample of rank ceil(p/100 * n), however few lie beyond it.
    """
    total = latency.histogram.count
    # Exactly, as fio does (nearly) in extended precision: a rank rounded down to a whole
    # number would be one sample early.
    ranks = [(p, math.ceil(Fraction(p) * total / 100)) for p in sorted(wanted)] if total else []
    return [(p, latency.histogram.of_rank(rank)) for p, rank in ranks if rank <= total]


def printed(latency: Latency) -> tuple[int, int, float, float]:
    """Return shortest, longest, mean and deviation in ns, as fio prints them: 0 without any I/O."""
    shortest, longest = int(latency.min_ns or 0), int(latency.max_ns or 0)
    return shortest, longest, latency.mean_ns or 0.0, latency.stddev_ns or 0.0


@dataclass(slots=True)
class RateWindows:
    """Statistics of a rate over equal windows (fio's `bw_*` and `iops_*` fields)."""

    samples: int = 0
    min: int = 0
    max: int = 0
    mean: float = 0.0
    stddev: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float]) -> RateWindows:
        """Statistics of `values`, all zero when there are none."""
        if not values:
            return cls()
        mean = math.fsum(values) / len(values)
        squares = math.fsum((v - mean) ** 2 for v in values)
        deviation = math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
        return cls(len(values), int(min(values)), int(max(values)), mean, deviation)


@dataclass(slots=True)
class Direction:
    """Reads, writes or trims of one job line. `bandwidth` is in KiB/s."""

    bytes: int = 0
    ios: int = 0
    shorts: int = 0
    errors: int = 0
    runtime_ms: int = 0
    slat: Latency = NO_IO
    clat: Latency = NO_IO
    lat: Latency = NO_IO
    bandwidth: RateWindows = field(default_factory=RateWindows)
    iops_windows: RateWindows = field(default_factory=RateWindows)
    priorities: dict[int, dict[str, Latency]] = field(default_factory=dict)
    """`clat` and `lat` by the I/Os' priority."""

    @property
    def bytes_per_s(self) -> int:
        """Bytes per second over the runtime, rounded down; 0 without a runtime."""
        return 1000 * self.bytes // self.runtime_ms if self.runtime_ms else 0

    @property
    def iops(self) -> float:
        """I/Os per second over the runtime."""
        return 1000.0 * self.ios / self.runtime_ms if self.runtime_ms else 0.0

    def add(self, other: Direction) -> None:
        """Merge the totals and latencies of another direction (not the windows)."""
        self.bytes += other.bytes
        self.ios += other.ios
        self.shorts += other.shorts
        self.errors += other.errors
        self.runtime_ms = max(self.runtime_ms, other.runtime_ms)
        self.slat += other.slat
        self.clat += other.clat
        self.lat += other.lat
        for priority, latencies in other.priorities.items():
            own = self.priorities.setdefault(priority, {})
            own |= {kind: own.get(kind, NO_IO) + latency for kind, latency in latencies.items()}


@dataclass(frozen=True, slots=True)
class SteadyState:
    """What came of a job's rule for a steady state."""

    rule: str
    """As the option is written: `iops_slope:0.1%`."""
    metric: str
    slope_wanted: bool
    percent: bool
    duration_s: int
    attained: bool
    criterion: float
    deviation: float
    slope: float
    iops: Sequence[int]
    bytes_per_s: Sequence[int]
    lat_ns: Sequence[int]


@dataclass(frozen=True, slots=True)
class LatencyGoal:
    """A job's latency target and the depth at which it ended."""

    target_ns: int
    window_ns: int
    percentile: float
    depth: int
    found: bool = True
    """False: the search had not ended."""


@dataclass(slots=True)
class JobLine:
    """One entry of fio's `jobs`: a clone, or a whole group under its first section's name."""

    name: str
    group: int
    members: int = 1
    number: int = 1
    """fio's thread number of the first member, from 1: the N of its log names."""
    pid: int = 0
    error: int = 0
    error_text: str = ""
    failed_clones: int = 0
    total_errors: int = 0
    first_error: int = 0
    continue_on_error: bool = False
    description: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    percentiles: Sequence[float] = DEFAULT_PERCENTILES
    slat_percentiles: bool = False
    clat_percentiles: bool = True
    lat_percentiles: bool = False
    unified: str = "none"
    """`none`, `mixed` or `both` (unified_rw_reporting)."""
    significant_figures: int = 4
    kb_base: int = 1024
    bits: bool = False
    iodepth: int = 1
    start_unix_ms: int = 0
    directions: list[Direction] = field(default_factory=lambda: [Direction(), Direction(), Direction()])
    sync_ios: int = 0
    sync: Latency = NO_IO
    runtime_ms: int = 0
    """Sum over the members."""
    user_ns: float = 0.0
    system_ns: float = 0.0
    context_switches: int = 0
    major_faults: int = 0
    minor_faults: int = 0
    depth: list[int] = field(default_factory=lambda: [0] * 7)
    submit: list[int] = field(default_factory=lambda: [0] * 7)
    complete: list[int] = field(default_factory=lambda: [0] * 7)
    steady: SteadyState | None = None
    latency_goal: LatencyGoal | None = None

    @property
    def ios(self) -> int:
        """Reads, writes and trims together."""
        return sum(d.ios for d in self.directions)

    @property
    def user_percent(self) -> float:
        """CPU in user space against the members' summed run time, in percent."""
        return self.user_ns / 1e4 / self.runtime_ms if self.runtime_ms else 0.0

    @property
    def system_percent(self) -> float:
        """CPU in the kernel against the members' summed run time, in percent."""
        return self.system_ns / 1e4 / self.runtime_ms if self.runtime_ms else 0.0

    def mixed(self) -> Direction:
        """Add reads, writes and trims up to one direction; its windows are sums, as fio's."""
        total = Direction()
        for direction in self.directions:
            total.add(direction)
        total.bandwidth = _summed(d.bandwidth for d in self.directions)
        total.iops_windows = _summed(d.iops_windows for d in self.directions)
        return total

    @property
    def shown_latency(self) -> str:
        """Which latency is shown by priority."""
        return "lat" if self.lat_percentiles else "clat"

    def by_priority(self, figures: Direction) -> list[tuple[int, Latency]]:
        """Priorities of a direction with the latency fio shows of them; empty with only one."""
        kind = self.shown_latency
        latencies = [(priority, each[kind]) for priority, each in sorted(figures.priorities.items())]
        with_samples = [(priority, latency) for priority, latency in latencies if latency.count]
        return with_samples if len(with_samples) > 1 else []

    def shown(self) -> list[tuple[str, int, Direction]]:
        """`(name, direction number, figures)` of what is reported, as unified_rw_reporting asks."""
        if self.unified == "mixed":
            return [("mixed", READ, self.mixed())]
        apart = [(DIRECTION_NAMES[i], i, d) for i, d in enumerate(self.directions)]
        return [*apart, ("mixed", READ, self.mixed())] if self.unified == "both" else apart


def _summed(windows: Iterable[RateWindows]) -> RateWindows:
    total = RateWindows()
    variance = 0.0
    for w in windows:
        total.samples += w.samples
        total.min += w.min
        total.max += w.max
        total.mean += w.mean
        variance += w.stddev**2
    total.stddev = math.sqrt(variance)
    return total


@dataclass(slots=True)
class GroupLine:
    """One direction of `Run status group`: totals and the slowest and fastest job."""

    bytes: int
    bytes_per_s: int
    min_bytes_per_s: int
    max_bytes_per_s: int
    min_runtime_ms: int
    max_runtime_ms: int


@dataclass(slots=True)
class DiskUse:
    """What the kernel counted for one block device during the run (`/proc/diskstats`)."""

    name: str
    read_ios: int
    write_ios: int
    read_merges: int
    write_merges: int
    read_sectors: int
    write_sectors: int
    read_ticks_ms: int
    write_ticks_ms: int
    in_queue_ms: int
    busy_ms: int
    elapsed_ms: int
    parts: Sequence[DiskUse] = ()
    """The devices a stacked device is made of."""

    @property
    def utilisation_percent(self) -> float:
        """Share of the run in which the device had I/O under way, at most 100."""
        return min(100.0, 100.0 * self.busy_ms / self.elapsed_ms) if self.elapsed_ms else 0.0


@dataclass(frozen=True, slots=True)
class Idleness:
    """How idle the CPUs were, percent, and the time of a unit of work."""

    system: float
    each: tuple[float, ...] | None
    """By CPU; none: not asked for."""
    unit_mean_us: float
    unit_stdev_us: float


@dataclass(slots=True)
class Report:
    """All a run says in fio's terms."""

    lines: list[JobLine]
    left_out: Sequence[JobLine] = ()
    """Of jobs that are in no result and no sum (`stats=0`), one for each clone."""
    global_options: Mapping[str, str] = field(default_factory=dict)
    disks: Sequence[DiskUse] = ()
    idleness: Idleness | None = None
    notes: Sequence[str] = ()
    headers: Sequence[str] = ()
    """The lines fio prints about each section before the run starts."""
    unix_ms: int = 0
    elapsed_s: int = 0
    eta_s: int = 0
    """How long the run still takes; UNKNOWN_S when nothing bounds it."""

    def group_lines(self, group: int) -> list[GroupLine | None]:
        """Totals of a group per direction; none where nothing ran."""
        return [self._group_line(group, i) for i in range(3)]

    def group_total(self, group: int) -> GroupLine | None:
        """All directions of a group in one line (unified_rw_reporting=both)."""
        return _widest([g for g in self.group_lines(group) if g is not None])

    def unified_group(self, group: int) -> str:
        """How the group reports directions: `none`, `mixed` or `both`."""
        kinds = {line.unified for line in self.lines if line.group == group}
        return next((k for k in ("both", "mixed") if k in kinds), "none")

    def groups(self) -> list[int]:
        """Group numbers in order, also those of which every job is left out."""
        return sorted({line.group for line in (*self.lines, *self.left_out)})

    def _group_line(self, group: int, direction: int) -> GroupLine | None:
        parts = [
            d
            for line in self.lines
            if line.group == group
            for _, i, d in line.shown()[:3]
            if i == direction and d.runtime_ms
        ]
        if not parts:
            return None
        total = sum(d.bytes for d in parts)
        longest = max(d.runtime_ms for d in parts)
        return GroupLine(
            total,
            total * 1000 // longest,
            min(d.bytes_per_s for d in parts),
            max(d.bytes_per_s for d in parts),
            min(d.runtime_ms for d in parts),
            longest,
        )


def _widest(parts: list[GroupLine]) -> GroupLine | None:
    if not parts:
        return None
    return GroupLine(
        sum(p.bytes for p in parts),
        sum(p.bytes_per_s for p in parts),
        min(p.min_bytes_per_s for p in parts),
        max(p.max_bytes_per_s for p in parts),
        min(p.min_runtime_ms for p in parts),
        max(p.max_runtime_ms for p in parts),
    )


def depth_shares(counts: Sequence[int], total: int) -> list[float]:
    """Percent of each; what happened at all is shown as at least 0.1, as fio does."""
    return [_share(c, total, 0.1) for c in counts]


def latency_shares(line: JobLine) -> tuple[list[float], list[float], list[float]]:
    """Percent of I/Os by latency: the ranges of fio's `latency_ns`, `latency_us`, `latency_ms`.

    Each range goes to the next limit below it. They are filled from the completion
    latency's histogram where there is one, as in fio; a bucket counts by its middle.
    """
    counts = ([0] * 10, [0] * 10, [0] * 12)
    for direction in line.directions:
        source = direction.clat if direction.clat.count else direction.lat
        for value_ns, count in source.histogram.bins():
            table, index = _range_of(value_ns)
            counts[table][index] += count
    ns, us, ms = ([_share(c, line.ios, 0.01) for c in table] for table in counts)
    return ns, us, ms


def _range_of(value_ns: int) -> tuple[int, int]:
    for table, (limits, unit) in enumerate(((NS_LIMITS, 1), (US_LIMITS, 1000), (MS_LIMITS, 1_000_000))):
        for index, limit in enumerate(limits):
            if value_ns < limit * unit:
                return table, index
    return 2, 11


def _share(count: int, total: int, least: float) -> float:
    if not count or not total:
        return 0.0
    return max(least, 100.0 * count / total)
