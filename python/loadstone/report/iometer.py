"""Runs as the results file of Iometer: columns and order of 1.1 or of 2008, with their meaning.

Knows Iometer's table and which of its numbers Loadstone has; a field without a number is empty.
Times are in milliseconds. A response time is counted from just before the system call, as
Iometer does (`clat`). Raw times are in nanoseconds, so the CPU speed is given as 1e9. Phases of a
run, one after the other, are results of their own: a test of Iometer's has one load at a time.
Computes nothing that is not a sum, a mean or a maximum.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl

from loadstone.analysis.histogram import Histogram, lows_of
from loadstone.analysis.latency import NO_IO
from loadstone.analysis.summary import Summary, summarise
from loadstone.errors import BundleError
from loadstone.messages import make_error
from loadstone.plan.backends import on_virtual_clock
from loadstone.printable import cell
from loadstone.report.exports import refuse_trees
from loadstone.report.runs_to_export import open_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.analysis.latency import Latency
    from loadstone.analysis.totals import OpTotals, Total
    from loadstone.bundle.read import Bundle
    from loadstone.workload.model import Job, Workload

HEADING: Final = (
    "'Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,"
    "IOps,Read IOps,Write IOps,MiBps (Binary),Read MiBps (Binary),Write MiBps (Binary),"
    "MBps (Decimal),Read MBps (Decimal),Write MBps (Decimal),"
    "Transactions per Second,Connections per Second,"
    "Average Response Time,Average Read Response Time,Average Write Response Time,"
    "Average Transaction Time,Average Connection Time,"
    "Maximum Response Time,Maximum Read Response Time,Maximum Write Response Time,"
    "Maximum Transaction Time,Maximum Connection Time,Errors,Read Errors,Write Errors,"
    "Bytes Read,Bytes Written,Read I/Os,Write I/Os,Connections,Transactions per Connection,"
    "Total Raw Read Response Time,Total Raw Write Response Time,"
    "Total Raw Transaction Time,Total Raw Connection Time,"
    "Maximum Raw Read Response Time,Maximum Raw Write Response Time,"
    "Maximum Raw Transaction Time,Maximum Raw Connection Time,"
    "Total Raw Run Time,Starting Sector,Maximum Size,Queue Depth,"
    "% CPU Utilization,% User Time,% Privileged Time,% DPC Time,% Interrupt Time,"
    "Processor Speed,Interrupts per Second,CPU Effectiveness,"
    "Packets/Second,Packet Errors,Segments Retransmitted/Second,"
    "0 to 50 uS,50 to 100 uS,100 to 200 uS,200 to 500 uS,0.5 to 1 mS,1 to 2 mS,2 to 5 mS,"
    "5 to 10 mS,10 to 15 mS,15 to 20 mS,20 to 30 mS,30 to 50 mS,50 to 100 mS,"
    "100 to 200 mS,200 to 500 mS,0.5 to 1 S,1 to 2 s,2 to 4.7 s,4.7 to 5 s,5 to 10 s, >= 10 s"
)
Layout = Literal["1.1", "2008"]
"""Columns of Iometer 1.1, or those that 2008 and 2006 had: no bins, and MiB called MB."""
_COLUMNS_2008: Final = (*range(12), *range(15, 59))
_RENAMED_2008: Final = {
    "MiBps (Binary)": "MBps",
    "Read MiBps (Binary)": "Read MBps",
    "Write MiBps (Binary)": "Write MBps",
}
_VERSIONS: Final = {"1.1": "1.1.0", "2008": "2008.06.22-rc2"}
BIN_EDGES_US: Final = (
    *(50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 20e3, 30e3, 50e3, 100e3, 200e3, 500e3),
    *(1e6, 2e6, 4.7e6, 5e6, 10e6),
)
AMBIGUOUS: Final = "-1"
"""Iometer's word for a value that differs between those it is said of."""
RAW_HZ: Final = 1e9
_MEBIBYTE: Final = 1 << 20
_RECORDED_TARGETS: Final = ("0", "4")
_RECORDED_WORKERS: Final = ("0", "1", "4")
_RECORDED_MANAGERS: Final = ("0", "1", "2", "4")
"""Values of `Record Results` with which a row of that kind is written; 4 is none, and asked for here."""


