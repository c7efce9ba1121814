"""The block that `validate=` knows of: one size for everything in a parameter file.

Knows which transfers and files there are. Knows no stamp.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.formats.vdbench.file_work import format_workload
from loadstone.formats.vdbench.values import Number, shown
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.formats.vdbench.entity_values import Sizes
    from loadstone.formats.vdbench.read import ParameterFile

SECTOR_BYTES: Final = 512


def of(file: ParameterFile) -> int:
    """Return the largest block that every transfer and every file is a multiple of.

    It is the same for all runs, so that each knows what those before it wrote. Raises InputError for
    sizes that have no whole sectors in common.
    """
    block = math.gcd(*(_of_files(file) if file.on_files else _of_storages(file)))
    if block % SECTOR_BYTES:
        raise make_error(
            InputError,
            "formats_vdbench.verify_block.not_sectors",
            where=file.general.verified_at,
            block=shown(block),
            sector=SECTOR_BYTES,
        )
    return block


def _of_storages(file: ParameterFile) -> Iterator[int]:
    for workload in (*file.workloads, *(() if file.workloads else (file.default_workload,))):
        yield from _transfers(workload.xfersize)
    yield from _looped(file, "xfersize")


def _of_files(file: ParameterFile) -> Iterator[int]:
    for workload in (*file.file_workloads, *(() if file.file_workloads else (file.default_file_workload,))):
        if workload.name != "format":
            yield from _transfers(workload.xfersize)
    if any(run.format != ("no",) for run in file.runs):
        yield from _transfers(format_workload(file).xfersize)
    for system in file.file_systems:
        yield from (size for size, _ in system.sizes)
    for word in ("xfersize", "sizes"):
        yield from _looped(file, word)


def _transfers(sizes: Sizes) -> Iterator[int]:
    yield from (size for size, _ in sizes.pairs)
    if sizes.step_bytes:
        yield sizes.step_bytes


def _looped(file: ParameterFile, word: str) -> Iterator[int]:
    for run in file.runs:
        loop = run.loops.get(word)
        for value in loop.values if loop is not None else ():
            if isinstance(value, Number):
                yield int(value.value)
