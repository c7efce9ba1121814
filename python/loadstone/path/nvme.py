"""The two devices of an NVMe namespace: the block device and the character device for commands.

Knows the class `nvme-generic` of sysfs (`/dev/ng0n1`) and how its devices are named after the
block devices (`nvme0n1`). Knows no command and reads no data.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from loadstone.path.block import SYS, BlockDevice

if TYPE_CHECKING:
    from pathlib import Path

CLASS: Final = "nvme-generic"
_NAME: Final = re.compile(r"ng(\d+n\d+)\Z")


def is_generic(number: int, sys: Path = SYS) -> bool:
    """Whether a character device with this `st_rdev` takes commands for a namespace."""
    link = _directory(number, sys) / "subsystem"
    return link.resolve().name == CLASS


def namesake(number: int, sys: Path = SYS) -> BlockDevice | None:
    """Return the block device with the same data as a namespace's character device.

    Both have the same name but for the first letters, and hang on the same controller (or on the
    same subsystem, where there are several ways to the namespace). None: there is none, or
    it cannot be told that it is the one.
    """
    directory = _directory(number, sys).resolve()
    named = _NAME.match(directory.name)
    block = BlockDevice.of_name(f"nvme{named[1]}", sys) if named else None
    if block is None:
        return None
    try:
        same = (block.sys / "device").resolve(strict=True) == (directory / "device").resolve(strict=True)
    except OSError:
        return None
    return block if same else None


def _directory(number: int, sys: Path) -> Path:
    return sys / "dev" / "char" / f"{os.major(number)}:{os.minor(number)}"
