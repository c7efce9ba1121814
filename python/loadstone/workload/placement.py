"""Targets, the bytes of them that are used, and how files are prepared. Knows no file on disk."""

from __future__ import annotations

from typing import Literal

from loadstone.errors import Where
from loadstone.frozen_model import FrozenModel


class Amount(FrozenModel):
    """Bytes, or a percentage of what is there: exactly one of the two."""

    bytes: int | None = None
    percent: float | None = None

    def of(self, whole_bytes: int) -> int:
        """Return the bytes meant when the whole has `whole_bytes`."""
        if self.bytes is not None:
            return self.bytes
        return int(whole_bytes * (self.percent or 0) // 100)


class TargetName(FrozenModel):
    """A file or device by name; `written` is what the user wrote when it was mapped."""

    path: str
    written: str


class HostPlace(FrozenModel):
    """A host that does a job, or a part of it."""

    names: tuple[str, ...]
    """What it may be called: its label in the job file, its address."""
    where: Where
    targets: tuple[TargetName, ...] = ()
    """The job's targets there, where they are others than elsewhere."""
    away: bool = True
    """It is another machine: its part is not done here."""
    idle: bool = False
    """It does nothing of this job, and works on the same files in others."""


class FileService(FrozenModel):
    """How a job with several files takes the next one, and after how many I/Os."""

    kind: Literal["roundrobin", "random", "sequential"]
    every: int | None = None


class Placement(FrozenModel):
    """Which targets, and which bytes of them."""

    targets: tuple[TargetName, ...] = ()
    directories: tuple[str, ...] = ()
    filename_format: str | None = None
    nrfiles: int | None = None
    openfiles: int | None = None
    file_service: FileService | None = None
    size: Amount | None = None
    filesize_bytes: tuple[int, int] | None = None
    """Smallest and largest."""
    offset: Amount | None = None
    offset_increment: Amount | None = None
    offset_align_bytes: int | None = None
    fill_device: bool | None = None
    zone_mode: Literal["none", "strided"] | None = None
    zone_size_bytes: int | None = None
    zone_range_bytes: int | None = None
    zone_skip_bytes: int | None = None


class FilePreparation(FrozenModel):
    """What is done to files before the load, and after it."""

    allow_file_create: bool | None = None
    create_fsync: bool | None = None
    create_on_open: bool | None = None
    create_only: bool | None = None
    """Its files are prepared, and nothing else is done."""
    overwrite: bool | None = None
    fallocate: Literal["none", "native", "posix", "keep", "truncate"] | None = None
    fadvise: Literal["none", "pattern", "random", "sequential"] | None = None
    invalidate: bool | None = None
    unlink: bool | None = None
