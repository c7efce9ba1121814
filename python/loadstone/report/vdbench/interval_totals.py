"""What vdbench counts of a run: per reporting interval, for everything, each SD or FSD, each WD or FWD.

Knows how the samples of a bundle become vdbench's intervals, and which of them its averages leave
out. Its response time is that of the read or write itself, without the time an I/O waited for a
free thread: our `clat`. What a run of a parameter file reads back after its workloads is in no
interval: vdbench has no such reads. On file systems only the operations that were asked for are in
its rate, and of a run that makes trees only the writes. Phases of another language, one after the
other, are runs of their own: vdbench has one load in a run. Knows no layout of text.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.analysis.aggregate import add_histograms, added_up
from loadstone.analysis.histogram import Histogram
from loadstone.analysis.latency import NO_IO, summed
from loadstone.analysis.measurement import Measurement
from loadstone.bundle.layout import OPS
from loadstone.plan.backends import on_virtual_clock
from loadstone.plan.derived import asked_operations
from loadstone.report.vdbench.wording import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.analysis.latency import Latency
    from loadstone.analysis.measurement import By, MeasuredLine
    from loadstone.bundle.read import Bundle
    from loadstone.plan.model import Plan

SECOND_NS: Final = 1_000_000_000
MIB: Final = float(1 << 20)
CPU_KINDS: Final = ("user", "system", "irq", "idle", "iowait", "steal")
PROCESSORS: Final = tuple(f"cpu.all.{kind}_ns" for kind in CPU_KINDS)
"""Columns of the monitors."""
BY_NAME: Final = OPS[OPS.index("sync") + 1 :]
"""Operations on files and directories."""
READ: Final = OPS.index("read")
WRITE: Final = OPS.index("write")


def storages_of(own: Mapping[str, str], kind: str) -> list[str]:
    """Return the names of a job's SDs or FSDs; joined SDs have the names of those they are made of."""
    return own.get("joined", "").split() or [str(own[kind])] if kind in own else []


@dataclass(frozen=True, slots=True)
class OneWay:
    """One operation: its bytes and response times."""

    bytes: int = 0
    latency: Latency = NO_IO

    def __add__(self, other: OneWay) -> OneWay:
        return OneWay(self.bytes + other.bytes, self.latency + other.latency)

    @property
    def count(self) -> int:
        """How often it was done."""
        return self.latency.count or 0

    @property
    def response_ms(self) -> float:
        """Mean response time; as in vdbench 0 without I/Os."""
        return (self.latency.mean_ns or 0.0) / 1e6

    @property
    def deviation_ms(self) -> float:
        """Standard deviation of the response times."""
        return (self.latency.stddev_ns or 0.0) / 1e6

    @property
    def longest_ms(self) -> float:
        """Longest response time; 0 without I/Os."""
        return (self.latency.max_ns or 0) / 1e6


@dataclass(frozen=True, slots=True)
class IntervalTotals:
    """Counts over some seconds, and what vdbench computes from them.

    `asked`: on file systems the operations that were asked for; None: reads and writes of SDs.
    """

    seconds: float
    reads: OneWay = OneWay()
    writes: OneWay = OneWay()
    others: Mapping[str, OneWay] = field(default_factory=dict)
    asked: frozenset[str] | None = None

    @property
    def both(self) -> OneWay:
        """Reads and writes together."""
        return self.reads + self.writes

    def of(self, op: str) -> OneWay:
        """Return one operation."""
        return {"read": self.reads, "write": self.writes}.get(op) or self.others.get(op, OneWay())

    @property
    def requested(self) -> OneWay:
        """What was asked for."""
        if self.asked is None:
            return self.both
        return functools.reduce(OneWay.__add__, map(self.of, sorted(self.asked)), OneWay())

    @property
    def rate(self) -> float:
        """Operations that were asked for per second."""
        return self.per_second(self.requested)

    def per_second(self, one: OneWay) -> float:
        """Return how often an operation was done in a second."""
        return one.count / self.seconds if self.seconds else 0.0

    @property
    def mib_per_s(self) -> float:
        """Its `MB/sec`, which is 1024**2."""
        return self.both.bytes / self.seconds / MIB if self.seconds else 0.0

    @property
    def bytes_per_io(self) -> int:
        """Mean transfer size."""
        return self.both.bytes // self.both.count if self.both.count else 0

    @property
    def read_percent(self) -> float:
        """Share of reads."""
        return 100 * self.reads.count / self.both.count if self.both.count else 0.0

    @property
    def deviation_ms(self) -> float:
        """Standard deviation of the response times."""
        return self.both.deviation_ms

    @property
    def queue_depth(self) -> float:
        """I/Os in progress on average: rate times response time."""
        return (self.both.latency.sum_ns or 0.0) / 1e9 / self.seconds if self.seconds else 0.0


