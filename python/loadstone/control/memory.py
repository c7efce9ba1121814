"""Controls of memory: limits on dirty pages, huge pages.

Knows `/proc/sys/vm` (Documentation/admin-guide/sysctl/vm.rst). Of a limit in percent and one in
bytes the kernel keeps the one that was written last and makes the other 0, so both are one control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from loadstone.control.file_controls import HostFile, bracketed, in_bytes, put, text, words

if TYPE_CHECKING:
    from pathlib import Path

VM = "Documentation/admin-guide/sysctl/vm.rst"


class _DirtyLimit(HostFile):
    """`20%` of available memory, or a number of bytes; its file is that of the limit in percent."""

    source = VM
    folder = "sys/vm"
    bytes_file: ClassVar[str]
    takes = (r"(\d{1,2}|100)%|\d+[kKmMgG]?", "a percentage to 100%, as 20%, or bytes, as 64m")

    def read(self, subject: str) -> str | None:
        ratio, number = text(self.path(subject)), text(self._bytes(subject))
        return f"{ratio}%" if number in (None, "0") and ratio is not None else number

    def write(self, subject: str, value: str) -> None:
        file = self.path(subject) if value.endswith("%") else self._bytes(subject)
        put(file, in_bytes(value).removesuffix("%"))

    def agrees(self, requested: str, value: str) -> bool:
        return in_bytes(requested) == value

    def _bytes(self, subject: str) -> Path:
        return self.path(subject).with_name(self.bytes_file)


class DirtyLimit(_DirtyLimit):
    """Dirty pages at which writers are made to wait."""

    name, title = "dirty_limit", "dirty pages at which writers wait"
    file, bytes_file = "dirty_ratio", "dirty_bytes"


class DirtyBackgroundLimit(_DirtyLimit):
    """Dirty pages at which the kernel begins to write."""

    name, title = "dirty_background_limit", "dirty pages at which write-back begins"
    file, bytes_file = "dirty_background_ratio", "dirty_background_bytes"


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
