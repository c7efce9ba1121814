"""What the monitors of a run say about its block devices, in fio's terms.

Knows the columns `block.<device>.<what>` of a bundle's host table. `loadstone fio` counts
by itself, to the end of the run; this is for runs that are over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.report.fio.stats import DiskUse

if TYPE_CHECKING:
    import polars as pl

_PREFIX: Final = "block."
_SECTOR_BYTES: Final = 512
_NS_PER_MS: Final = 1_000_000


def disks(host: pl.DataFrame) -> list[DiskUse]:
    """Add up the devices' rows; a device without traffic counters is left out."""
    names = sorted({c.split(".")[1] for c in host.columns if c.startswith(_PREFIX) and c.endswith(".reads")})
    return [_use(host, name) for name in names]


def _use(host: pl.DataFrame, name: str) -> DiskUse:
    def total(what: str) -> int:
        column = f"{_PREFIX}{name}.{what}"
        return int(host[column].sum() or 0) if column in host.columns else 0

    return DiskUse(
        name=name,
        read_ios=total("reads"),
        write_ios=total("writes"),
        read_merges=total("read_merges"),
        write_merges=total("write_merges"),
        read_sectors=total("read_bytes") // _SECTOR_BYTES,
        write_sectors=total("write_bytes") // _SECTOR_BYTES,
        read_ticks_ms=total("read_time_ns") // _NS_PER_MS,
        write_ticks_ms=total("write_time_ns") // _NS_PER_MS,
        in_queue_ms=total("queue_time_ns") // _NS_PER_MS,
        busy_ms=total("busy_ns") // _NS_PER_MS,
        elapsed_ms=int(host["dt_ns"].sum() or 0) // _NS_PER_MS,
    )
