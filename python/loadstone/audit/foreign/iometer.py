"""Iometer's result file (CSV) as Cases: one for each test.

Rates and times are in the row for all managers; what was asked for is in the access specification
of each worker, so that workers with different ones are different jobs. Reads and writes have
figures of their own. Judges nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from loadstone.analysis.latency import Latency
from loadstone.audit import case as shape
from loadstone.audit.foreign import iometer_tables, reader
from loadstone.audit.foreign.iometer_tables import SPECIFICATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadstone.audit.foreign.iometer_tables import SpecificationLine, Test, WorkerRows

RECOGNISED: Final = re.compile(rb"(?m)^(?:\xef\xbb\xbf)?'Target Type,")
MS: Final = 1e6
MIB: Final = 1 << 20
SECTOR_BYTES: Final = 512


def recognises(_: Path, head: bytes) -> bool:
    """Tell a result file by the keys that Iometer starts lines with."""
    return RECOGNISED.search(head) is not None


def read(path: Path) -> reader.ForeignResults:
    """Read a result file. Raises InputError for one without a result of all managers."""
    file = iometer_tables.read(path)
    if not file.any_row:
        raise reader.wrong(path, "no_test")
    if not file.tests:
        raise reader.wrong(path, "no_row_of_all")
    tests = [test for test in file.tests if not test.over_network]
    if not tests:
        raise reader.no_storage(path, "only_network")
    if left := len(file.tests) - len(tests):
        file.notes.append(
            f"tests of network connections are left out, because they measure no storage: {left}"
        )
    cases = reader.with_siblings([_case(test) for test in tests])
    return reader.ForeignResults(f"Iometer {file.version[:32]}".strip(), cases, notes=tuple(file.notes))


def _case(test: Test) -> shape.Case:
    row = test.row
    jobs = _jobs(test)
    ops = _ops(row)
    errors = reader.whole(row.get("Errors"))
    names = list(dict.fromkeys(_specification(one.row, test) or "" for one in test.workers))
    name = (
        " + ".join(names) or _specification(row, test) or test.description or row.get("Target Name", "test")
    )
    title = f"{test.description}: {name}" if test.description and name != test.description else name
    depths = [job.iodepth for job in jobs]
    depth = sum(one or 0 for one in depths) if None not in depths else 0
    return shape.Case(
        name=f"{title}, {depth} outstanding" if depth else title,
        source="iometer",
        jobs=jobs,
        by_job={job.job: _ops(one.row) for job, one in zip(jobs, test.workers, strict=False)}
        if len(jobs) > 1
        else {},
        total=_total(row, ops, errors),
        ops=ops,
        seconds=_seconds(row, ops),
        targets=tuple(
            shape.TargetState(path)
            for path in dict.fromkeys(
                disk["Target Name"]
                for worker in test.workers
                for disk in worker.targets
                if disk.get("Target Type") == "DISK" and "Target Name" in disk
            )
        ),
        problems=() if errors == 0 else None,
        host_cpu_percent=reader.number(row.get("% CPU Utilization")),
        printed=_printed(row),
    )


def _jobs(test: Test) -> tuple[shape.JobRequest, ...]:
    """Return a job for each worker where they have different specifications, else one for all."""
    specifications = {_specification(one.row, test) for one in test.workers}
    if len(specifications) > 1 and None not in specifications:
        several = len({one.manager for one in test.workers}) > 1
        names = [
            f"{one.manager} {one.name}".strip() if several else one.name or "worker" for one in test.workers
        ]
        return tuple(
            _asked(name if names.count(name) == 1 else f"{name} ({at})", one.row, test, _outstanding([one]))
            for at, (name, one) in enumerate(zip(names, test.workers, strict=True), start=1)
        )
    row = next((one.row for one in test.workers), test.row)
    specification = specifications.pop() if len(specifications) == 1 else _specification(test.row, test)
    job = specification or test.description or test.row.get("Target Name", "test")
    places = {(one.row.get("Maximum Size"), one.row.get("Queue Depth")) for one in test.workers}
    alike = test.row if len(places) > 1 else row
    return (_asked(job, alike, test, _all_outstanding(test), specification),)


def _specification(row: dict[str, str], test: Test) -> str | None:
    """Return the name of a row's specification, None where it is empty or was not written down."""
    name = row.get(SPECIFICATION, "")
    if name in test.specifications:
        return name
    workers = {one.row.get(SPECIFICATION, "") for one in test.workers}
    if row is test.row and not name and not workers - {""} and len(test.specifications) == 1:
        return next(iter(test.specifications))
    return None


_NAMES: Final[dict[shape.Op, str]] = {"read": "Read", "write": "Write"}


def _ops(row: dict[str, str]) -> dict[shape.Op, shape.OpMeasurement]:
    return {op: measurement for op in _NAMES if (measurement := _measured(row, op)) is not None}


def _column(row: dict[str, str], *names: str) -> float | None:
    """Return the number under the first of some names that the header has."""
    return next((reader.number(row[name]) for name in names if row.get(name)), None)


def _bandwidth(row: dict[str, str], what: str) -> float | None:
    """Return bytes a second: MiB until 2008 though called MB, both kinds by their names in 1.1."""
    prefix = f"{what} " if what else ""
    binary = _column(row, f"{prefix}MiBps (Binary)", f"{prefix}MBps (Binary)", f"{prefix}MBps")
    if binary is not None:
        return binary * MIB
    decimal = _column(row, f"{prefix}MBps (Decimal)")
    return None if decimal is None else decimal * 1e6


