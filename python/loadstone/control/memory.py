"""Controls of memory: limits on dirty pages, huge pages.

Knows `/proc/sys/vm` (Documentation/admin-guide/sysctl/vm.rst). Of a limit in percent and one in
bytes the kernel keeps the one that was written last and makes the other 0, so both are one control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from loadstone.control.files import FileControl, HostFile, bracketed, put, text, words
from loadstone.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

VM = "Documentation/admin-guide/sysctl/vm.rst"


class _DirtyLimit(FileControl):
    """`20%` of available memory, or a number of bytes."""

    source = VM
    stem: ClassVar[str]

    def path(self, subject: str) -> Path:  # noqa: ARG002 - the host has one
        """Return the file of the limit in percent."""
        return self.root / "sys" / "vm" / f"{self.stem}_ratio"

    def subjects(self) -> list[str]:
        return [""] if self.path("").exists() else []

    def read(self, subject: str) -> str | None:
        ratio, number = text(self.path(subject)), text(self._bytes(subject))
        return f"{ratio}%" if number in (None, "0") and ratio is not None else number

    def write(self, subject: str, value: str) -> None:
        number = value.removesuffix("%")
        if not number.isdigit():
            raise RefusedError(f"{self.name}: found {value!r}, expected N% or a number of bytes")
        put(self.path(subject) if value.endswith("%") else self._bytes(subject), number)

    def _bytes(self, subject: str) -> Path:
        return self.path(subject).with_name(f"{self.stem}_bytes")


class DirtyLimit(_DirtyLimit):
    """Dirty pages at which writers are made to wait."""

    name, title = "dirty_limit", "dirty pages at which writers wait"
    stem = "dirty"


class DirtyBackgroundLimit(_DirtyLimit):
    """Dirty pages at which the kernel begins to write."""

    name, title = "dirty_background_limit", "dirty pages at which write-back begins"
    stem = "dirty_background"


class TransparentHugePages(HostFile):
    """When memory is made of huge pages."""

    name, title = "transparent_huge_pages", "transparent huge pages"
    source = "Documentation/admin-guide/mm/transhuge.rst"
    file = "kernel/mm/transparent_hugepage/enabled"

    def read(self, subject: str) -> str | None:
        """Return the choice."""
        return bracketed(super().read(subject))

    def choices(self, subject: str) -> tuple[str, ...]:
        """Return the kernel's."""
        return words(text(self.path(subject)))


IN_PROC = (DirtyLimit, DirtyBackgroundLimit)
IN_SYS = (TransparentHugePages,)
