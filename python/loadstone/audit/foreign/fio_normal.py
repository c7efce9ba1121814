"""fio's output for people as Cases: one for each group.

Knows the lines of fio 3 and 2: what each job was to do, each direction's rate and latency, CPU, depths,
issued I/Os and disks. Numbers of fio 3 are rounded to three digits; fio 2 writes KB for 1024 bytes. Options
that are not in the line of a job (direct, size, offsets) are not known. A file may hold several runs, and
parts of some among a person's notes: what has no head belongs to no job.
"""

from __future__ import annotations

import calendar
import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from loadstone.analysis.latency import Latency
from loadstone.audit import case as shape
from loadstone.audit.foreign import fio_case, fio_disks, fio_options, reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

RECOGNISED: Final = re.compile(
    rb"(?m)^\S.*: \(groupid=\d+, jobs=\d+\): err=|^Run status group \d+ \(all jobs\):"
)
"""What starts a job's results, or the totals of a group: without a job they are no result, which is said."""
ASKED: Final = re.compile(
    r"^(?P<name>.+): \(g=(?P<group>\d+)\): rw=(?P<rw>\w+),.*?\(R\) (?P<read>\S+?), \(W\) (?P<write>\S+?), "
    r".*ioengine=(?P<engine>[\w:./-]+), iodepth=(?P<depth>\d+)"
)
ASKED_OF_FIO_2: Final = re.compile(
    r"^(?P<name>.+): \(g=(?P<group>\d+)\): rw=(?P<rw>\w+), bs=(?P<read>[^/, ]+)/(?P<write>[^/, ]+)/[^/, ]+, "
    r"ioengine=(?P<engine>[\w:./-]+), iodepth=(?P<depth>\d+)"
)
JOB: Final = re.compile(
    r"^(?P<name>.+): \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): err= ?(?P<error>\d+)"
    r"(?:: pid=(?P<pid>\d+)(?:: (?P<when>.*))?)?"
)
ENDED: Final = re.compile(r"^Run status group \d+")
DIRECTION: Final = re.compile(
    r"^\s+(?P<op>read|write|trim)\s*: IOPS=(?P<iops>[\d.]+[kMG]?), BW=(?P<bw>[\d.]+)(?P<unit>[KMGT]?i?B)/s "
    r".*?\((?P<io>[\d.]+)(?P<io_unit>[KMGT]?i?B)/(?P<ms>\d+)msec\)"
)
DIRECTION_OF_FIO_2: Final = re.compile(
    r"^\s+(?P<op>read|write|trim)\s*: io=(?P<io>[\d.]+)(?P<io_unit>[KMGT]?B), "
    r"bw=(?P<bw>[\d.]+)(?P<unit>[KMGT]?B)/s, iops=(?P<iops>[\d.]+[kKMG]?), runt= *(?P<ms>\d+)msec"
)
LATENCY: Final = re.compile(
    r"^\s+(?P<kind>slat|clat|lat|sync) \((?P<unit>nsec|usec|msec)\): min= ?(?P<min>[\d.]+[kKMG]?), "
    r"max= ?(?P<max>[\d.]+[kKMG]?), avg= ?(?P<avg>[\d.]+[kKMG]?), stdev= ?(?P<stdev>[\d.]+[kKMG]?)"
)
PERCENTILES: Final = re.compile(r"^\s+(?P<kind>\S.*) percentiles \((?P<unit>nsec|usec|msec)\):")
"""Of all I/Os, of those of one priority (`clat prio 2/0 (30.00% of IOs)`), or of flushes."""
PERCENTILE: Final = re.compile(r"([\d.]+)th=\[ *([\d.]+[kMG]?)\]")
CPU: Final = re.compile(r"^\s+cpu\s+: usr=(?P<usr>[\d.]+)%, sys=(?P<sys>[\d.]+)%")
ISSUED: Final = re.compile(
    r"^\s+issued(?: rwts?: total=|\s*: total=r=)(\d+)(?:,|/w=)(\d+)(?:,|/d=)(\d+)(?:,(?P<syncs>\d+))?"
)
DEPTHS: Final = re.compile(r"^\s+IO depths\s+:(.*)$")
SHARES: Final = re.compile(r"(?P<bin>\d+)=(?P<percent>[\d.]+)%")
SAMPLES: Final = re.compile(
    r"^\s+iops\s+: min=.*, avg= ?(?P<avg>[\d.]+), stdev= ?(?P<stdev>[\d.]+), samples=(?P<samples>\d+)"
)
"""Of fio 3 alone: fio 2 tells no number of samples."""
PRINTED: Final = "%a %b %d %H:%M:%S %Y"
"""How a moment is written, without its zone: moments of one host are told apart."""
KINDS: Final = ("lat", "clat")
"""Of latency, as a case knows them."""
UNIT_NS: Final = {"nsec": 1.0, "usec": 1e3, "msec": 1e6}
AGREE: Final = 0.015
"""Printed amounts of three digits agree within this."""
LETTERS: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}


