"""A Case: all that is known of one number, wherever it comes from.

One Case is one phase of a run: jobs that ran at the same time. Knows no rule and no file. What
is not known is None (or empty), never a default; a rule that needs it says that it is missing.
Units stand last in the names; shares and percentages say which they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    import polars as pl

    from loadstone.analysis.contention import Contention
    from loadstone.analysis.latency import Latency
    from loadstone.analysis.time_structure import FineRates
    from loadstone.audit.watched_hosts import Watched
    from loadstone.explanations.job_facts import JobFacts
    from loadstone.explanations.readings import Probed
    from loadstone.path.layers import Ceiling, DataPath, Layer
    from loadstone.verdict import LayerFlow, Time

Op = Literal["read", "write", "trim"]
Source = Literal["bundle", "hosts", "fio", "vdbench", "iometer", "diskspd", "published"]
"""`hosts`: all hosts of a run together, for the rules about hosts; each host has a case of its own."""


LEADING: Final = ("lat", "clat", "unknown")
"""Kinds of latency: the first that is known stands for the operation."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with one standard error, when that is known."""

    value: float
    error: float | None = None


@dataclass(frozen=True, slots=True)
class RateSpread:
    """How much the rate of short samples varied, by a tool that keeps no more of them than this."""

    share: float
    """Their standard deviation over their mean: at most, where several clones were added up."""
    samples: int


@dataclass(frozen=True, slots=True)
class OpMeasurement:
    """One operation, or all of them together, over the measured time."""

    operations: int | None = None
    bytes: int | None = None
    errors: int | None = None
    iops: Figure | None = None
    bandwidth: Figure | None = None
    """Bytes per second."""
    latencies: dict[str, Latency] = field(default_factory=dict)
    """By kind: `lat` from the intended start (or issue), `clat` after submission, `unknown` where nothing
    tells which; of a bundle all that it has.
    """
    spread: RateSpread | None = None

    @property
    def kind(self) -> str | None:
        """Which latency stands for it: the whole, where its mean is known."""
        known = (kind for kind in LEADING if kind in self.latencies)
        return next((kind for kind in known if self.latencies[kind].mean_ns is not None), None)

    @property
    def latency(self) -> Latency | None:
        """That latency."""
        return self.latencies[self.kind] if self.kind is not None else None

    @property
    def printed(self) -> tuple[str, Latency] | None:
        """The kind, and the latency, of which another tool printed percentiles: fio does of one."""
        kinds = (kind for kind in LEADING if kind in self.latencies and self.latencies[kind].printed)
        return next(((kind, self.latencies[kind]) for kind in kinds), None)


@dataclass(frozen=True, slots=True)
class Range:
    """The part of a target that a clone uses."""

    target: str
    start_bytes: int
    length_bytes: int


@dataclass(frozen=True, slots=True)
class PayloadProperties:
    """What is written. `repeats`: the same buffer again and again."""

    kind: Literal["zero", "pattern", "random", "stamped", "unknown"]
    repeats: bool | None = None
    compress_percent: float | None = None
    dedupe_percent: float | None = None


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What one job asked for. `iodepth` is per clone (and per target where `depth_per_target`)."""

    job: str
    clones: int | None = None
    clones_from_times: bool = False
    """They, or how many jobs like this there are, are worked out from how long all ran, and may be wrong."""
    iodepth: int | None = None
    depth: int | None = None
    """Of all its clones together."""
    asked_iodepth: int | None = None
    """What its job file says of each clone; an engine that does one I/O at a time keeps less."""
    operation: str | None = None
    """What it does to files by name (`getattr`); None: it reads and writes."""
    operations: frozenset[str] = frozenset()
    """All that it does, with what it reads back of its own; empty: not known."""
    read_percent: float | None = None
    random_percent: float | None = None
    block_bytes: dict[int, float] = field(default_factory=dict)
    """Size to share of the I/Os (sum 1); empty: not known."""
    read_block_bytes: dict[int, float] = field(default_factory=dict)
    write_block_bytes: dict[int, float] = field(default_factory=dict)
    direct: bool | None = None
    synchronous: bool | None = None
    """Every write waits for the medium (O_SYNC, O_DSYNC, a flush after each)."""
    end_fsync: bool | None = None
    flushes: bool | None = None
    """It flushes at all: after every N writes, at its end, or as it closes a file."""
    backend: str | None = None
    rate_iops: float | None = None
    rate_bytes_per_s: float | None = None
    targets: tuple[str, ...] = ()
    ranges: tuple[tuple[Range, ...], ...] = ()
    """One tuple for each clone; empty: not known."""
    clones_share: bool | None = None
    """All clones work on the very same part of their targets, however large that is."""
    size_bytes: int | None = None
    """Working set of all clones together; what two of them share counts once."""
    payload: PayloadProperties | None = None
    runtime_s: float | None = None
    ramp_s: float | None = None
    seeds: tuple[int, ...] = ()
    paced: bool | None = None
    """Some of its I/Os wait for their time: a rate of one operation, think time, a share of a flow."""
    thinks: bool | None = None
    """It pauses between I/Os (think time)."""
    polls: bool | None = None
    """It spins for completions, so that its threads are busy whatever the storage does."""
    options: dict[str, str] = field(default_factory=dict)
    """What else was asked for, in words by option (`job_options`); empty: not known."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """What is known of a target before and after the run."""

    path: str
    size_bytes: int | None = None
    kind: Literal["file", "block", "char", "nvme", "virtual", "tree"] | None = None
    file_system: str | None = None
    """Of a file: `ext4`, `tmpfs`."""
    allocated_bytes_before: int | None = None
    allocated_bytes_after: int | None = None
    unwritten_bytes_before: int | None = None
    """Holes and extents that were allocated and never written."""
    unwritten_bytes_after: int | None = None
    cached_bytes_before: int | None = None
    """Of a file in this host's page cache when the run began."""
    cached_bytes_after: int | None = None
    carriers: tuple[str, ...] = ()
    """The devices or mounts nearest under it, as prefixes of columns in `host` (`block.loop0`)."""
    rotational: bool | None = None
    reduces: str | None = None
    """The part of its path that compresses or deduplicates (`zram`, `btrfs compress=zstd`)."""
    path_layers: DataPath | None = None

    @property
    def is_disk(self) -> bool:
        """Whether it is a disk."""
        return self.kind in ("block", "nvme")


