"""What fio counted at the disks under its files, as the traffic of a Case.

Knows the entries of its JSON and the lines of its text. Sectors are counted by fio 3.36 and later; without
them I/Os at random places, which nothing joins but a merge that is counted, tell the bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from loadstone.audit import case as shape
from loadstone.audit.foreign import reader

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTOR_BYTES: Final = 512
OPS: Final[tuple[shape.Op, ...]] = ("read", "write")
UNSEEN_S: Final = 0.3
"""fio looks at its disks four times a second, and no more at the end: what they did then is not counted."""
LEAST_S: Final = 10 * UNSEEN_S
"""In less time too much of what is outstanding at a disk is not counted."""
MOST_BYTES: Final = 16 << 20
"""No disk takes more in one I/O: Linux makes them 1.25 MiB by default, and some take 4 MiB."""
NEARLY_NONE: Final = 0.1
"""A disk that cannot have moved even this part of what was asked for had not done it."""
PAST_DISKS: Final = (
    *("rbd", "rados", "nbd", "nfs", "dfs", "gfapi", "gfapi_async", "libhdfs", "http", "libiscsi", "libblkio"),
    *(
        "ime_psync",
        "ime_psyncv",
        "ime_aio",
        "io_uring_cmd",
        "sg",
        "xnvme",
        "libpmem",
        "dev-dax",
        "mtd",
        "null",
    ),
)
"""Engines whose I/Os no disk of this host counts: what its disks did is others' work."""
OWN: Final = 0.01
"""So few of the I/Os are a file system's own, in a direction that nobody asked for."""
LINE: Final = re.compile(
    r"^\s+(?P<name>\S+): ios=(?P<ios>\d{1,18}/\d{1,18})(?:, sectors=(?P<sectors>\d{1,18}/\d{1,18}))?, "
    r"merge=(?P<merges>\d{1,18}/\d{1,18}), "
    r"(?:ticks=(?P<ticks>\d{1,18}/\d{1,18}),)?(?P<rest>.*)$"
)


@dataclass(frozen=True, slots=True)
class DiskCounts:
    """A disk over the time of a run of fio, reads and writes."""

    name: str
    ios: tuple[float, float]
    merges: tuple[float, float]
    sectors: tuple[float, float] | None
    is_made_of_others: bool
    """It stands above other disks, which are told besides."""
    service_ms: float | None = None
    """Time of its reads and writes, all of them added."""


def of_line(line: str) -> DiskCounts | None:
    """Read a line below `Disk stats`; None for any other."""
    match = LINE.match(line)
    if match is None:
        return None
    ios, merges, sectors, ticks = (
        None if text is None else (float(text.partition("/")[0]), float(text.partition("/")[2]))
        for text in match.group("ios", "merges", "sectors", "ticks")
    )
    if ios is None or merges is None:
        return None
    service_ms = None if ticks is None else sum(ticks)
    return DiskCounts(match["name"], ios, merges, sectors, "aggrios=" in match["rest"], service_ms)


def of_json(told: Any) -> list[DiskCounts]:
    """Read `disk_util`; entries without numbers of I/Os are passed over."""
    counts = []
    for one in told if isinstance(told, list) else []:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            continue
        ios, merges, sectors, ticks = (_pair(one, word) for word in ("ios", "merges", "sectors", "ticks"))
        if ios is not None:
            above = "aggr_read_ios" in one
            service_ms = None if ticks is None else sum(ticks)
            counts.append(DiskCounts(one["name"], ios, merges or (0.0, 0.0), sectors, above, service_ms))
    return counts


def _pair(told: dict[str, Any], word: str) -> tuple[float, float] | None:
    read, write = (reader.number(told.get(f"{op}_{word}")) for op in OPS)
    return None if read is None or write is None else (read, write)


