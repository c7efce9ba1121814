"""Block sizes that were asked for. Units stand last in the names. Knows no file and no default."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from loadstone.frozen_model import FrozenModel

Bytes = Annotated[int, Field(gt=0)]


class FixedSize(FrozenModel):
    """Every I/O has this size."""

    type: Literal["fixed"] = "fixed"
    bytes: Bytes


class SizeRange(FrozenModel):
    """Sizes between two, both included."""

    type: Literal["range"] = "range"
    min_bytes: Bytes
    max_bytes: Bytes


class SizeShare(NamedTuple):
    """One size and its share of the I/Os."""

    bytes: Bytes
    percent: float


class SizeTable(FrozenModel):
    """Sizes with shares."""

    type: Literal["table"] = "table"
    entries: tuple[SizeShare, ...]


BlockSizes = Annotated[FixedSize | SizeRange | SizeTable, Field(discriminator="type")]

SizesByDirection = tuple[BlockSizes, BlockSizes, BlockSizes]
"""For reads, writes and trims."""


class SizeRequests(FrozenModel):
    """The block sizes of reads, writes and trims."""

    bs: SizesByDirection
    bs_unaligned: bool = False
    """A size within a range need not be a multiple of the smallest."""


def fixed(size_bytes: int) -> SizesByDirection:
    """Return one size for reads, writes and trims."""
    return (FixedSize(bytes=size_bytes),) * 3