@dataclass(frozen=True, slots=True)
class Moved:
    """I/Os and bytes of one operation."""

    ios: float
    bytes: float


@dataclass(frozen=True, slots=True)
class CarrierTraffic:
    """What the carriers of the targets moved, beside what was asked for in the same time.

    `merges`: I/Os that were joined to another on their way. `inflight`: mean outstanding at the
    carriers, all of them together. `copies` is how often one byte is written, where that is known.
    """

    carriers: tuple[str, ...]
    seconds: float
    asked: dict[Op, Moved]
    moved: dict[Op, Moved]
    merges: float | None = None
    inflight: float | None = None
    flushes: float | None = None
    copies: float | None = None

    def share(self, op: Op) -> float | None:
        """Return the bytes moved for each byte asked for, None when none was."""
        requested, moved = self.asked.get(op), self.moved.get(op)
        return moved.bytes / requested.bytes if requested and moved and requested.bytes else None


@dataclass(frozen=True, slots=True)
class Declared:
    """What somebody says about the system: a data sheet, a document, `--spec`."""

    ceilings: tuple[Ceiling, ...] = ()
    links: tuple[str, ...] = ()
    """In words, as declared: '4 x 16GFC'."""
    media: str | None = None
    rotational: bool | None = None
    spindles: int | None = None
    raid: str | None = None
    cache_bytes: int | None = None
    memory_bytes: int | None = None
    author_says: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """Errors of one kind."""

    kind: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class Printed:
    """What another source itself printed, before anything was worked out from it."""

    iops: tuple[float | str, ...] = ()
    bandwidth: tuple[float | str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedSetup:
    """What a published figure was measured on, as far as figures beside it are told apart by it."""

    system: str | None = None
    drives: str | None = None
    """Name of the system that the drives are called after."""
    drive_writes_per_write: float | None = None
    row: str | None = None
    """Of a table, the row the figure stands in."""
    baseline: bool = False
    new_file: bool = False


@dataclass(frozen=True, slots=True)
class HostFigures:
    """One host of a run on several."""

    name: str
    operations: int
    iops: Figure | None
    start_skew_ns: int | None
    """Its first I/O after the first I/O of all."""
    clock_error_ns: int | None
    limited_by: str | None
    """What on the host itself limited it, by its own verdict."""
    confidence: float
    """Of that."""
    jobs: tuple[str, ...]
    """Names of its jobs."""
    paced: bool


@dataclass(frozen=True, slots=True)
class SharedByHosts:
    """A target that several hosts of a run see."""

    path: str
    hosts: tuple[str, ...]
    written: bool
    divided: bool
    same_addresses: bool
    """Two hosts go over the same random addresses in the same order."""


@dataclass(frozen=True, slots=True)
class LoadBeside:
    """What another host of the run asked of this machine: hosts may be containers of one."""

    carriers: frozenset[str]
    layers: tuple[Layer, ...]
    """Under its targets."""
    rates: pl.DataFrame
    """As `Case.series`, ramps not left out, on this host's clock."""


@dataclass(frozen=True, slots=True)
class Case:
    """All that is known of one phase.

    `series` has one row per (op, window): `op`, `start_ns`, `end_ns`, `seconds`, `ops`, `bytes`,
    `errors`, `iops`, `bytes_per_s`, `mean_ns`, ramps left out. `host` has the monitors' rows of
    the measured time, columns as in the bundle's host table.
    """

    name: str
    source: Source
    jobs: tuple[JobRequest, ...]
    total: OpMeasurement
    ops: dict[Op, OpMeasurement]
    seconds: float | None = None
    began: bool = True
    """Whether any of its jobs began to do I/O."""
    ran_s: tuple[float, float] | None = None
    """When it began and ended, in seconds by its host's calendar, where another tool tells it."""
    ramp_ios: int | None = None
    """I/Os that completed in the ramp, where nothing was measured; None: not known."""
    searched_depth: bool = False
    """The load searched the depth of a latency target: all is its ramp until that is found."""
    by_job: dict[str, dict[Op, OpMeasurement]] = field(default_factory=dict)
    flush: OpMeasurement | None = None
    """Flushes that the jobs made (fsync, fdatasync): in no total, and outstanding like any I/O."""
    commit_ns: float | None = None
    """Mean time of a commit: the writes that a flush makes durable, and that flush."""
    targets: tuple[TargetState, ...] = ()
    series: pl.DataFrame | None = None
    series_of_all: pl.DataFrame | None = None
    """As `series`, of all operations together, of a source that does not tell what each moved."""
    host: pl.DataFrame | None = None
    traffic: CarrierTraffic | None = None
    """None: nothing counts what reaches the storage, or the time was too short for it."""
    environment: dict[str, Any] | None = None
    declared: Declared | None = None
    problems: tuple[ErrorCount, ...] | None = None
    """Empty: there were none; None: nobody counted."""
    generator_cpu_percent: float | None = None
    """Of one CPU, user and system, as the source tells it."""
    host_cpu_percent: float | None = None
    """Of the whole generating host."""
    host_cpus: int | None = None
    contention: Contention | None = None
    """What others on the host's processors could take; None: it was not watched."""
    share_of_ceiling: float | None = None
    """Part of what the generator can do at most on this host without a device."""
    queue_depth: float | None = None
    """Mean outstanding I/Os as the source itself measured them."""
    most_outstanding: float | None = None
    """The most that mean can be, where the source tells in which ranges the depth was."""
    counted_percent: float | None = None
    """What the shares of a table of the source add up to."""
    repeats: tuple[Figure, ...] = ()
    """The same number from other runs of the same thing, this one included."""
    siblings: tuple[Case, ...] = ()
    """Other phases of the same result, for rules that compare (random with sequential)."""
    layers: tuple[LayerFlow, ...] = ()
    """Every layer under the targets and what it did in the seconds of `traffic`."""
    time: Time | None = None
    """Where the latency went."""
    fine: FineRates | None = None
    """Operations that ended in each of a row of short samples of the measured time."""
    issued_until_ns: int | None = None
    """When the last job stopped beginning I/Os, since the run's origin: what ended later was waited for."""
    drained_s: float = 0.0
    """Part of `seconds` behind that."""
    stops: tuple[tuple[int, int], ...] = ()
    """When the load generator itself stood still, in ns since the run's origin."""
    stops_left_out: bool = False
    """What these stops reach into is in no figure."""
    same_sequence_before: bool | None = None
    """The same addresses in the same order were run on these targets before."""
    job_facts: JobFacts | None = None
    """What its Plan says that decides which explanations can hold; None: it has no Plan."""
    probed: Probed | None = None
    """What short runs afterwards measured."""
    probe_command: str | None = None
    """The same run once more, with probes."""
    of_host: str | None = None
    """The host of the run that this is of, where it had several."""
    sum_decided: bool = False
    """Whether a finding decides on all hosts in this phase: a doubt about this one decides nothing then."""
    beside: tuple[LoadBeside, ...] = ()
    """Loads of the run's other hosts on this machine. What `traffic` has as asked has theirs in it."""
    hosts: tuple[HostFigures, ...] = ()
    """Of a run on several hosts, in the case of all of them."""
    shared: tuple[SharedByHosts, ...] | None = None
    """What several of them see; None: nobody looked."""
    watched: tuple[Watched, ...] = ()
    """Hosts of the storage that were watched meanwhile."""
    printed: Printed = Printed()
    setup: PublishedSetup = PublishedSetup()
