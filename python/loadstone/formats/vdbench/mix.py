"""Which I/Os a workload mixes, and how a job says it: sizes, directions, random and sequential.

Knows when shares, sizes and addresses depend on each other and must be rows. Knows no rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.errors import RefusedError
from loadstone.formats.vdbench.entity_values import SECTOR_BYTES
from loadstone.formats.vdbench.values import shown
from loadstone.messages import make_error
from loadstone.workload.addresses import UNIFORM
from loadstone.workload.block_sizes import BlockSizes, SizeShare, SizeTable, fixed
from loadstone.workload.rows import RowWork, WorkloadRow

if TYPE_CHECKING:
    from loadstone.formats.vdbench.address_range import AddressRange
    from loadstone.formats.vdbench.entity_values import Seek, Sizes
    from loadstone.formats.vdbench.expand import Work


@dataclass(frozen=True, slots=True)
class Mix:
    """Sizes, where the next I/O goes, and the percent of reads."""

    sizes: Sizes
    seek: Seek
    reads: float


def addresses(work: Work, mix: Mix, spot: AddressRange, *, verified: bool) -> dict[str, Any]:
    """Return which I/O goes where.

    Mixes whose parts depend on each other become rows: reads and writes of a sequential walk share
    one position, a random address is a multiple of its own size.
    """
    workload = work.workload
    one_way = mix.reads in (0.0, 100.0)
    random = mix.seek.percent == 100
    if workload.stride is not None:
        return _strided(work, mix)
    spread = (spot.reads or UNIFORM, spot.writes or UNIFORM, UNIFORM)
    uneven = bool(spot.reads or spot.writes)
    plain = (random and (uneven or verified or len(mix.sizes.pairs) == 1)) or (
        mix.seek.percent == 0 and one_way
    )
    if not plain or mix.reads != int(mix.reads):
        if verified or uneven:
            feature = "validate=" if verified else "an uneven spread of addresses"
            raise make_error(
                RefusedError,
                "formats_vdbench.mix.together",
                where=workload.at.get("seekpct", workload.where),
                what=feature,
            )
        return {"work": RowWork(rows=tuple(_rows(mix, work.storage.align)))}
    fields: dict[str, Any] = sized(mix.sizes)
    fields["mix.rw"] = _direction(mix)
    if fields["mix.rw"].endswith("rw"):
        fields["mix.read_percent"] = int(mix.reads)
    if random:
        fields["addresses.norandommap"] = True
        fields["addresses.random_distribution"] = spread
        if work.storage.align:
            fields["addresses.blockalign_bytes"] = (work.storage.align,) * 3
    return fields


def _direction(mix: Mix) -> str:
    direction = "read" if mix.reads == 100 else "write" if mix.reads == 0 else "rw"
    return f"rand{direction}" if mix.seek.percent == 100 else direction


def sized(sizes: Sizes) -> dict[str, Any]:
    """Return the fields of a job with these sizes, whatever the direction."""
    entries = _each(sizes)
    if len(entries) == 1:
        return {"sizes.bs": fixed(entries[0][0])}
    table: BlockSizes = SizeTable(entries=tuple(SizeShare(size, share) for size, share in entries))
    return {"sizes.bs": (table,) * 3}


def _each(sizes: Sizes) -> list[tuple[int, float]]:
    """Return every size with its percent."""
    if not sizes.step_bytes:
        return list(sizes.pairs)
    steps = range(sizes.smallest_bytes, sizes.largest_bytes + 1, sizes.step_bytes)
    return [(size, 100 / len(steps)) for size in steps]


def _rows(mix: Mix, align_bytes: int) -> tuple[WorkloadRow, ...]:
    """Return rows; a share with a fraction is two rows, one with all and one with none of it."""
    rows = []
    for size, percent in _each(mix.sizes):
        for reads, read_part in _parts(mix.reads):
            for random, random_part in _parts(mix.seek.percent):
                part = percent * read_part * random_part
                if part:
                    rows.append(
                        WorkloadRow(
                            percent=part,
                            bytes=size,
                            read_percent=reads,
                            random_percent=random,
                            align_bytes=align_bytes or size if random else SECTOR_BYTES,
                        )
                    )
    return tuple(rows)


def _parts(percent: float) -> list[tuple[int, float]]:
    """Return a percentage as whole ones and their parts of the I/Os."""
    if percent == int(percent):
        return [(int(percent), 1.0)]
    return [(100, percent / 100), (0, 1 - percent / 100)]


def _strided(work: Work, mix: Mix) -> dict[str, Any]:
    """Return a walk that skips bytes each time: a number of them drawn between two, in whole transfers."""
    workload = work.workload
    low, high = workload.stride or (0, 0)
    where = workload.at["stride"]
    if mix.seek.percent != 100 or mix.reads not in (0.0, 100.0):
        raise make_error(RefusedError, "formats_vdbench.mix.stride", where=where)
    return {
        **sized(mix.sizes),
        "mix.rw": "read" if mix.reads == 100 else "write",
        "addresses.stride_bytes": low,
        "addresses.stride_spread_bytes": high - low,
    }


def shown_sizes(sizes: Sizes) -> str:
    """Write transfer sizes as a parameter file does."""
    if sizes.step_bytes:
        low, high = sizes.smallest_bytes, sizes.largest_bytes
        return f"({shown(low)},{shown(high)},{shown(sizes.step_bytes)})"
    if len(sizes.pairs) == 1:
        return shown(sizes.pairs[0][0])
    return "(" + ",".join(f"{shown(size)},{share:g}" for size, share in sizes.pairs) + ")"
