"""How I/O is done, and when it is forced to the medium. Knows no host."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel


class BatchSizes(FrozenModel):
    """How many I/Os are handed over at once, and how many are waited for."""

    submit: int
    complete_min: int
    complete_max: int
    low: int | None = None
    """New ones are handed over when no more than this are in flight; None: as soon as there is room."""


class EngineChoice(FrozenModel):
    """How I/O is handed over, and how much of it at once."""

    ioengine: str | None = None
    """None: plain calls at depth 1, io_uring above and where parts of a ring are asked for."""
    command_type: Literal["nvme"] | None = None
    """Whose commands `ioengine=io_uring_cmd` sends; None: the only ones there are."""
    stat_type: Literal["stat", "lstat", "statx"] | None = None
    """The call of `ioengine=filestat` and `dirstat`."""
    donor: str | None = None
    """Of `ioengine=e4defrag`: the file blocks come from, in the job's directory."""
    donor_in_place: bool | None = None
    """It gets its blocks for each I/O anew."""
    iodepth: int | None = None
    batch: BatchSizes | None = None
    """None: the engine chooses."""
    direct: bool | None = None
    hipri: bool | None = None
    registerfiles: bool | None = None
    fixedbufs: bool | None = None
    sqthread_poll: bool | None = None
    force_async: int | None = None
    """Of a ring: every so manieth I/O goes to a kernel worker without a try in the caller."""
    serialize_overlap: bool | None = None
    ios_per_connection: int | None = None
    """Its target is closed when so many I/Os are back, and opened again; None: it stays open."""


class Durability(FrozenModel):
    """When data is forced to the medium."""

    sync: Literal["none", "sync", "dsync"] | None = None
    fsync_every: int | None = None
    fdatasync_every: int | None = None
    end_fsync: bool | None = None
    fsync_on_close: bool | None = None
