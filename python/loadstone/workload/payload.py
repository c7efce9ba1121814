"""What is written. Knows no block and no address."""

from __future__ import annotations

from typing import Final, Literal

from loadstone.frozen_model import FrozenModel

MAX_PATTERN_BYTES: Final = 65_536
"""The longest pattern that writes repeat; the engine keeps no longer one."""


class PayloadRequests(FrozenModel):
    """What is written."""

    zero_buffers: bool | None = None
    refill_buffers: bool | None = None
    scramble_buffers: bool | None = None
    buffer_pattern: tuple[int, ...] | None = None
    """Bytes 0 to 255, at most `MAX_PATTERN_BYTES` of them."""
    compress_percent: int | None = None
    compress_chunk_bytes: int | None = None
    dedupe_percent: int | None = None
    dedupe_unit_bytes: int | None = None
    """What is drawn together, new or repeated; `None`: a whole write."""
    dedupe_mode: Literal["repeat", "working_set"] | None = None
    dedupe_set_percent: int | None = None
    """Of the size: how much content there is to repeat from."""
    dedupe_global: bool | None = None
