"""Addresses, sizes and operations in the Plan: which I/O comes next.

Mirrors `crates/engine/src/plan/pattern.rs`, as `model.py` mirrors the rest.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loadstone.plan.base import F64, I64, U32, U64, Part


class Zone(Part):
    """One zone of `RandomOrderZoned`."""

    access_percent: F64
    length_bytes: U64


class RandomOrderUniform(Part):
    """Uniform; with `repeat` false every block once before any comes again."""

    type: Literal["uniform"] = "uniform"
    repeat: bool


class RandomOrderZipf(Part):
    """Zipf with exponent `theta` over the blocks."""

    type: Literal["zipf"] = "zipf"
    theta: F64
    center: F64 | None


class RandomOrderPareto(Part):
    """Pareto with parameter `h`, 0 to 1."""

    type: Literal["pareto"] = "pareto"
    h: F64
    center: F64 | None


class RandomOrderNormal(Part):
    """Normal around the middle."""

    type: Literal["normal"] = "normal"
    deviation_percent: F64
    center: F64 | None


class RandomOrderZoned(Part):
    """Zones in address order with their own share of the accesses."""

    type: Literal["zoned"] = "zoned"
    zones: tuple[Zone, ...]


class RandomOrderReuse(Part):
    """A walk over the leaves of a tree that mostly stays near."""

    type: Literal["reuse"] = "reuse"
    leaf_bytes: U64
    least_leaves: U64
    climb_percent: U32
    step_leaves: U64
    again_percent: U32


class RandomOrderListed(Part):
    """Blocks by number in a fixed order, over and over."""

    type: Literal["listed"] = "listed"
    blocks: tuple[U64, ...]
    advance: bool


RandomOrder = Annotated[
    RandomOrderUniform
    | RandomOrderZipf
    | RandomOrderPareto
    | RandomOrderNormal
    | RandomOrderZoned
    | RandomOrderReuse
    | RandomOrderListed,
    Field(discriminator="type"),
]


class SizeWeight(Part):
    """Entry of a `SizesSplit` table."""

    bytes: U32
    weight: F64


class SizesFixed(Part):
    """Always the same."""

    type: Literal["fixed"] = "fixed"
    bytes: U32


class SizesRange(Part):
    """Uniform between two sizes, in multiples of `step_bytes`."""

    type: Literal["range"] = "range"
    min_bytes: U32
    max_bytes: U32
    step_bytes: U32


class SizesSplit(Part):
    """A table of sizes with weights."""

    type: Literal["split"] = "split"
    table: tuple[SizeWeight, ...]


Sizes = Annotated[SizesFixed | SizesRange | SizesSplit, Field(discriminator="type")]


class OpPattern(Part):
    """Addresses and sizes of one operation."""

    random_percent: U32
    random: RandomOrder
    stride_bytes: I64
    stride_spread_bytes: U64
    """As many bytes more at most, in whole sizes of the I/O."""
    run_length: U32
    run_identical: bool
    sizes: Sizes
    align_bytes: U64


class Strided(Part):
    """A window of `range_bytes` that moves over a file after `zone_bytes` of I/O."""

    zone_bytes: U64
    range_bytes: U64
    skip_bytes: U64


class Row(Part):
    """One kind of I/O among several, as a row of Iometer's access specifications."""

    weight: F64
    bytes: U32
    read_percent: U32
    random_percent: U32
    align_bytes: U64
    burst: U32


class Pattern(Part):
    """What an I/O is and where it goes."""

    read_percent: U32
    write_percent: U32
    trim_percent: U32
    trim_then_write: bool
    read: OpPattern
    write: OpPattern
    trim: OpPattern
    strided: Strided | None = None
    rows: tuple[Row, ...] | None = None
    """I/Os by rows; shares and sizes above say what they come to together."""