def recognises(_: Path, head: bytes) -> bool:
    """Tell fio's output for people by the lines that no other program prints."""
    return RECOGNISED.search(head) is not None


@dataclass(slots=True)
class _Direction:
    iops: float
    bytes_per_s: float
    moved_bytes: float
    seconds: float
    latencies: dict[str, Latency] = field(default_factory=dict)
    percentiles_ns: dict[str, dict[float, float]] = field(default_factory=dict)
    """Of `clat`, or `lat`, or both."""
    samples: re.Match[str] | None = None


@dataclass(slots=True)
class _Job:
    name: str
    group: str
    """Of which run, and which in it."""
    jobs: int
    error: int
    ops: dict[shape.Op, _Direction] = field(default_factory=dict)
    issued: dict[shape.Op, int] = field(default_factory=dict)
    syncs: int = 0
    sync_latency: Latency | None = None
    cpu_percent: float | None = None
    depths: dict[int, float] = field(default_factory=dict)
    pid: str | None = None
    when: str | None = None
    """The second in which its results were printed: of all jobs of a run together."""

    def is_told_by(self, match: re.Match[str]) -> bool:
        """Tell whether a line begins results of the same process."""
        return (self.name, self.pid) == (match["name"], match["pid"])


def read(path: Path) -> reader.ForeignResults:
    """Read a file. Raises InputError when there is no job in it."""
    output = _FileSoFar()
    for line in reader.text(path).splitlines():
        output.take(line)
    if not output.jobs:
        raise reader.wrong(path, "no_job")
    groups: dict[str, list[_Job]] = defaultdict(list)
    for job in output.jobs:
        groups[job.group].append(job)
    notes = ["numbers are rounded to three digits; direct, size and offsets are not in this output"]
    of_run = Counter(group.partition(".")[0] for group in groups)
    # What disks did is told of a whole run: of several groups no one's part is known.
    alone = {group: output.disks[one] for group in groups if of_run[one := group.partition(".")[0]] == 1}
    cases = [
        fio_disks.with_traffic(_case(jobs, output.asked, notes), alone.get(group, ()))
        for group, jobs in groups.items()
    ]
    storage_cases = fio_case.of_storage(path, cases, notes)
    return reader.ForeignResults(f"fio text ({output.version})", storage_cases, notes=tuple(notes))


@dataclass(slots=True)
class _FileSoFar:
    """What the lines of a file have told so far, run after run."""

    asked: dict[tuple[str, str], re.Match[str]] = field(default_factory=dict)
    jobs: list[_Job] = field(default_factory=list)
    disks: dict[str, list[fio_disks.DiskCounts]] = field(default_factory=lambda: defaultdict(list))
    version: str = "fio"
    run: int = 0
    ended: bool = False
    """All jobs of the run have told their results."""
    at: _State | None = None
    """Where in a job's results the last line stood; None: behind them."""

    def take(self, line: str) -> None:
        """Take the next line."""
        if (match := ASKED.match(line) or ASKED_OF_FIO_2.match(line)) is not None:
            if self.jobs and self.jobs[-1].group.startswith(f"{self.run}."):
                self.run += 1  # What a job was to do comes before all results of its run.
            self.asked[f"{self.run}.{match['group']}", match["name"]] = match
            self.ended, self.at = False, None
        elif re.fullmatch(r"fio-\S+", line):
            self.version = line[:32]
        elif ENDED.match(line) is not None:
            self.ended, self.at = True, None
        elif (match := JOB.match(line)) is not None:
            self._begin(match)
        elif self.jobs and (disk := fio_disks.of_line(line)) is not None:
            self.disks[str(self.run)].append(disk)
        elif self.at is not None and not _line(line, self.at):
            self.at = None

    def _begin(self, match: re.Match[str]) -> None:
        """Begin the results of a job; of those it tells again (`--status-interval`) the last count."""
        others = [one for one in self.jobs if one.group.startswith(f"{self.run}.")]
        again = [one for one in others if self.ended and one.pid is not None and one.is_told_by(match)]
        if again:
            self.jobs = [one for one in self.jobs if not any(one is repeated for repeated in again)]
            self.disks[str(self.run)].clear()
        elif others and (self.ended or others[-1].when != match["when"]):
            self.run += 1  # Its head is missing: what it was asked for is not known.
        self.ended = False
        job = _Job(
            match["name"],
            f"{self.run}.{match['group']}",
            int(match["jobs"]),
            int(match["error"]),
            pid=match["pid"],
            when=match["when"],
        )
        self.jobs.append(job)
        self.at = _State(job)