def with_traffic(case: shape.Case, disks: Sequence[DiskCounts]) -> shape.Case:
    """Add what the disks under the files moved, where it is known of both directions.

    fio counts it from the start, ramp included, and all else from the end of the ramp: with one, what of it
    belongs to the results is not known.
    """
    ramps = [job.ramp_s for job in case.jobs]
    if any(ramps) or any(job.backend in PAST_DISKS for job in case.jobs):
        return case
    top = [disk for disk in disks if disk.is_made_of_others] or list(disks)
    if not case.seconds or case.seconds <= UNSEEN_S or not top:
        return case  # Nothing was done whose part of it could be told.
    requested = {op: _asked(case, op) for op in OPS}
    counted = {op: one for op in OPS if (one := _moved(case, op, requested[op], top)) is not None}
    if len(counted) < len(OPS):
        return case
    if None in ramps and _bytes(counted) > (1 + OWN) * _bytes(requested):
        return case  # The text of fio does not tell a ramp, which this may come from.
    unseen = UNSEEN_S / case.seconds
    moved = {op: _with_unseen(one, requested[op], unseen) for op, one in counted.items()}
    traffic = shape.CarrierTraffic(
        carriers=tuple(disk.name for disk in top),
        seconds=case.seconds,
        asked=requested,
        moved=moved,
        inflight=_inflight(top, case.seconds, _ios(moved) / max(1.0, _ios(counted))),
    )
    return replace(case, traffic=traffic)


def _ios(moved: dict[shape.Op, shape.Moved]) -> float:
    return sum(one.ios for one in moved.values())


def _bytes(moved: dict[shape.Op, shape.Moved]) -> float:
    return sum(one.bytes for one in moved.values())


def _inflight(disks: Sequence[DiskCounts], seconds: float, more: float) -> float | None:
    """Return how many I/Os the disks had on average, by their times; `more`: of one that was counted."""
    if seconds < LEAST_S:
        return None
    known = [disk.service_ms for disk in disks if disk.service_ms is not None]
    return more * sum(known) / 1e3 / seconds if len(known) == len(disks) else None


def _asked(case: shape.Case, op: shape.Op) -> shape.Moved:
    done = case.ops.get(op, shape.OpMeasurement())
    return shape.Moved(float(done.operations or 0), float(done.bytes or 0))


def _with_unseen(counted: shape.Moved, asked: shape.Moved, share: float) -> shape.Moved:
    """Add the part of what was asked for that may have gone uncounted; nothing beyond it."""
    missing = max(0.0, min(asked.bytes - counted.bytes, share * asked.bytes))
    if not missing or not counted.ios:
        return counted
    return shape.Moved(counted.ios * (1 + missing / counted.bytes), counted.bytes + missing)


def _moved(
    case: shape.Case, op: shape.Op, asked: shape.Moved, disks: Sequence[DiskCounts]
) -> shape.Moved | None:
    """Return what the disks moved in a direction; None where neither sectors nor the I/Os tell the bytes."""
    at = OPS.index(op)
    ios = sum(disk.ios[at] for disk in disks)
    sectors = [disk.sectors[at] for disk in disks if disk.sectors is not None]
    if len(sectors) == len(disks):
        return shape.Moved(ios, SECTOR_BYTES * sum(sectors))
    if not asked.ios or not asked.bytes:
        # Of reads that memory answered the disk has next to none: what was asked for counts, too.
        of_all = max(
            sum(sum(disk.ios) for disk in disks), sum(one.operations or 0 for one in case.ops.values())
        )
        return shape.Moved(0.0, 0.0) if ios <= OWN * of_all else None
    # Cached writes go out in runs of pages, and reads in a row are read ahead: their I/Os tell no bytes.
    scattered = all(job.random_percent == 100 and len(job.block_bytes) == 1 for job in case.jobs)
    if ios and not (scattered and (op == "read" or all(job.direct for job in case.jobs))):
        most_bytes = ios * MOST_BYTES
        return shape.Moved(ios, most_bytes) if most_bytes < NEARLY_NONE * asked.bytes else None
    reached = ios + sum(disk.merges[at] for disk in disks)
    return shape.Moved(ios, min(asked.bytes, reached * asked.bytes / asked.ios))
