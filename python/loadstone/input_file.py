"""The bytes of a file that a person names: a job file, a data sheet, a list of hosts.

Knows that a name may lead to a device or a pipe, which tell no size and may have no end: never more is
read than such a file may have. Knows no format.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.errors import Where


MOST_BYTES: Final = 16 << 20
"""What a person or a program writes for us to read is not larger."""


def read(path: Path, what: str, most_bytes: int = MOST_BYTES, where: Where | None = None) -> bytes:
    """Return the content of a file that is to be a `what`. Raises InputError, also for a larger one."""
    try:
        if stat.S_ISBLK(path.stat().st_mode):
            raise InputError(
                f"{path} is a block device, not a {what}",
                where=where,
                hint=f"`loadstone probe {path}` measures it; a job file names it in filename=",
            )
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(
            f"cannot read the {what} {path}: {reason}", where=where, hint="check the path"
        ) from None
    if len(content) > most_bytes:
        size = f"{most_bytes >> 20} MiB" if most_bytes >> 20 else f"{most_bytes} bytes"
        raise InputError(f"{path} is larger than {size}: not a {what}", where=where)
    return content
