"""fio's terse output, versions 2 to 5, as Cases: one for each group.

Knows the order of the fields. There is nothing of what was asked for in it but the jobs' names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from loadstone.analysis.latency import Latency
from loadstone.audit import case as shape
from loadstone.audit.foreign import fio_case, reader
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LINE: Final = re.compile(rb"(?m)^(?:[345];(?:fio-[^;\n]*|\d+\.\d[^;\n]*);|2;[^;\n]*;\d+;\d+;(?=[^\n]*%=))")
"""Versions of fio before 2.0.9 are numbers alone; a line of version 2 does not name fio's."""
HEAD_FIELDS: Final = 5
PERCENTILES: Final = 20
FIRST_PERCENTILE: Final = HEAD_FIELDS + 12
PERCENTILE: Final = re.compile(r"[\d.]+%=\d+")
DIRECTION_FIELDS: Final = {"2": 41, "3": 41, "4": 41, "5": 47}
DIRECTIONS: Final[dict[str, tuple[shape.Op, ...]]] = {
    "2": ("read", "write"),
    "3": ("read", "write"),
    "4": ("read", "write", "trim"),
    "5": ("read", "write", "trim"),
}
CPU_FIELDS: Final = 5


def recognises(_: Path, head: bytes) -> bool:
    """Tell terse output by a line that starts with its version and fio's."""
    return LINE.search(head) is not None


def read(path: Path) -> reader.ForeignResults:
    """Read a file; other lines than terse ones are passed over."""
    groups: dict[str, list[fio_case.FioJob]] = defaultdict(list)
    version = ""
    for number, line in enumerate(reader.text(path).splitlines(), start=1):
        if not LINE.match(line.encode("utf-8", "replace")):
            continue
        fields = line.split(";")
        if fields[0] == "2":
            fields.insert(1, "version 2")
        # A name may have semicolons in it.
        shifted = (
            next((at for at, one in enumerate(fields) if PERCENTILE.fullmatch(one)), 0) - FIRST_PERCENTILE
        )
        if shifted > 0:
            fields[2 : 3 + shifted] = [";".join(fields[2 : 3 + shifted])]
        version = fields[1]
        needed = HEAD_FIELDS + DIRECTION_FIELDS[fields[0]] * len(DIRECTIONS[fields[0]]) + CPU_FIELDS
        if len(fields) < needed:
            raise reader.wrong(path, "fields", number, found=str(len(fields)), least=str(needed))
        if not all(map(PERCENTILE.fullmatch, fields[FIRST_PERCENTILE : FIRST_PERCENTILE + PERCENTILES])):
            raise reader.wrong(path, "terse_order", number, place=str(FIRST_PERCENTILE + 1))
        groups[fields[3]].append(_job(fields))
    if not groups:
        raise reader.wrong(path, "no_terse_line")
    notes = ["terse output does not say what was asked for: depth, block size and direct are not known"]
    for jobs in groups.values():
        lines = Counter(job.name for job in jobs)
        notes += [
            say("audit.foreign.clones", lines=count, name=name) for name, count in lines.items() if count > 1
        ]
    cases = [fio_case.case(jobs, _asked(jobs), notes) for jobs in groups.values()]
    return reader.ForeignResults(
        f"fio terse ({version[:32]})", reader.with_siblings(cases), notes=tuple(notes)
    )


def _job(fields: Sequence[str]) -> fio_case.FioJob:
    """Read one line. Its CPU is the mean of the clones it stands for."""
    size, job = DIRECTION_FIELDS[fields[0]], fio_case.FioJob(fields[2], error=reader.whole(fields[4]) or 0)
    for index, op in enumerate(DIRECTIONS[fields[0]]):
        part = fields[HEAD_FIELDS + index * size : HEAD_FIELDS + (index + 1) * size]
        job.seconds = max(job.seconds, (reader.number(part[3]) or 0.0) / 1e3)
        if (measurement := _measured(part)) is not None:
            job.ops[op] = measurement
    at = HEAD_FIELDS + size * len(DIRECTIONS[fields[0]])
    cpu = [one for one in map(reader.number, fields[at : at + 2]) if one is not None]
    job.cpu_percent = sum(cpu) if cpu else None
    return job


def _measured(part: Sequence[str]) -> shape.OpMeasurement | None:
    """Read one direction; None when it did nothing."""
    kib, kib_per_s, iops, runtime_ms = (reader.number(value) for value in part[:4])
    if not kib and not iops:
        return None
    return shape.OpMeasurement(
        operations=round(iops * runtime_ms / 1e3) if iops is not None and runtime_ms else None,
        bytes=None if kib is None else int(kib * 1024),
        iops=reader.figure(iops),
        bandwidth=reader.figure(None if kib_per_s is None else kib_per_s * 1024),
        latencies=_latencies(part),
    )


def _latencies(part: Sequence[str]) -> dict[str, Latency]:
    """Read the latencies of one direction, in microseconds; percentiles are those of the completion."""
    percentiles = {
        percent: value * 1e3
        for text, _, usec in (one.partition("%=") for one in part[12 : 12 + PERCENTILES])
        if (percent := reader.positive(text)) and (value := reader.positive(usec))
    }
    latencies = {
        "lat": _latency(part[12 + PERCENTILES : 16 + PERCENTILES], {}),
        "clat": _latency(part[8:12], percentiles),
    }
    return {kind: latency for kind, latency in latencies.items() if latency is not None}


def _latency(fields: Sequence[str], percentiles: dict[float, float]) -> Latency | None:
    """Read shortest, longest, mean and deviation; None where fio did not measure them."""
    mean = reader.positive(fields[2])
    if mean is None and not percentiles:
        return None
    return Latency(
        mean_ns=None if mean is None else mean * 1e3,
        stddev_ns=_ns(fields[3]),
        min_ns=_ns(fields[0]),
        max_ns=_ns(fields[1]),
        printed=percentiles,
    )


def _ns(usec: str) -> float | None:
    value = reader.number(usec)
    return None if value is None else value * 1e3


def _asked(jobs: Sequence[fio_case.FioJob]) -> tuple[shape.JobRequest, ...]:
    """Return the jobs' names, and the directions that each of them did."""
    names = dict.fromkeys(job.name for job in jobs)
    done = {name: {op for job in jobs if job.name == name for op in job.ops} for name in names}
    return tuple(shape.JobRequest(job=name, read_percent=fio_case.read_percent(done[name])) for name in names)
