"""What vdbench counts of a run: per reporting interval, for everything, each SD and each WD.

Knows how the samples of a bundle become vdbench's intervals, and which of them its averages leave
out. Its response time is that of the read or write itself, without the time an I/O waited for a
free thread: our `clat`. Knows no layout of text.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.analysis.histogram import Histogram
from loadstone.analysis.measurement import Measurement
from loadstone.bundle.layout import OPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.bundle.read import Bundle

SECOND_NS: Final = 1_000_000_000
MIB: Final = float(1 << 20)
READ: Final = OPS.index("read")
WRITE: Final = OPS.index("write")


@dataclass(frozen=True, slots=True)
class OneWay:
    """Reads, or writes: sums over their response times in nanoseconds."""

    count: int = 0
    bytes: int = 0
    sum_ns: float = 0.0
    sumsq_ns2: float = 0.0
    max_ns: int = 0

    def __add__(self, other: OneWay) -> OneWay:
        return OneWay(
            self.count + other.count,
            self.bytes + other.bytes,
            self.sum_ns + other.sum_ns,
            self.sumsq_ns2 + other.sumsq_ns2,
            max(self.max_ns, other.max_ns),
        )

    @property
    def response_ms(self) -> float:
        """Mean response time; as in vdbench 0 without I/Os."""
        return self.sum_ns / self.count / 1e6 if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over some seconds, and what vdbench computes from them."""

    seconds: float
    reads: OneWay = OneWay()
    writes: OneWay = OneWay()

    @property
    def both(self) -> OneWay:
        """Reads and writes together."""
        return self.reads + self.writes

    @property
    def rate(self) -> float:
        """I/Os per second."""
        return self.both.count / self.seconds if self.seconds else 0.0

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
        both = self.both
        if both.count < 2:
            return 0.0
        square = both.count * both.sumsq_ns2 - both.sum_ns**2
        return math.sqrt(max(0.0, square) / (both.count * (both.count - 1))) / 1e6

    @property
    def queue_depth(self) -> float:
        """I/Os in progress on average: rate times response time."""
        return self.both.sum_ns / 1e9 / self.seconds if self.seconds else 0.0


def added(parts: Iterable[Tally]) -> Tally:
    """Return several intervals as one."""
    seconds, reads, writes = 0.0, OneWay(), OneWay()
    for part in parts:
        seconds, reads, writes = seconds + part.seconds, reads + part.reads, writes + part.writes
    return Tally(seconds, reads, writes)


@dataclass(frozen=True, slots=True)
class Cpu:
    """Use of the host's processors in percent; `None` where it is not known."""

    user: float
    system: float
    wait: float
    idle: float

    @property
    def used(self) -> float:
        """User and system time."""
        return self.user + self.system


@dataclass(slots=True)
class Part:
    """One SD or one WD, or everything: its intervals, the first of them first."""

    name: str
    cells: frozenset[int]
    intervals: list[Tally] = field(default_factory=list)


