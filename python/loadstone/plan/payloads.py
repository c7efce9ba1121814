"""What is written, in the Plan.

Mirrors `crates/engine/src/plan/payload.rs`, as `model.py` mirrors the rest.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loadstone.plan.base import U8, U32, U64, Part


class FillRandom(Part):
    """Pseudo-random bytes."""

    type: Literal["random"] = "random"


class FillZero(Part):
    """Zeros."""

    type: Literal["zero"] = "zero"


class FillPattern(Part):
    """A repeated pattern of 1 to 65,536 bytes."""

    type: Literal["pattern"] = "pattern"
    bytes: tuple[U8, ...]


Fill = Annotated[FillRandom | FillZero | FillPattern, Field(discriminator="type")]


class DedupeSet(Part):
    """Contents that writes repeat from; streams with the same seed share them."""

    contents: U64
    seed: U64


class Payload(Part):
    """Bytes written."""

    fill: Fill
    refill: bool
    stamp: bool
    compress_percent: U32
    compress_chunk_bytes: U32
    dedupe_percent: U32
    dedupe_set: DedupeSet | None = None
    """What those repeat from; `None`: the last contents of the stream."""
    dedupe_unit_bytes: U32 = 0
    """Bytes of a write that are drawn together, new or repeated; 0: the whole write."""
