"""Which bytes of an SD a workload uses, and how often each part of them.

Knows ranges, hit areas, hot bands, crowding at low addresses, and that block zero of a raw device
is never touched. Where the size of an SD is not stated, shares of it stay shares.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError
from loadstone.formats.vdbench.entity_values import LARGEST_PERCENT
from loadstone.messages import make_error
from loadstone.workload.addresses import Distribution
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from loadstone.errors import Where
    from loadstone.formats.vdbench.entity_values import Seek
    from loadstone.formats.vdbench.storage import Storage
    from loadstone.formats.vdbench.workload import WorkloadDefinition

CROWDED_ZONES: Final = 50
"""Zones that stand for a smooth crowding at low addresses: 2 % of the range each."""
_HOT: Final = (
    (0, 0.0),
    (16, 0.087217),
    (32, 0.10101),
    (64, 0.132206),
    (128, 0.159946),
    (256, 0.201713),
    (512, 0.262602),
    (1024, 0.32645),
    (2048, 0.366902),
    (4096, 0.386175),
    (8192, 0.436941),
    (16384, 0.482631),
    (32768, 0.523752),
    (65536, 0.56076),
    (131072, 0.594068),
    (262144, 0.624045),
    (524288, 0.651024),
    (1048576, 0.675305),
    (2097152, 0.697159),
    (4194304, 0.716827),
    (8388608, 0.734528),
    (16777216, 0.750459),
    (33554432, 0.764797),
    (67108864, 0.777701),
    (134217728, 0.789314),
    (268435456, 0.799767),
    (536870912, 0.809174),
    (1073741824, 0.81764),
    (10737418240, 1.0),
)
"""Cumulated share of the accesses of a hot band below each address, in thousands of bytes.

