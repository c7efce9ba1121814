"""Real parts that compress: a zram disk, and btrfs with zstd on an image.

Knows how to make and remove them (root), and how to ask each what it stored. Removes only
what it made.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROL = Path("/sys/class/zram-control")
BTRFS_BYTES = 512 << 20


@dataclass(frozen=True)
class ZramDisk:
    """A zram disk of ours."""

    number: int

    @property
    def path(self) -> str:
        return f"/dev/zram{self.number}"

    @property
    def _sys(self) -> Path:
        return Path(f"/sys/block/zram{self.number}")

    def algorithms(self) -> list[str]:
        return (self._sys / "comp_algorithm").read_text().replace("[", "").replace("]", "").split()

    def empty(self, algorithm: str, size_bytes: int) -> None:
        (self._sys / "reset").write_text("1")
        (self._sys / "comp_algorithm").write_text(algorithm)
        (self._sys / "disksize").write_text(str(size_bytes))

    def stored_percent(self) -> float:
        """Compressed bytes kept for 100 bytes written (`mm_stat` of the kernel's zram document)."""
        fields = [int(field) for field in (self._sys / "mm_stat").read_text().split()]
        return 100 * fields[1] / fields[0]

    def remove(self) -> None:
        (self._sys / "reset").write_text("1")
        (CONTROL / "hot_remove").write_text(str(self.number))


@contextlib.contextmanager
def zram() -> Iterator[ZramDisk]:
    """A zram disk, gone afterwards. Reading `hot_add` is what makes one."""
    disk = ZramDisk(int((CONTROL / "hot_add").read_text()))
    try:
        yield disk
    finally:
        disk.remove()


@dataclass(frozen=True)
class CompressingBtrfs:
    """A mounted btrfs that compresses everything with zstd."""

    folder: Path

    def used_bytes(self) -> int:
        """Bytes of data extents on the disk, everything written out."""
        subprocess.run(["btrfs", "filesystem", "sync", self.folder], check=True, capture_output=True)
        command = ["btrfs", "filesystem", "df", "--raw", str(self.folder)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = re.search(r"^Data, single: total=\d+, used=(\d+)$", text, re.MULTILINE)
        assert found is not None, text
        return int(found[1])


@contextlib.contextmanager
def btrfs(folder: Path) -> Iterator[CompressingBtrfs]:
    """A btrfs on an image in `folder`; `mount` makes its loop device and drops it with the mount."""
    image, place = folder / "btrfs.img", folder / "btrfs"
    with image.open("wb") as out:
        out.truncate(BTRFS_BYTES)
    place.mkdir()
    subprocess.run(["mkfs.btrfs", "--quiet", image], check=True)
    options = "loop,compress-force=zstd,noatime"
    subprocess.run(["mount", "-t", "btrfs", "-o", options, str(image), str(place)], check=True)
    try:
        yield CompressingBtrfs(place)
    finally:
        subprocess.run(["umount", place], check=True)