class Counted:
    """A bundle as vdbench would have counted it."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.measurement = Measurement(bundle)

    @cached_property
    def _workload(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.bundle.path / "workload.json").read_text())
        return found

    @cached_property
    def facts(self) -> dict[str, str]:
        """What the front end said about the run; for other languages what comes nearest."""
        told = self._workload.get("global_options", {})
        if "rd" in told:
            return {str(key): str(value) for key, value in told.items()}
        limits = [stream.limits for stream in self.bundle.plan.streams]
        ramp = max((-(-limit.ramp_ns // SECOND_NS) for limit in limits), default=0)
        whole = max(1, round(self.measurement.ended_ns / SECOND_NS))
        return {
            "rd": str(self._workload.get("name", "run")).replace(" ", "_"),
            "loops": "",
            "iorate": "max",
            "controlled": "no",
            "elapsed": str(max(1, whole - ramp)),
            "warmup": str(ramp),
            "interval": "1",
        }

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The jobs that were asked for."""
        found: list[dict[str, Any]] = self._workload.get("jobs", [])
        return found

    @property
    def interval_s(self) -> int:
        """Length of an interval."""
        return int(self.facts["interval"])

    @property
    def first_counted(self) -> int:
        """Number of the first interval that counts for the averages."""
        warmup = int(self.facts["warmup"]) // self.interval_s
        return (warmup or 1) + 1 if len(self.whole.intervals) > 1 else 1

    @property
    def average_name(self) -> str:
        """What the line of averages is called."""
        return f"avg_{self.first_counted}-{len(self.whole.intervals)}"

    def average(self, part: Part) -> Tally:
        """Return the intervals that count as one."""
        return added(part.intervals[self.first_counted - 1 :])

    @cached_property
    def whole(self) -> Part:
        """Everything together."""
        everything = Part("", frozenset(range(len(self.bundle.plan.cells))))
        self._fill([everything])
        return everything

    @cached_property
    def storages(self) -> list[Part]:
        """The SDs: the targets, by the names the parameter file gives them."""
        names = {job["own_options"].get("lun"): job["own_options"].get("sd") for job in self.jobs}
        paths = {
            target["path"]: names.get(target["written"]) for job in self.jobs for target in job["targets"]
        }
        found = [
            Part(paths.get(line.name) or f"sd{number}", line.cells)
            for number, line in enumerate(self.measurement.lines("target"), start=1)
        ]
        self._fill(found)
        return found

    @cached_property
    def workloads(self) -> list[Part]:
        """The WDs: all jobs of one."""
        wd_of = {job["name"]: job["own_options"].get("wd", job["name"]) for job in self.jobs}
        cells: dict[str, frozenset[int]] = {}
        for line in self.measurement.lines("job"):
            name = wd_of.get(line.name, line.name)
            cells[name] = cells.get(name, frozenset()) | line.cells
        found = [Part(name, its_cells) for name, its_cells in cells.items()]
        self._fill(found)
        return found

    def _fill(self, parts: Sequence[Part]) -> None:
        """Give parts their intervals."""
        rows = windowed(self.measurement.samples, self.interval_s * SECOND_NS)
        asked = (int(self.facts["elapsed"]) + int(self.facts["warmup"])) // self.interval_s
        last = int(str(rows["window"].max())) if rows.height else -1
        # What ends after the time is up belongs to the last interval, as in vdbench.
        count = min(last + 1, asked) if asked else last + 1
        rows = rows.with_columns(pl.col("window").clip(upper_bound=max(count - 1, 0)))
        lengths = lengths_s(rows, count)
        for part in parts:
            part.intervals = tallies(rows.filter(pl.col("cell").is_in(list(part.cells))), lengths)

    def histogram(self, part: Part, op: int) -> Histogram:
        """Return the response times of reads or writes that count."""
        found = Histogram.empty()
        for (cell, its_op), one in self.measurement.histograms("clat").items():
            if cell in part.cells and its_op == op:
                found = found + one
        return found

    def cpu(self, first: int, last: int) -> Cpu | None:
        """Return the use of the processors from one interval to another, both included."""
        host = self.bundle.host()
        kinds = ("user", "system", "irq", "idle", "iowait", "steal")
        columns = [f"cpu.all.{kind}_ns" for kind in kinds]
        if host.height == 0 or not set(columns) <= set(host.columns):
            return None
        window_ns = self.interval_s * SECOND_NS
        middle = pl.col("t_ns") - pl.col("dt_ns") // 2
        rows = host.filter((middle >= (first - 1) * window_ns) & (middle < last * window_ns))
        spent = {kind: float(rows[column].sum() or 0) for kind, column in zip(kinds, columns, strict=True)}
        total = sum(spent.values())
        if not total:
            return None
        share = {kind: 100 * value / total for kind, value in spent.items()}
        return Cpu(share["user"], share["system"] + share["irq"], share["iowait"], share["idle"])

    @property
    def started_unix_ns(self) -> int | None:
        """Wall clock of the first I/O; None when it came to none."""
        start = self.bundle.event("start")
        return int(start["unix_ns"]) if start else None


def tallies(rows: pl.DataFrame, lengths_s: Sequence[float]) -> list[Tally]:
    """Return the tally of each window from 0 on; `rows` are samples with a column `window`."""
    count = len(lengths_s)
    reads, writes = _one_way(rows, READ, count), _one_way(rows, WRITE, count)
    return [Tally(length_s, reads[at], writes[at]) for at, length_s in enumerate(lengths_s)]


def windowed(rows: pl.DataFrame, window_ns: int) -> pl.DataFrame:
    """Add `window`, the number from 0 of the interval in which the middle of a row lies."""
    middle = (pl.col("start_ns") + pl.col("end_ns")) // 2
    return rows.with_columns((middle // window_ns).cast(pl.Int64).alias("window"))


def lengths_s(rows: pl.DataFrame, count: int) -> list[float]:
    """Return how many seconds of each window the samples cover."""
    bounds = rows.group_by("window").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    found = {int(at): (end - start) / SECOND_NS for at, start, end in bounds.iter_rows()}
    return [found.get(at, 0.0) for at in range(count)]


def _one_way(rows: pl.DataFrame, op: int, count: int) -> list[OneWay]:
    sums = (
        rows.filter(pl.col("op") == op)
        .group_by("window")
        .agg(
            pl.col("ops").sum(),
            pl.col("bytes").sum(),
            pl.col("clat_sum_ns").sum(),
            pl.col("clat_sumsq_ns2").sum(),
            pl.col("clat_max_ns").max(),
        )
    )
    found = {
        int(at): OneWay(ops, moved, total, squares, top)
        for at, ops, moved, total, squares, top in sums.iter_rows()
    }
    return [found.get(at, OneWay()) for at in range(count)]