@dataclass(frozen=True, slots=True)
class _Op:
    """Reads or writes, added up."""

    count: int = 0
    bytes: int = 0
    errors: int = 0
    iops: float = 0.0
    bandwidth: float = 0.0
    latency: Latency = NO_IO

    @classmethod
    def of(cls, stats: OpTotals | None) -> _Op:
        if stats is None:
            return cls()
        latency = stats.latencies.get("clat") or stats.latencies.get("lat")
        return cls(
            count=stats.operations,
            bytes=stats.bytes,
            errors=stats.errors,
            iops=stats.iops.value if stats.iops else 0.0,
            bandwidth=stats.bandwidth.value if stats.bandwidth else 0.0,
            latency=latency or NO_IO,
        )

    def __add__(self, other: _Op) -> _Op:
        return _Op(
            self.count + other.count,
            self.bytes + other.bytes,
            self.errors + other.errors,
            self.iops + other.iops,
            self.bandwidth + other.bandwidth,
            self.latency + other.latency,
        )

    @property
    def mean_ms(self) -> float:
        """Mean response time; 0 without any I/O, as Iometer has it."""
        return (self.latency.mean_ns or 0.0) / 1e6

    @property
    def longest_ns(self) -> int:
        """Longest response time; 0 without any I/O."""
        return int(self.latency.max_ns or 0)


@dataclass(frozen=True, slots=True)
class _Part:
    """A job of the run: one worker on one target, and what it did."""

    manager: str
    worker: str
    worker_id: str
    """Its manager's number, a dot and its own: workers may share a name."""
    target: str
    spec: str
    start_sector: str
    max_sectors: str
    per_connection: str
    """Transactions of each connection; `AMBIGUOUS`: targets stay open."""
    depth: str
    """Of each target, all clones together: a worker has no more than one thread."""
    disks: int
    read: _Op
    write: _Op
    connection: _Op
    """Connections that ended; their latency is from before the open until after the close."""
    measured_ns: int
    cells: frozenset[int]
    """What it counted, of the run's."""

    @property
    def manager_id(self) -> str:
        """What its manager is known by: two may share a name."""
        return self.worker_id.partition(".")[0]