These are the numbers vdbench goes by. Between two of them the share grows evenly, and addresses
past the end of the band begin again at its start.
"""
_HOT_UNIT_BYTES: Final = 1000
_HOT_SHIFT: Final = 100
"""Writes to a hot band are moved up by one of so many parts of it."""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """Bytes `offset` on, `size` of them (None: to the end), and how reads and writes are spread."""

    offset: Amount | None = None
    size: Amount | None = None
    reads: Distribution | None = None
    writes: Distribution | None = None


@dataclass(frozen=True, slots=True)
class Hits:
    """Percent of reads and writes that go to the hit area, and its bytes."""

    reads: float
    writes: float
    area_bytes: int

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes)


@dataclass(frozen=True, slots=True)
class Access:
    """A workload on an SD. `block_bytes`: its largest transfer size."""

    workload: WorkloadDefinition
    storage: Storage
    seek: Seek
    hits: Hits
    block_bytes: int


def place(access: Access) -> AddressRange:
    """Return where a workload goes on an SD.

    Raises InputError for a range without room for two blocks, RefusedError for what needs the
    size of the SD where it is not stated, and for ranges that wrap around the end.
    """
    storage, block_bytes = access.storage, access.block_bytes
    where = _where(access.workload, storage)
    low, high = access.workload.hotband or access.workload.range or storage.range or (0.0, 100.0)
    if 100 < high <= LARGEST_PERCENT and low <= 100:
        raise make_error(
            RefusedError, "formats_vdbench.address_range.wraps", where=where, low=f"{low:g}", high=f"{high:g}"
        )
    if storage.size is None:
        return _shares(access, (low, high), where)
    begin = low if low > 100 else storage.size * low / 100
    end = high if high > LARGEST_PERCENT else storage.size * high / 100
    if end > storage.size:
        raise make_error(
            InputError,
            "formats_vdbench.address_range.beyond_sd",
            where=where,
            end=f"{end:.0f}",
            size=storage.size,
        )
    if begin < block_bytes and (storage.is_raw or storage.joined):
        begin = block_bytes
    first = int(begin) // block_bytes * block_bytes + storage.offset
    length = int(end) // block_bytes * block_bytes + storage.offset - first
    if storage.offset and first + length > storage.size:
        length -= block_bytes
    if length < 2 * block_bytes:
        raise make_error(
            InputError,
            "formats_vdbench.address_range.no_room",
            where=where,
            length=max(length, 0),
            block=block_bytes,
        )
    return AddressRange(Amount(bytes=first), Amount(bytes=length), *_spread(access, length, where))


def _where(workload: WorkloadDefinition, storage: Storage) -> Where:
    for entity, word in ((workload, "hotband"), (workload, "range"), (storage, "range"), (storage, "size")):
        if word in entity.at:
            return entity.at[word]
    return storage.where


def _shares(access: Access, span: tuple[float, float], where: Where) -> AddressRange:
    """Return the place on an SD whose size is not stated."""
    storage, block_bytes, (low, high) = access.storage, access.block_bytes, span
    if access.hits or access.workload.hotband is not None:
        keyword = "hotband=" if access.workload.hotband is not None else "a hit percentage"
        raise make_error(
            RefusedError,
            "formats_vdbench.address_range.size_unknown",
            where=where,
            what=keyword,
            storage=storage.name,
        )
    reads, writes = _spread(access, 0, where)
    if high > LARGEST_PERCENT:
        begin = max(int(low), block_bytes if storage.is_raw else 0) // block_bytes * block_bytes
        end = int(high) // block_bytes * block_bytes
        return AddressRange(Amount(bytes=begin + storage.offset), Amount(bytes=end - begin), reads, writes)
    size = None if high - low == 100 else Amount(percent=high - low)
    if low:
        if storage.offset:
            raise make_error(RefusedError, "formats_vdbench.address_range.percent_of_unknown", where=where)
        return AddressRange(Amount(percent=low), size, reads, writes)
    first = storage.offset + (block_bytes if storage.is_raw else 0)
    return AddressRange(Amount(bytes=first) if first else None, size, reads, writes)


def _spread(access: Access, length: int, where: Where) -> tuple[Distribution | None, Distribution | None]:
    """Return how reads and writes are spread over a range of so many bytes; None: evenly."""
    hits, block_bytes = access.hits, access.block_bytes
    # A walk goes through a hot band as through any range, and has no random places to crowd.
    drawn = access.seek.percent > 0
    hot = drawn and access.workload.hotband is not None
    wanted = {"hotband=": hot, "rhpct= or whpct=": bool(hits), "seekpct=poisson": access.seek.midpoint > 0}
    keywords = [word for word, is_wanted in wanted.items() if is_wanted]
    if not keywords:
        return None, None
    if len(keywords) > 1 or access.seek.percent != 100:
        beside = keywords[1] if len(keywords) > 1 else f"seekpct={access.seek.percent:g}"
        at = access.workload.at
        where = at.get("rhpct") or at.get("whpct") or at.get("hotband") or at.get("seekpct") or where
        raise make_error(
            RefusedError,
            "formats_vdbench.address_range.together",
            where=where,
            asked=keywords[0],
            beside=beside,
        )
    if hot:
        return _hot(length, 0, block_bytes), _hot(length, length // _HOT_SHIFT, block_bytes)
    if hits:
        area_bytes = _area(hits, length, block_bytes, where)
        return _two(hits.reads, area_bytes, length), _two(hits.writes, area_bytes, length)
    crowded = _crowded(access.seek.midpoint)
    return crowded, crowded


def _area(hits: Hits, length: int, block_bytes: int, where: Where) -> int:
    """Return the bytes of the hit area in whole blocks; raises InputError without room for two."""
    area_bytes = hits.area_bytes // block_bytes * block_bytes
    if area_bytes < 2 * block_bytes or length - area_bytes < 2 * block_bytes:
        raise make_error(
            InputError,
            "formats_vdbench.address_range.hit_area",
            where=where,
            area=hits.area_bytes,
            length=length - area_bytes,
            block=block_bytes,
        )
    return area_bytes


def _two(percent: float, area_bytes: int, length: int) -> Distribution:
    zones = ((percent, float(area_bytes)), (100 - percent, float(length - area_bytes)))
    return Distribution(kind="zoned_abs", zones=zones)


def _crowded(midpoint: float) -> Distribution:
    """Return zones for exponentially falling access, its mean at 1/midpoint of the range."""

    def below(share: float) -> float:
        return (1 - math.exp(-midpoint * share)) / (1 - math.exp(-midpoint))

    edges = [below(zone / CROWDED_ZONES) for zone in range(CROWDED_ZONES + 1)]
    size = 100 / CROWDED_ZONES
    zones = tuple((100 * (high - low), size) for low, high in itertools.pairwise(edges))
    return Distribution(kind="zoned", zones=zones)


def _hot(length: int, shift: int, block_bytes: int) -> Distribution:
    """Return the zones of a hot band of so many bytes, moved up by `shift` bytes."""
    edges = sorted(
        {0, length, shift % length}
        | {(at * _HOT_UNIT_BYTES + shift) % length for at, _ in _HOT if at * _HOT_UNIT_BYTES < length}
    )
    block_edges = [0]
    for edge in (edge // block_bytes * block_bytes for edge in edges[1:-1]):
        if edge - block_edges[-1] >= block_bytes and length - edge >= block_bytes:
            block_edges.append(edge)
    block_edges.append(length)
    zones = tuple(
        (100 * _hot_share(low, high, length, shift), float(high - low))
        for low, high in itertools.pairwise(block_edges)
    )
    return Distribution(kind="zoned_abs", zones=zones)


def _hot_share(low: int, high: int, length: int, shift: int) -> float:
    """Return the share of accesses between two addresses of a band, all rounds added."""
    total = 0.0
    for (begin, before), (end, after) in itertools.pairwise(_HOT):
        first, last = begin * _HOT_UNIT_BYTES + shift, end * _HOT_UNIT_BYTES + shift
        covered = _covered(last, low, high, length) - _covered(first, low, high, length)
        total += (after - before) * covered / (last - first)
    return total


def _covered(position: int, low: int, high: int, length: int) -> int:
    """Return how much of all addresses below a position lies between two, taken modulo a length."""
    rounds, rest = divmod(position, length)
    return rounds * (high - low) + min(max(rest - low, 0), high - low)
