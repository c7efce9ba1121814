"""Iometer's result file (CSV) as Cases: one for each test.

Knows the groups of lines and finds columns by their names, which changed from 2006 to 1.1. Rates
and times are in the row for all managers; what was asked for is in the access specifications, and
outstanding I/Os are per worker and target. Judges nothing.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone.audit import case as shape
from loadstone.audit.foreign import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

RECOGNISED: Final = re.compile(rb"(?m)^(?:\xef\xbb\xbf)?'Target Type,")
MS: Final = 1e6
MIB: Final = 1 << 20
SECTOR_BYTES: Final = 512
MIN_COLUMNS: Final = 6


def recognises(_: Path, head: bytes) -> bool:
    """Tell a result file by the keys that Iometer starts lines with."""
    return RECOGNISED.search(head) is not None


@dataclass(slots=True)
class _Specification:
    """Lines of an access specification: size, share, reads, random, delay, burst, align, reply."""

    name: str
    rows: list[tuple[float, ...]] = field(default_factory=list)


@dataclass(slots=True)
class _Test:
    """One group of lines: a test and its rows."""

    description: str = ""
    version: str = ""
    specifications: dict[str, _Specification] = field(default_factory=dict)
    last: _Specification | None = None
    header: list[str] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)


def read(path: Path) -> reader.Results:
    """Read a result file. Raises InputError for a row that does not fit its header."""
    tests = [test for test in _tests(path) if test.rows]
    if not tests:
        raise reader.wrong(path, "has no results", hint="Iometer writes them when a test ends")
    cases = [case for test in tests for case in _cases(test)]
    if not cases:
        raise reader.wrong(path, "has no row of type ALL", hint="record results of all targets")
    version = next((test.version for test in tests if test.version), "")
    return reader.Results(f"Iometer {version[:32]}".strip(), reader.with_siblings(cases))


def _tests(path: Path) -> list[_Test]:
    """Read the groups of lines; a key starts with a quote and its values follow on the next lines."""
    try:
        lines = list(csv.reader(reader.text(path).splitlines()))
    except csv.Error as error:
        raise reader.wrong(path, f"is not CSV: {error}") from error
    tests = [_Test()]
    key = ""
    for number, row in enumerate(lines, start=1):
        if row and row[0].lstrip().startswith("'"):
            key = row[0].strip().strip("'").lower()
            if key == "target type":
                tests[-1].header = [name.strip().lstrip("'") for name in row]
            elif key == "test type" and tests[-1].rows:
                tests.append(_Test())
        elif any(cell.strip() for cell in row):
            _values(path, tests[-1], key, row, number)
    return tests


def _values(path: Path, test: _Test, key: str, row: Sequence[str], number: int) -> None:
    """Keep a line of values under the key before it."""
    if key == "test type":
        test.description = ",".join(row[1:]).strip()
    elif key == "version":
        test.version = row[0].strip()
    elif key == "access specification name":
        test.specifications[row[0].strip()] = test.last = _Specification(row[0].strip())
    elif key == "size" and test.last is not None:
        test.last.rows.append(_numbers(path, row, number))
    elif key == "target type":
        # Rows of older versions may end before the last columns of their header.
        if len(row) < MIN_COLUMNS:
            raise reader.wrong(path, f"found {len(row)} columns, expected {len(test.header)}", number)
        test.rows.append({name: cell.strip() for name, cell in zip(test.header, row, strict=False)})


def _numbers(path: Path, row: Sequence[str], number: int) -> tuple[float, ...]:
    values = [reader.number(cell) for cell in row if cell.strip()]
    known = [value for value in values if value is not None]
    if len(known) < 4 or len(known) < len(values):
        raise reader.wrong(path, f"found {','.join(row)[:60]!r}, expected size, share, reads, random", number)
    return tuple(known)


def _cases(test: _Test) -> Iterator[shape.Case]:
    """Yield a case for each row of all managers, with the workers and targets that follow it."""
    starts = [index for index, row in enumerate(test.rows) if row.get("Target Type") == "ALL"]
    for at, start in enumerate(starts):
        end = starts[at + 1] if at + 1 < len(starts) else len(test.rows)
        yield _case(test, test.rows[start], test.rows[start + 1 : end])


def _case(test: _Test, row: dict[str, str], parts: Sequence[dict[str, str]]) -> shape.Case:
    names = [part.get("Access Specification Name", "") for part in (row, *parts)]
    specification = next((test.specifications[name] for name in names if name in test.specifications), None)
    name = specification.name if specification else test.description or row.get("Target Name", "test")
    depth = _outstanding(row, parts)
    ops = {op: found for op in _OPS if (found := _measured(row, op)) is not None}
    errors = reader.whole(row.get("Errors"))
    title = f"{test.description}: {name}" if test.description and name != test.description else name
    return shape.Case(
        name=f"{title}, {depth} outstanding" if depth else title,
        source="iometer",
        jobs=(_asked(name, row, specification, depth),),
        total=_total(row, ops, errors),
        ops=ops,
        targets=tuple(
            shape.Target(path)
            for path in dict.fromkeys(
                part["Target Name"]
                for part in parts
                if part.get("Target Type") == "DISK" and "Target Name" in part
            )
        ),
        problems=() if errors == 0 else None,
        host_cpu_percent=reader.number(row.get("% CPU Utilization")),
        extra={"printed": _printed(row)},
    )


_OPS: Final[tuple[shape.Op, ...]] = ("read", "write")
_NAMES: Final = {"read": "Read", "write": "Write"}


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


def _measured(row: dict[str, str], op: shape.Op) -> shape.Measured | None:
    what = _NAMES[op]
    iops = _column(row, f"{what} IOps")
    if not iops:
        return None
    count = _column(row, f"{what} I/Os")
    moved = _column(row, "Bytes Read" if op == "read" else "Bytes Written")
    return shape.Measured(
        operations=None if count is None else int(count),
        bytes=None if moved is None else int(moved),
        errors=reader.whole(row.get(f"{what} Errors")),
        iops=reader.figure(iops),
        bandwidth=reader.figure(_bandwidth(row, what)),
        latency=_latency(
            _column(row, f"Average {what} Response Time"),
            _column(row, f"Maximum {what} Response Time"),
            count,
        ),
    )


def _latency(mean_ms: float | None, max_ms: float | None, count: float | None) -> shape.LatencyFigures | None:
    if not mean_ms:
        return None
    return shape.LatencyFigures(
        mean_ns=mean_ms * MS,
        kind="lat",
        count=None if count is None else int(count),
        max_ns=None if not max_ms else max_ms * MS,
    )


def _total(row: dict[str, str], ops: dict[shape.Op, shape.Measured], errors: int | None) -> shape.Measured:
    counts = [one.operations for one in ops.values()]
    moved = [one.bytes for one in ops.values()]
    whole = sum(one for one in counts if one is not None) if counts and None not in counts else None
    return shape.Measured(
        operations=whole,
        bytes=sum(one for one in moved if one is not None) if moved and None not in moved else None,
        errors=errors,
        iops=reader.figure(_column(row, "IOps")),
        bandwidth=reader.figure(_bandwidth(row, "")),
        latency=_latency(_column(row, "Average Response Time"), _column(row, "Maximum Response Time"), whole),
    )


def _outstanding(row: dict[str, str], parts: Sequence[dict[str, str]]) -> int | None:
    """Return the outstanding I/Os of all workers: queue depth times targets, for each of them."""
    workers = [part for part in parts if part.get("Target Type") == "WORKER"] or [row]
    depths = [reader.whole(part.get("Queue Depth")) for part in workers]
    disks = [reader.whole(part.get("# Disks")) for part in workers]
    # A row for several workers does not tell how many targets each of them had.
    alone = len(workers) > 1 or reader.whole(row.get("# Workers")) in (1, None) or workers[0] is not row
    if not alone or None in depths or None in disks:
        return None
    return sum((depth or 0) * (count or 0) for depth, count in zip(depths, disks, strict=True)) or None


def _asked(
    name: str, row: dict[str, str], specification: _Specification | None, depth: int | None
) -> shape.Asked:
    lines = specification.rows if specification else []
    whole = sum(line[1] for line in lines)
    if not lines or not whole:
        return shape.Asked(job=name, clones=1 if depth else None, iodepth=depth)
    sizes: dict[int, float] = {}
    for line in lines:
        sizes[int(line[0])] = sizes.get(int(line[0]), 0.0) + line[1] / whole
    reads = sum(line[1] * line[2] for line in lines) / whole
    paced = any(line[4] for line in lines if len(line) > 4)
    sectors = reader.whole(row.get("Maximum Size"))
    return shape.Asked(
        job=name,
        clones=1 if depth else None,
        iodepth=depth,
        read_percent=reads,
        random_percent=sum(line[1] * line[3] for line in lines) / whole,
        block_bytes={size: share for size, share in sizes.items() if size},
        size_bytes=sectors * SECTOR_BYTES if sectors else None,
        paced=paced,
    )


def _printed(row: dict[str, str]) -> dict[str, tuple[float | str, ...]]:
    iops = _column(row, "IOps")
    moved = _column(row, "MiBps (Binary)")
    return {
        "iops": (iops,) if iops else (),
        "bandwidth": (f"{moved} MiB/s",) if moved else (),
    }
