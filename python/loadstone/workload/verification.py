"""What is checked of what was written. Knows no block."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel


class VerificationRequests(FrozenModel):
    """What is checked of what was written."""

    by: Literal["stamps", "headers"] = "stamps"
    """Stamps in every sector, read back in a stage of its own; or a header before every block, in the
    format of fio, read back by the job itself."""
    verify: str | None = None
    """The method: a check sum, `pattern` or `null`; None: nothing is verified."""
    verify_pattern: tuple[int, ...] | None = None
    """Bytes 0 to 255."""
    verify_pattern_offsets: tuple[int, ...] = ()
    """Where in the pattern the offset of the I/O stands, 8 bytes."""
    do_verify: bool | None = None
    verify_only: bool | None = None
    verify_interval_bytes: int | None = None
    verify_fatal: bool | None = None
    verify_before_write: bool | None = None
    """What is known of the place of a write is read and checked before it."""
    verify_after_write: bool | None = None
    """What was written is read and checked at once."""


class HeaderRequests(FrozenModel):
    """What only verification by headers does."""

    verify_pattern_interval_bytes: int | None = None
    verify_offset_bytes: int | None = None
    verify_backlog: int | None = None
    verify_backlog_batch: int | None = None
    verify_dump: bool | None = None
    verify_header_seed: bool | None = None
    verify_write_sequence: bool | None = None
    verify_state_save: bool | None = None
    verify_state_load: bool | None = None
    verify_policy: Literal["completed", "fsynced"] | None = None
    experimental_verify: bool | None = None
    trim_percent: int | None = None
    trim_backlog: int | None = None
    trim_backlog_batch: int | None = None
    trim_verify_zero: bool | None = None
