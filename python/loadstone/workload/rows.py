"""Kinds of I/O whose size, direction and address depend on each other. Knows no file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loadstone.frozen_model import FrozenModel
from loadstone.workload.block_sizes import BlockSizes, FixedSize, SizesByDirection, SizeShare, SizeTable


class WorkloadRow(FrozenModel):
    """One kind of I/O among several: its part of them, and what is its own."""

    percent: Annotated[float, Field(gt=0)]
    bytes: Annotated[int, Field(gt=0)]
    read_percent: Annotated[int, Field(ge=0, le=100)]
    random_percent: Annotated[int, Field(ge=0, le=100)]
    """Others go on where the I/O before them ended, of whichever row it was."""
    align_bytes: Annotated[int, Field(gt=0)] | None = None
    """None: what the target can do."""
    burst: Annotated[int, Field(gt=0)] = 1
    """I/Os that follow each other when it is the row's turn."""


class RowWork(FrozenModel):
    """I/Os of several kinds, drawn by their shares."""

    kind: Literal["rows"] = "rows"
    rows: Annotated[tuple[WorkloadRow, ...], Field(min_length=1)]

    @property
    def blocks(self) -> None:
        """Rows say their reads and writes themselves."""
        return

    @property
    def shares(self) -> tuple[int, int, int]:
        """Percent of reads, writes and trims, rounded so that what happens at all is not 0."""
        weights = sum(row.percent for row in self.rows)
        reads = sum(row.percent * row.read_percent for row in self.rows) / weights
        whole = round(reads) if reads in (0.0, 100.0) else min(max(round(reads), 1), 99)
        return whole, 100 - whole, 0

    @property
    def is_random(self) -> bool:
        """Whether some addresses are random."""
        return any(row.random_percent for row in self.rows)

    @property
    def trims_then_writes(self) -> bool:
        """Rows trim nothing."""
        return False

    @property
    def block_sizes(self) -> SizesByDirection:
        """Block sizes of reads, writes and trims; where none is, the smallest of all."""
        reads = [(row.bytes, row.percent * row.read_percent) for row in self.rows]
        writes = [(row.bytes, row.percent * (100 - row.read_percent)) for row in self.rows]
        smallest = FixedSize(bytes=min(row.bytes for row in self.rows))
        return _table(reads) or smallest, _table(writes) or smallest, smallest


def _table(weighted: list[tuple[int, float]]) -> BlockSizes | None:
    """Sizes with their shares in percent; None when there are none."""
    by_size: dict[int, float] = {}
    for size_bytes, weight in weighted:
        if weight:
            by_size[size_bytes] = by_size.get(size_bytes, 0.0) + weight
    whole = sum(by_size.values())
    if len(by_size) < 2:
        return FixedSize(bytes=next(iter(by_size))) if by_size else None
    entries = tuple(SizeShare(size_bytes, 100 * weight / whole) for size_bytes, weight in by_size.items())
    return SizeTable(entries=entries)