@dataclass(slots=True)
class _State:
    """Where in a job's results a line stands."""

    job: _Job
    op: _Direction | None = None
    table: dict[float, float] | None = None
    """Percentiles whose lines follow; None: of nothing that is kept."""
    table_ns: float = 1.0
    """Its unit."""


def _line(line: str, state: _State) -> bool:
    """Read a line of a job's results; False where one of another run stands."""
    if (match := DIRECTION.match(line) or DIRECTION_OF_FIO_2.match(line)) is not None:
        return _direction(match, state)
    if (match := LATENCY.match(line)) is not None:
        _latency_line(match, state.job, state)
    elif (match := PERCENTILES.match(line)) is not None:
        op = state.op if match["kind"] in KINDS else None
        state.table = None if op is None else op.percentiles_ns.setdefault(match["kind"], {})
        state.table_ns = UNIT_NS[match["unit"]]
    elif line.lstrip().startswith("|") and state.table is not None:
        for percent, value in PERCENTILE.findall(line):
            known = reader.number(percent)
            if known is not None:
                state.table[known] = _scaled(value) * state.table_ns
    elif state.op is not None and (match := SAMPLES.match(line)) is not None:
        state.op.samples = match
    else:
        _job_line(line, state.job)
    return True


def _direction(match: re.Match[str], state: _State) -> bool:
    """Begin a direction; False where the job has told of it already: a part of another run was put here."""
    op = next(one for one in fio_case.OPS if one == match["op"])
    if op in state.job.ops:
        return False
    binary = match.re is DIRECTION_OF_FIO_2
    state.op = state.job.ops[op] = _Direction(
        _scaled(match["iops"]),
        _bytes(match["bw"], match["unit"], binary=binary),
        _bytes(match["io"], match["io_unit"], binary=binary),
        int(match["ms"][:12]) / 1e3,
    )
    state.table = None
    return True


def _job_line(line: str, job: _Job) -> None:
    """Read what is told of all directions of a job."""
    if (match := CPU.match(line)) is not None:
        job.cpu_percent = (float(match["usr"]) + float(match["sys"])) * job.jobs
    elif (match := DEPTHS.match(line)) is not None:
        job.depths = {int(one["bin"][:9]): float(one["percent"]) for one in SHARES.finditer(match[1])}
    elif (match := ISSUED.match(line)) is not None:
        counts = zip(fio_case.OPS, match.groups()[:3], strict=True)
        job.issued = {op: int(count[:18]) for op, count in counts}
        job.syncs = int((match["syncs"] or "0")[:18])


def _latency_line(match: re.Match[str], job: _Job, state: _State) -> None:
    """Keep a line of latency: of a flush with its job, any other with the direction it stands below."""
    unit = UNIT_NS[match["unit"]]
    latency = Latency(
        mean_ns=_scaled(match["avg"]) * unit,
        min_ns=_scaled(match["min"]) * unit,
        max_ns=_scaled(match["max"]) * unit,
        stddev_ns=_scaled(match["stdev"]) * unit,
    )
    if match["kind"] == "sync":
        job.sync_latency = latency
    elif state.op is not None:
        state.op.latencies[match["kind"]] = latency


def _scaled(text: str) -> float:
    letter = text[-1] if text[-1] in "kKMG" else ""
    return (reader.number(text.removesuffix(letter)) or 0.0) * LETTERS[letter]


def _bytes(text: str, unit: str, *, binary: bool = False) -> float:
    base = 1024 if binary or "i" in unit else 1000
    power = {"K": 1, "k": 1, "M": 2, "G": 3, "T": 4}.get(unit[:1], 0)
    return float((reader.number(text) or 0.0) * base**power)


def _measured(direction: _Direction, issued: int | None, clones: int) -> shape.OpMeasurement:
    latencies = {
        kind: replace(
            direction.latencies.get(kind, Latency()),
            count=issued,
            printed=direction.percentiles_ns.get(kind, {}),
        )
        for kind in KINDS
        if kind in direction.latencies or direction.percentiles_ns.get(kind)
    }
    return shape.OpMeasurement(
        operations=issued if issued is not None else round(direction.iops * direction.seconds),
        bytes=_moved(direction),
        iops=shape.Figure(direction.iops),
        bandwidth=shape.Figure(direction.bytes_per_s),
        latencies=latencies,
        spread=None if direction.samples is None else _spread(direction, direction.samples, clones),
    )


def _spread(direction: _Direction, samples: re.Match[str], clones: int) -> shape.RateSpread | None:
    return fio_case.spread(
        direction.iops,
        reader.number(samples["avg"]),
        reader.number(samples["stdev"]),
        reader.whole(samples["samples"]),
        clones=clones,
        seconds=direction.seconds,
    )


