"""Joined SDs (`concatenatesds=yes`): those of a workload are one long SD, and its threads are the workload's.

Knows what vdbench joins, and what is not done on it. Random addresses go to each SD as often as it has
room, which is the same for all; a walk finishes one SD before the next. The first block of an SD is
never touched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.errors import InputError, RefusedError
from loadstone.messages import make_error
from loadstone.workload.placement import Amount, FileService, TargetName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from loadstone.errors import Where
    from loadstone.formats.vdbench.address_range import AddressRange
    from loadstone.formats.vdbench.entity_values import Seek
    from loadstone.formats.vdbench.loops import Turn
    from loadstone.formats.vdbench.storage import Storage
    from loadstone.formats.vdbench.workload import WorkloadDefinition


def join(workload: WorkloadDefinition, storages: Sequence[Storage], turn: Turn, number: int) -> Storage:
    """Return the SDs of a workload as one, under the name vdbench gives it.

    Raises InputError for a workload without threads, RefusedError for SDs of different sizes.
    """
    where = workload.at.get("sds", workload.where)
    threads = workload.threads or int(turn.number("threads") or 0)
    if not threads:
        raise make_error(InputError, "formats_vdbench.joined.no_threads", where=where, workload=workload.name)
    sizes = {storage.size for storage in storages}
    if len(sizes) > 1 or None in sizes:
        raise make_error(RefusedError, "formats_vdbench.joined.sizes", where=where, workload=workload.name)
    _check(workload, storages, where)
    return replace(storages[0], name=f"concat#{number:02d}", threads=threads, joined=tuple(storages), align=0)


def _check(workload: WorkloadDefinition, storages: Sequence[Storage], where: Where) -> None:
    """Refuse what vdbench does not do on joined SDs, or Loadstone."""
    keywords = {
        "rhpct=": workload.rhpct,
        "whpct=": workload.whpct,
        "hotband=": workload.hotband,
        "range=": workload.range or any(storage.range for storage in storages),
        "stride=": workload.stride,
        "streams=": workload.streams,
        "offset=": any(storage.offset for storage in storages),
        "align=": any(storage.align for storage in storages),
    }
    for word, setting in keywords.items():
        if setting:
            raise make_error(
                RefusedError,
                "formats_vdbench.joined.not_supported",
                where=workload.at.get(word[:-1], where),
                word=word,
            )


def fields(storage: Storage, spot: AddressRange, seek: Seek, where: Where) -> dict[str, Any]:
    """Return the fields of a job that goes over joined SDs; `spot` is that of one of them."""
    if 0 < seek.percent < 100:
        raise make_error(
            RefusedError, "formats_vdbench.joined.seekpct", where=where, percent=f"{seek.percent:g}"
        )
    luns = [one.lun for one in storage.joined]
    size = spot.size.bytes if spot.size is not None and spot.size.bytes else 0
    return {
        "placement.targets": tuple(TargetName(path=lun, written=lun) for lun in luns),
        "placement.size": Amount(bytes=size * len(luns)),
        "placement.file_service": FileService(kind="sequential" if seek.percent == 0 else "random"),
    }