def export(path: Path, layout: Layout = "1.1", *, unverified: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return the results file of a run or of all runs of a study, and its doubts. Raises `BundleError`."""
    runs = open_runs(path, ("measure",), unverified=unverified)
    if not runs.bundles:
        raise make_error(
            BundleError, "report.iometer.no_results", hint=next(iter(runs.doubts), None), path=path
        )
    return results(runs.bundles, layout, runs.doubts), runs.doubts


def results(bundles: Sequence[Bundle], layout: Layout = "1.1", doubts: Sequence[str] = ()) -> str:
    """Return the results file of some runs, in order."""
    out = io.StringIO()
    head, specs_before = True, ""
    for bundle in bundles:
        refuse_trees(bundle, "Iometer's results have")
        summary = summarise(bundle)
        workload = bundle.workload
        about = workload.global_options
        started = summary.started or datetime.fromtimestamp(0, UTC)
        if head:
            out.write("'Test Type,Test Description\n")
            described = [about.get("test_description", workload.name), *doubts]
            _row(out, [about.get("test_type", "0"), "; ".join(described)])
            out.write(f"'Version\n{_version(about, layout)}\n'Time Stamp\n{_stamp(started)}\n")
            head = False
        specs = _specifications(workload)
        if specs != specs_before:
            out.write(specs)
            specs_before = specs
        names = [_RENAMED_2008.get(name, name) if layout == "2008" else name for name in HEADING.split(",")]
        for begin_ns, end_ns, rows in _phases(summary, workload):
            if begin_ns:
                out.write(f"'Time Stamp\n{_stamp(started + timedelta(microseconds=begin_ns / 1e3))}\n")
            out.write("'Results\n")
            for row in (names, *rows):
                _row(out, row if layout == "1.1" else [row[at] for at in _COLUMNS_2008])
            out.write(f"'Time Stamp\n{_stamp(started + timedelta(microseconds=end_ns / 1e3))}\n")
    out.write("'End Test\n")
    return out.getvalue()


def _version(about: Mapping[str, str], layout: Layout) -> str:
    """Return the version of whoever wrote such a file, the configuration's own where it did."""
    version = about.get("version", _VERSIONS[layout])
    dated = version.startswith("20")
    return version if layout == "1.1" or dated else _VERSIONS[layout]


def _stamp(at: datetime) -> str:
    local_time = at.astimezone()
    return f"{local_time:%Y-%m-%d %H:%M:%S}:{local_time.microsecond // 1000:03d}"


def _row(out: io.StringIO, values: Iterable[object]) -> None:
    """Write one line. Iometer quotes nothing, so a comma in a name must not stay."""
    out.write(",".join(cell(str(value)).replace(",", ";") for value in values) + "\n")


def _specifications(workload: Workload) -> str:
    """Return what was run as the section of a results file; without rows for other front ends."""
    out = io.StringIO()
    out.write("'Access specifications\n")
    for key, rows in workload.global_options.items():
        if key.startswith("access_specification "):
            out.write("'Access specification name,default assignment\n")
            _row(out, [key.removeprefix("access_specification "), 0])
            out.write("'size,% of size,% reads,% random,delay,burst,align,reply\n")
            out.write(rows + "\n")
    out.write("'End access specifications\n")
    return out.getvalue()


def _phases(summary: Summary, workload: Workload) -> Iterator[tuple[int, int, Iterable[list[str]]]]:
    """Return begin, end and rows of each phase of a run: what ran one after the other is not added up."""
    parts = _parts(summary, workload)
    host = pl.DataFrame() if on_virtual_clock(summary.measurement.plan) else summary.bundle.host()
    stages = summary.measurement.lines("stage")
    if len(stages) < 2:
        yield 0, round(summary.duration_s * 1e9), _rows(parts, workload, host)
        return
    for stage in stages:
        ran = summary.measurement.union(stage, ramp=True)
        begin_ns, end_ns = (ran[0][0], ran[-1][1]) if ran else (0, 0)
        middle = pl.col("t_ns") - pl.col("dt_ns") // 2
        during = host if not host.height else host.filter((middle >= begin_ns) & (middle < end_ns))
        yield begin_ns, end_ns, _rows([part for part in parts if part.cells <= stage.cells], workload, during)


def _rows(parts: Sequence[_Part], workload: Workload, host: pl.DataFrame) -> Iterable[list[str]]:
    recorded = workload.global_options.get("record_results", "0")
    managers = list(dict.fromkeys(part.manager_id for part in parts))
    cpu = _cpu(host, "all")
    yield _line("ALL", "All", parts, managers=len(managers), workers=_workers(parts), cpu=cpu)
    if recorded not in _RECORDED_MANAGERS:
        return
    for manager in managers:
        manager_parts = [part for part in parts if part.manager_id == manager]
        yield _line(
            "MANAGER",
            manager_parts[0].manager,
            manager_parts,
            workers=_workers(manager_parts),
            cpu=cpu,
            raw=True,
        )
        yield from _processors(host)
        if recorded not in _RECORDED_WORKERS:
            continue
        for worker in dict.fromkeys(part.worker_id for part in manager_parts):
            own = [part for part in manager_parts if part.worker_id == worker]
            yield _line("WORKER", own[0].worker, own, raw=True)
            if recorded in _RECORDED_TARGETS:
                # Of targets that take turns in one job only their sum is known.
                yield from (_line("DISK", p.target, [p], raw=True) for p in own if p.disks == 1)


def _workers(parts: Sequence[_Part]) -> int:
    return len({part.worker_id for part in parts})


def _parts(summary: Summary, workload: Workload) -> list[_Part]:
    jobs: dict[str, list[Job]] = {}
    for job in workload.jobs:
        jobs.setdefault(job.name, []).append(job)
    host = str(summary.bundle.environment.get("host", {}).get("host_name") or "localhost")
    parts = []
    for number, total in enumerate(summary.totals("job"), start=1):
        named = jobs.get(total.line.name)
        parts.append(_part(summary, total, named.pop(0) if named else None, host, number))
    return parts


def _part(summary: Summary, total: Total, job: Job | None, host: str, number: int) -> _Part:
    options = job.own_options if job is not None else {}
    streams = [summary.measurement.plan.streams[index] for index in total.line.streams]
    targets = list(
        dict.fromkeys(summary.measurement.plan.targets[use.target].path for s in streams for use in s.files)
    )
    outstanding = sum(stream.iodepth for stream in streams)
    each = AMBIGUOUS if outstanding % len(targets) else str(outstanding // len(targets))
    return _Part(
        manager=options.get("manager", host),
        worker=options.get("worker", total.line.name),
        worker_id=options.get("worker_id", f"1.{number}"),
        target=options.get("target", ", ".join(targets)),
        spec=options.get("access_specification", summary.bundle.request.get("front_end", "")),
        start_sector=options.get("starting_sector", ""),
        max_sectors=options.get("maximum_size", ""),
        per_connection=options.get("transactions_per_connection", AMBIGUOUS),
        depth=options.get("outstanding_ios", each),
        disks=len(targets),
        read=_Op.of(total.ops.get("read")),
        write=_Op.of(total.ops.get("write")),
        connection=_Op.of(total.ops.get("connection")),
        measured_ns=total.measured_ns,
        cells=total.line.cells,
    )


def _line(
    kind: str,
    name: str,
    parts: Sequence[_Part],
    *,
    managers: int | None = None,
    workers: int | None = None,
    cpu: Sequence[str] | None = None,
    raw: bool = False,
) -> list[str]:
    """Return one row of the table."""
    read = sum((part.read for part in parts), _Op())
    write = sum((part.write for part in parts), _Op())
    connection = sum((part.connection for part in parts), _Op())
    both = read + write
    rates = [(one.iops, one.bandwidth) for one in (both, read, write)]
    means = [_number(one.mean_ms) for one in (both, read, write)]
    longest = [_number(one.longest_ns / 1e6) for one in (both, read, write)]
    per_connection = AMBIGUOUS if kind == "DISK" else _common((p.per_connection for p in parts), AMBIGUOUS)
    row = [kind, name, _common(part.spec for part in parts), _count(managers), _count(workers)]
    row.append(str(sum(part.disks for part in parts)))
    if kind == "DISK":
        row[2], row[5] = "", ""  # They are those of the worker above it, and Iometer leaves them out.
    row += [_number(iops) for iops, _ in rates]
    row += [_number(bandwidth / _MEBIBYTE) for _, bandwidth in rates]
    row += [_number(bandwidth / 1e6) for _, bandwidth in rates]
    # An I/O without a reply is a transaction.
    row += [_number(both.iops), _number(connection.iops)]
    row += [*means, means[0], _number(connection.mean_ms)]
    row += [*longest, longest[0], _number(connection.longest_ns / 1e6)]
    row += [str(one.errors) for one in (both, read, write)]
    row += [str(read.bytes), str(write.bytes), str(read.count), str(write.count)]
    row += [str(connection.count), per_connection]
    row += _raw((read, write, both, connection), parts) if raw else [""] * 9
    row += [_common((getattr(p, one) for p in parts), AMBIGUOUS) for one in _PLACE]
    row += cpu or [""] * 5
    row += [_number(RAW_HZ) if raw else "", "", "", "", "", ""]
    if cpu and cpu[0] and float(cpu[0]):
        row[-4] = _number(both.iops / float(cpu[0]))
    return row + [str(count) for count in bins(both.latency.histogram)]


_PLACE: Final = ("start_sector", "max_sectors", "depth")


def _raw(ops: Sequence[_Op], parts: Sequence[_Part]) -> list[str]:
    """Return sums and maxima in nanoseconds, and the time they are of."""
    sums = [round(one.latency.sum_ns or 0.0) for one in ops]
    longest = [one.longest_ns for one in ops]
    whole = max((part.measured_ns for part in parts), default=0)
    return [str(value) for value in (*sums, *longest, whole)]


def bins(histogram: Histogram) -> list[int]:
    """Count I/Os in Iometer's bins; a bucket over an edge counts where it begins."""
    used = np.flatnonzero(histogram.counts)
    places = np.searchsorted(np.array(BIN_EDGES_US) * 1e3, lows_of(used), side="right")
    counts = np.bincount(places, histogram.counts[used], len(BIN_EDGES_US) + 1)
    return [int(count) for count in counts]


def _processors(host: pl.DataFrame) -> Iterable[list[str]]:
    """Return a row for each CPU of the host; all managers run on it."""
    numbers = [name.split(".")[1] for name in host.columns if name.endswith(".user_ns")]
    width, place = HEADING.count(",") + 1, HEADING.split(",").index("% CPU Utilization")
    for number in sorted((one for one in numbers if one.isdigit()), key=int):
        row = [""] * width
        row[:2] = ["PROCESSOR", f"CPU {number}"]
        row[place : place + 5] = _cpu(host, number)
        yield row


def _cpu(host: pl.DataFrame, which: str) -> list[str]:
    """Use of a CPU or of all while it ran, in percent of its time; empty where it is not known."""
    names = {name: f"cpu.{which}.{name}_ns" for name in ("user", "system", "irq", "idle", "iowait")}
    if host.height == 0 or not set(names.values()) <= set(host.columns):
        return [""] * 5
    spent = {name: float(host[column].sum() or 0) for name, column in names.items()}
    steal = f"cpu.{which}.steal_ns"
    spent["other"] = float(host[steal].sum() or 0) if steal in host.columns else 0.0
    whole = sum(spent.values())
    if not whole:
        return [""] * 5
    share = {name: 100 * value / whole for name, value in spent.items()}
    busy = share["user"] + share["system"] + share["irq"]
    return [
        *(_number(value) for value in (busy, share["user"], share["system"])),
        "",
        _number(share["irq"]),
    ]


def _common(values: Iterable[str], otherwise: str = "") -> str:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else otherwise


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def _number(value: float) -> str:
    return f"{value:.6f}"