def added(parts: Iterable[IntervalTotals]) -> IntervalTotals:
    """Return several intervals as one."""
    whole = IntervalTotals(0.0)
    for part in parts:
        names = [*whole.others, *(name for name in part.others if name not in whole.others)]
        others = {name: whole.of(name) + part.of(name) for name in names}
        whole = IntervalTotals(
            whole.seconds + part.seconds,
            whole.reads + part.reads,
            whole.writes + part.writes,
            others,
            part.asked,
        )
    return whole


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Use of the host's CPUs in percent; `None` where it is not known."""

    user: float
    system: float
    wait: float
    idle: float

    @property
    def used(self) -> float:
        """User and system time."""
        return self.user + self.system


@dataclass(slots=True)
class PartTotals:
    """One SD or one WD, or everything: its intervals, the first of them first."""

    name: str
    cells: frozenset[int]
    intervals: list[IntervalTotals] = field(default_factory=list)


class Counted:
    """A bundle, or one of its phases, as vdbench would have counted it."""

    def __init__(self, bundle: Bundle, phase: MeasuredLine | None = None) -> None:
        self.bundle = bundle
        self.measurement = Measurement(bundle)
        self._phase = phase

    @cached_property
    def _cells(self) -> frozenset[int]:
        return self._phase.cells if self._phase else frozenset(range(len(self.bundle.plan.cells)))

    @cached_property
    def _streams(self) -> Sequence[int]:
        return self._phase.streams if self._phase else range(len(self.bundle.plan.streams))

    @property
    def _begun_ns(self) -> int:
        """When it began. Of a whole bundle no sample is read for it, as while they are written."""
        return 0 if self._phase is None else self._ran_ns[0]

    @cached_property
    def _ran_ns(self) -> tuple[int, int]:
        """When it began and ended, since the first I/O of the bundle."""
        if self._phase is None:
            return 0, self.measurement.ended_ns
        ran = [span for index in self._streams if (span := self.measurement.spans[index])[2] > span[0]]
        return min((one[0] for one in ran), default=0), max((one[2] for one in ran), default=0)

    def _lines(self, by: By) -> list[MeasuredLine]:
        """Return the lines of a grouping, each with the cells that are in it here."""
        return [replace(line, cells=line.cells & self._cells) for line in self.measurement.lines(by)]

    @cached_property
    def _workload(self) -> dict[str, Any]:
        workload: dict[str, Any] = self.bundle.asked
        return workload

    @cached_property
    def facts(self) -> dict[str, str]:
        """What the front end said about the run; for other languages what comes nearest."""
        options = self._workload.get("global_options", {})
        if self.of_parameter_file:
            return {str(key): str(value) for key, value in options.items()}
        limits = [self.bundle.plan.streams[index].limits for index in self._streams]
        ramp = max((-(-limit.ramp_ns // SECOND_NS) for limit in limits), default=0)
        begin_ns, end_ns = self._ran_ns
        whole = max(1, round((end_ns - begin_ns) / SECOND_NS))
        name = str(self._workload.get("name", "run"))
        if self._phase:
            name = "_".join(dict.fromkeys(line.name for line in self._lines("job") if line.cells))
        return {
            "rd": name.replace(" ", "_"),
            "loops": "",
            "iorate": "max",
            "controlled": "no",
            "elapsed": str(max(1, whole - ramp)),
            "warmup": str(ramp),
            "interval": "1",
        }

    @property
    def reads_back(self) -> bool:
        """Whether it is a run of a parameter file on SDs that reads back after its workloads."""
        later = any(worker.stage > 0 for worker in self.bundle.plan.workers)
        return later and not self.on_files and self.of_parameter_file

    @property
    def of_parameter_file(self) -> bool:
        """Whether it is a run definition of vdbench's own."""
        return "rd" in self._workload.get("global_options", {})

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The jobs that were asked for."""
        jobs: list[dict[str, Any]] = self._workload.get("jobs", [])
        return jobs

    @property
    def interval_s(self) -> int:
        """Length of an interval."""
        return int(self.facts["interval"])

    @property
    def warmup_intervals(self) -> int:
        """How many intervals do not count for the averages: without a warmup the first."""
        return int(self.facts["warmup"]) // self.interval_s or 1

    @property
    def first_counted(self) -> int:
        """Number of the first interval that counts for the averages."""
        return self.warmup_intervals + 1 if len(self.whole.intervals) > 1 else 1

    @property
    def average_name(self) -> str:
        """What the line of averages is called."""
        return f"avg_{self.first_counted}-{len(self.whole.intervals)}"

    @property
    def asked_intervals(self) -> int:
        """How many intervals were asked for; a run that ends by its data may have fewer."""
        return (int(self.facts["elapsed"]) + int(self.facts["warmup"])) // self.interval_s

    @property
    def makes_trees(self) -> bool:
        """Whether it is a format of vdbench's."""
        return self.facts["rd"].startswith(FORMAT)

    @cached_property
    def filled(self) -> frozenset[str]:
        """The SDs whose files were made for this run. Joined ones vdbench does not fill."""
        if any(len(storages_of(job["own_options"], "sd")) > 1 for job in self.jobs):
            return frozenset()
        targets = self.bundle.plan.targets
        paths = (targets[one["target"]].path for one in self.bundle.events if one.get("type") == "layout")
        return frozenset(name for path in paths if (name := self._storage_names.get(path)))

    def average(self, part: PartTotals) -> IntervalTotals:
        """Return the intervals that count as one."""
        return added(part.intervals[self.first_counted - 1 :])

    @cached_property
    def whole(self) -> PartTotals:
        """Everything together."""
        everything = PartTotals("", self._cells)
        self._fill([everything])
        return everything

    @cached_property
    def storages(self) -> list[PartTotals]:
        """The SDs or FSDs: the targets, by the names the parameter file gives them."""
        name, names = "fsd" if self.on_files else "sd", self._storage_names
        storages = [
            PartTotals(names.get(line.name) or f"{name}{number}", line.cells)
            for number, line in enumerate(self._lines("target"), start=1)
            if line.cells
        ]
        self._fill(storages)
        return storages

    @cached_property
    def _storage_names(self) -> dict[str, str | None]:
        """Names that the parameter file gives to targets, by path."""
        place, name = ("anchor", "fsd") if self.on_files else ("lun", "sd")
        names = {job["own_options"].get(place): job["own_options"].get(name) for job in self.jobs}
        paths = {
            target["path"]: names.get(target["written"])
            for job in self.jobs
            for target in job["placement"]["targets"]
        }
        for job in self.jobs:
            several = storages_of(job["own_options"], name)
            if len(several) > 1:
                targets = (target["path"] for target in job["placement"]["targets"])
                paths.update(zip(targets, several, strict=True))
        return paths

    @cached_property
    def workloads(self) -> list[PartTotals]:
        """The WDs or FWDs: all jobs of one."""
        kind = "fwd" if self.on_files else "wd"
        wd_of = {job["name"]: job["own_options"].get(kind, job["name"]) for job in self.jobs}
        cells: dict[str, frozenset[int]] = {}
        for line in self._lines("job"):
            name = wd_of.get(line.name, line.name)
            if line.cells:
                cells[name] = cells.get(name, frozenset()) | line.cells
        workloads = [PartTotals(name, its_cells) for name, its_cells in cells.items()]
        self._fill(workloads)
        return workloads

    def _fill(self, parts: Sequence[PartTotals]) -> None:
        """Give parts their intervals."""
        rows = self.measurement.samples
        if self.reads_back:
            rows = of_workloads(rows)
        if self._phase:
            since = [pl.col(name) - self._ran_ns[0] for name in ("start_ns", "end_ns")]
            rows = rows.filter(pl.col("cell").is_in(list(self._cells))).with_columns(since)
        rows = windowed(rows, self.interval_s * SECOND_NS)
        requested_intervals = self.asked_intervals
        last = int(str(rows["window"].max())) if rows.height else -1
        # What ends after the time is up belongs to the last interval, as in vdbench.
        count = min(last + 1, requested_intervals) if requested_intervals else last + 1
        rows = rows.with_columns(pl.col("window").clip(upper_bound=max(count - 1, 0)))
        lengths = lengths_s(rows, count)
        for part in parts:
            part_rows = rows.filter(pl.col("cell").is_in(list(part.cells)))
            part.intervals = tallies(part_rows, lengths, self.asked)

    @property
    def on_files(self) -> bool:
        """Whether it worked in trees."""
        return bool(self.bundle.plan.trees)

    @property
    def asked(self) -> frozenset[str] | None:
        """The operations that count; None for reads and writes of SDs."""
        return asked_of(self.bundle.plan, self.facts)

    def requested(self, part: PartTotals) -> Histogram:
        """Return the response times of what was asked for and counts."""
        histogram = Histogram.empty()
        for op in sorted(self.asked or ()):
            histogram = histogram + self.histogram(part, OPS.index(op))
        return histogram

    def histogram(self, part: PartTotals, op: int) -> Histogram:
        """Return the response times of reads or writes that count."""
        histogram = Histogram.empty()
        for (cell, its_op), one in self._histograms.items():
            if cell in part.cells and its_op == op:
                histogram = histogram + one
        return histogram

    @cached_property
    def _histograms(self) -> dict[tuple[int, ...], Histogram]:
        """Response times by cell and operation."""
        if not self.reads_back:
            return self.measurement.histograms("clat")
        histograms: dict[tuple[int, ...], Histogram] = {}
        for piece in self.measurement.pieces():
            add_histograms(histograms, of_workloads(piece).filter(~pl.col("ramp")), "clat", ("cell", "op"))
        return histograms

    def cpu(self, first: int, last: int) -> CpuUse | None:
        """Return the use of the CPUs from one interval to another, both included."""
        window_ns = self.interval_s * SECOND_NS
        begin_ns = self._begun_ns
        return used(self.processors, begin_ns + (first - 1) * window_ns, begin_ns + last * window_ns)

    @cached_property
    def processors(self) -> pl.DataFrame:
        """What the CPUs did, as the monitors saw it; nothing beside a clock that is not theirs."""
        return pl.DataFrame() if on_virtual_clock(self.bundle.plan) else self.bundle.host(*PROCESSORS)

    @property
    def started_unix_ns(self) -> int | None:
        """Wall clock of the first I/O; None when it came to none."""
        start = self.bundle.event("start")
        return int(start["unix_ns"]) + self._begun_ns if start else None

    @property
    def went_wrong(self) -> list[dict[str, Any]]:
        """What the engine said of I/Os that failed or had wrong data."""
        failures = [event for event in self.bundle.events if event.get("type") in ("io_error", "damage")]
        begin_ns, end_ns = self._ran_ns
        return [one for one in failures if not self._phase or begin_ns <= one.get("t_ns", 0) < end_ns]


def runs_of(bundle: Bundle) -> list[Counted]:
    """Return the runs that vdbench would have made of a bundle: one for each phase of another language."""
    whole = Counted(bundle)
    phases = whole.measurement.lines("stage")
    if whole.of_parameter_file or whole.on_files or len(phases) < 2:
        return [whole]
    return [Counted(bundle, phase) for phase in phases]


def used(host: pl.DataFrame, begin_ns: int, end_ns: int) -> CpuUse | None:
    """Return the use of the CPUs in a time, by the monitors' rows."""
    if host.height == 0 or not set(PROCESSORS) <= set(host.columns):
        return None
    middle = pl.col("t_ns") - pl.col("dt_ns") // 2
    rows = host.filter((middle >= begin_ns) & (middle < end_ns))
    return shares({kind: float(rows[f"cpu.all.{kind}_ns"].sum() or 0) for kind in CPU_KINDS})


def shares(spent: Mapping[str, float]) -> CpuUse | None:
    """Return what the processors' time by kind comes to in percent."""
    total = sum(spent.values())
    if not total:
        return None
    share = {kind: 100 * value / total for kind, value in spent.items()}
    return CpuUse(share["user"], share["system"] + share["irq"], share["iowait"], share["idle"])


def asked_of(plan: Plan, facts: Mapping[str, str]) -> frozenset[str] | None:
    """Return what is in the rate of a run on file systems; None for one on SDs."""
    if not plan.trees:
        return None
    if facts["rd"].startswith(FORMAT):
        return frozenset(("write",))
    return frozenset(op for stream in plan.streams for op in asked_operations(stream))


def tallies(
    rows: pl.DataFrame, lengths_s: Sequence[float], wanted: frozenset[str] | None = None
) -> list[IntervalTotals]:
    """Return the tally of each window from 0 on; `rows` are samples with a column `window`."""
    added = added_up(rows, ("window", "op"), ("clat",), "ops")
    done = {
        (int(row["window"]), OPS[row["op"]]): OneWay(row["bytes"], summed(row, "clat"))
        for row in added.iter_rows(named=True)
    }
    names = BY_NAME if wanted is not None else ()
    return [
        IntervalTotals(
            length_s,
            done.get((at, "read"), OneWay()),
            done.get((at, "write"), OneWay()),
            {name: done.get((at, name), OneWay()) for name in names},
            wanted,
        )
        for at, length_s in enumerate(lengths_s)
    ]


def of_workloads(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the samples of the workloads on SDs, which are all in the first stage."""
    return rows.filter(pl.col("stage") == 0)


def windowed(rows: pl.DataFrame, window_ns: int) -> pl.DataFrame:
    """Add `window`, the number from 0 of the interval in which the middle of a row lies."""
    middle = (pl.col("start_ns") + pl.col("end_ns")) // 2
    return rows.with_columns((middle // window_ns).cast(pl.Int64).alias("window"))


def lengths_s(rows: pl.DataFrame, count: int) -> list[float]:
    """Return how many seconds of each window the samples cover."""
    windows = added_up(rows, ("window",)).select("window", "start_ns", "end_ns")
    lengths = {int(at): (end - start) / SECOND_NS for at, start, end in windows.iter_rows()}
    return [lengths.get(at, 0.0) for at in range(count)]
