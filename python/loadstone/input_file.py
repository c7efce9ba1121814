"""The bytes of a file that a person names: a job file, a data sheet, a list of hosts.

Knows that a name may lead to a device, which may have no end or keep its reader waiting for ever, or to a
pipe, which tells no size: never more is read than such a file may have. Knows no format.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from loadstone import file_kind
from loadstone.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.errors import Where


MOST_BYTES: Final = 16 << 20
"""What a person or a program writes for us to read is not larger."""


def read(path: Path, what: str, most_bytes: int = MOST_BYTES, where: Where | None = None) -> bytes:
    """Return the content of a file that is to be a `what`. Raises InputError, also for a larger one."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise InputError(
                f"{path} is {file_kind.words(mode)}, not a {what}", where=where, hint=_hint(path, mode)
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


def _hint(path: Path, mode: int) -> str:
    if stat.S_ISBLK(mode):
        return f"`loadstone probe {path}` measures it; a job file names it in filename="
    return "name a file or a pipe"