def _flush(job: _Job) -> shape.OpMeasurement | None:
    """Return the flushes of a job; None when it made none, or an old fio did not time them."""
    seconds = max((direction.seconds for direction in job.ops.values()), default=0.0)
    if not job.syncs or job.sync_latency is None or not seconds:
        return None
    rate = shape.Figure(job.syncs / seconds)
    return shape.OpMeasurement(operations=job.syncs, iops=rate, latencies={"lat": job.sync_latency})


def _moved(direction: _Direction) -> int | None:
    """Return the bytes, None where two places differ: fio 3.1 prints 24.99 GiB as 24.0GiB."""
    by_rate = direction.bytes_per_s * direction.seconds
    if by_rate and abs(direction.moved_bytes / by_rate - 1) > AGREE:
        return None
    return int(direction.moved_bytes)


def _case(jobs: list[_Job], asked: dict[tuple[str, str], re.Match[str]], notes: list[str]) -> shape.Case:
    fio_jobs = [
        fio_case.FioJob(
            name=job.name,
            ops={op: _measured(direction, job.issued.get(op), job.jobs) for op, direction in job.ops.items()},
            seconds=max((direction.seconds for direction in job.ops.values()), default=0.0),
            cpu_percent=job.cpu_percent,
            error=job.error,
            flush=_flush(job),
            clones=job.jobs,
            depths=job.depths,
        )
        for job in jobs
    ]
    lines = {name: match for (group, name), match in asked.items() if group == jobs[0].group}
    clones: dict[str, int] = defaultdict(int)
    for job in jobs:
        clones[job.name] += job.jobs
    hidden = lines.keys() - clones.keys()
    if hidden:
        notes.append(f"{jobs[0].name} stands for {len(lines)} jobs (group_reporting)")
        of_all = _asked(f"{jobs[0].name} and others", sum(clones.values()), lines)
        return replace(fio_case.case(fio_jobs, (of_all,), notes), ran_s=_ran(jobs))
    every = tuple(
        _asked(name, count, {name: lines[name]} if name in lines else {}) for name, count in clones.items()
    )
    return replace(fio_case.case(fio_jobs, every, notes), ran_s=_ran(jobs))


def _ran(jobs: Sequence[_Job]) -> tuple[float, float] | None:
    """Return when jobs ran, backwards from when their results were printed; None where that is not told."""
    seconds = max((direction.seconds for job in jobs for direction in job.ops.values()), default=0.0)
    try:
        printed_s = float(calendar.timegm(time.strptime(jobs[0].when or "", PRINTED)))
    except ValueError:
        return None
    return printed_s - seconds, printed_s


def _asked(name: str, clones: int, lines: Mapping[str, re.Match[str]]) -> shape.JobRequest:
    """Return what the lines of jobs have in common."""
    depths = {fio_options.depth(line["engine"], int(line["depth"][:9])) for line in lines.values()}
    requested_depths = {int(line["depth"][:9]) for line in lines.values()}
    percents = {_read_percent(line["rw"]) for line in lines.values()}
    percent = percents.pop() if len(percents) == 1 else None
    scattered = {100.0 if line["rw"].startswith("rand") else 0.0 for line in lines.values()}
    engines = {line["engine"] for line in lines.values()}
    sizes = {(line["read"], line["write"]) for line in lines.values()}
    read, write = (_sizes(text) for text in sizes.pop()) if len(sizes) == 1 else ({}, {})
    both = read if read == write else {}
    return shape.JobRequest(
        job=name,
        clones=clones,
        iodepth=depths.pop() if len(depths) == 1 else None,
        asked_iodepth=requested_depths.pop()
        if len(requested_depths) == 1 and engines <= set(fio_options.SYNCHRONOUS)
        else None,
        read_percent=percent,
        random_percent=scattered.pop() if len(scattered) == 1 else None,
        block_bytes={100.0: read, 0.0: write}.get(-1.0 if percent is None else percent, both),
        read_block_bytes=read if percent else {},
        write_block_bytes=write if percent is not None and percent < 100 else {},
        backend=engines.pop() if len(engines) == 1 else None,
    )


def _read_percent(kind: str) -> float | None:
    if "trim" in kind or kind in ("rw", "readwrite", "randrw"):
        return None
    return 0.0 if kind.endswith("write") else 100.0


def _sizes(text: str) -> dict[int, float]:
    """Read `4096B-4096B`, `64.0KiB-64.0KiB` or fio 2's `4K-4K`; a range is not told apart further."""
    match = re.fullmatch(r"([\d.]+)([KMG]?i?B|[KMG]?)-([\d.]+)([KMG]?i?B|[KMG]?)", text)
    if match is None or match[1] != match[3] or match[2] != match[4]:
        return {}
    size = int(_bytes(match[1], match[2], binary=not match[2].endswith("B")))
    return {size: 1.0} if size else {}
