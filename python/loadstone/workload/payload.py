"""What is written. Knows no block and no address."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from loadstone.frozen_model import FrozenModel

MAX_PATTERN_BYTES: Final = 65_536
"""The longest pattern that writes repeat; the engine keeps no longer one."""


class CompressibleContent(FrozenModel):
    """Content of which a part can be compressed away."""

    percent: Annotated[int, Field(ge=1, le=100)]
    chunk_bytes: Annotated[int, Field(ge=1)]
    """It is compressible in chunks of so much."""


class RepeatedContent(FrozenModel):
    """Content of which a part was written before."""

    percent: Annotated[int, Field(ge=1, le=100)]
    unit_bytes: int | None = None
    """What is drawn together, new or repeated; None: a whole write."""
    set_percent: int | None = None
    """It repeats from so much content, as a share of the size; None: from the last writes."""
    set_is_shared: bool = False
    """All jobs repeat from the same."""


class PayloadRequests(FrozenModel):
    """What is written."""

    zero_buffers: bool = False
    refill_buffers: bool = False
    """The content of each write is made anew."""
    scramble_buffers: bool = True
    """What is not made anew has at least a stamp of its own."""
    buffer_pattern: tuple[int, ...] | None = None
    """Bytes 0 to 255, at most `MAX_PATTERN_BYTES` of them."""
    compress: CompressibleContent | None = None
    repeat: RepeatedContent | None = None