def _measured(row: dict[str, str], op: shape.Op) -> shape.OpMeasurement | None:
    label = _NAMES[op]
    iops = _column(row, f"{label} IOps")
    if not iops:
        return None
    count = _column(row, f"{label} I/Os")
    moved = _column(row, "Bytes Read" if op == "read" else "Bytes Written")
    return shape.OpMeasurement(
        operations=None if count is None else int(count),
        bytes=None if moved is None else int(moved),
        errors=reader.whole(row.get(f"{label} Errors")),
        iops=reader.figure(iops),
        bandwidth=reader.figure(_bandwidth(row, label)),
        latencies=_latencies(
            _column(row, f"Average {label} Response Time"),
            _column(row, f"Maximum {label} Response Time"),
            count,
        ),
    )


def _latencies(mean_ms: float | None, max_ms: float | None, count: float | None) -> dict[str, Latency]:
    if not mean_ms:
        return {}
    latency = Latency(
        count=None if count is None else int(count),
        mean_ns=mean_ms * MS,
        max_ns=None if not max_ms else max_ms * MS,
    )
    return {"lat": latency}


def _total(
    row: dict[str, str], ops: dict[shape.Op, shape.OpMeasurement], errors: int | None
) -> shape.OpMeasurement:
    counts = [one.operations for one in ops.values()]
    moved = [one.bytes for one in ops.values()]
    whole = sum(one for one in counts if one is not None) if counts and None not in counts else None
    return shape.OpMeasurement(
        operations=whole,
        bytes=sum(one for one in moved if one is not None) if moved and None not in moved else None,
        errors=errors,
        iops=reader.figure(_column(row, "IOps")),
        bandwidth=reader.figure(_bandwidth(row, "")),
        latencies=_latencies(
            _column(row, "Average Response Time"), _column(row, "Maximum Response Time"), whole
        ),
    )


def _seconds(row: dict[str, str], ops: dict[shape.Op, shape.OpMeasurement]) -> float | None:
    """Return the measured time, which is nowhere but in the rates: I/Os counted by I/Os a second."""
    counts = [one.operations for one in ops.values()]
    iops = _column(row, "IOps")
    if not iops or not counts or None in counts:
        return None
    return sum(one for one in counts if one is not None) / iops or None


def _outstanding(workers: Sequence[WorkerRows]) -> int | None:
    """Return the outstanding I/Os of workers: queue depth times targets, for each of them."""
    depths = [reader.positive(one.row.get("Queue Depth")) for one in workers]
    disks = [reader.positive(one.row.get("# Disks")) for one in workers]
    if None in depths or None in disks:
        return None
    return sum(int(depth or 0) * int(count or 0) for depth, count in zip(depths, disks, strict=True)) or None


def _all_outstanding(test: Test) -> int | None:
    if test.workers:
        return _outstanding(test.workers)
    # A row for several workers does not tell how many targets each of them had.
    alone = reader.whole(test.row.get("# Workers")) in (1, None)
    return _outstanding([iometer_tables.WorkerRows("", test.row)]) if alone else None


def _asked(
    name: str, row: dict[str, str], test: Test, depth: int | None, specification: str | None = None
) -> shape.JobRequest:
    lines = test.specifications.get(specification or _specification(row, test) or "", [])
    clones = 1 if depth else None
    if not sum(line.percent for line in lines):
        return shape.JobRequest(job=name, clones=clones, iodepth=depth)
    # A line is drawn for each burst, so that its share of the I/Os follows from all of them.
    drawn = len(lines) == 1 or {line.burst for line in lines} == {1}
    answered = any(line.reply_bytes for line in lines)
    reads = {line.read_percent for line in lines}
    exact = not answered and (drawn or len(reads) == 1)
    sizes = _shares(lines, lambda line: line.percent) if drawn else {}
    sectors = reader.whole(row.get("Maximum Size"))
    return shape.JobRequest(
        job=name,
        clones=clones,
        iodepth=depth,
        read_percent=_mean(lines, lambda line: line.read_percent) if exact else None,
        random_percent=_mean(lines, lambda line: line.random_percent),
        block_bytes=sizes if not answered else {},
        read_block_bytes=_shares(lines, lambda line: line.percent * line.read_percent)
        if drawn and not answered
        else {},
        write_block_bytes=_shares(lines, lambda line: line.percent * (100 - line.read_percent))
        if drawn and not answered
        else {},
        size_bytes=sectors * SECTOR_BYTES if sectors else None,
        paced=any(line.delay_ms for line in lines),
    )


def _shares(
    lines: Sequence[SpecificationLine], weight: Callable[[SpecificationLine], float]
) -> dict[int, float]:
    """Return the share of each size, as often as a line is drawn."""
    whole = sum(weight(line) for line in lines)
    shares: dict[int, float] = {}
    for line in lines:
        if line.size_bytes and weight(line):
            shares[line.size_bytes] = shares.get(line.size_bytes, 0.0) + weight(line) / whole
    return shares


def _mean(lines: Sequence[SpecificationLine], of: Callable[[SpecificationLine], float]) -> float:
    return sum(line.percent * of(line) for line in lines) / sum(line.percent for line in lines)


def _printed(row: dict[str, str]) -> shape.Printed:
    iops = _column(row, "IOps")
    moved = _column(row, "MiBps (Binary)")
    return shape.Printed(iops=(iops,) if iops else (), bandwidth=(f"{moved} MiB/s",) if moved else ())
