"""The bytes of a job file. Knows how large one may be, and no language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.errors import Where


def read(path: Path, what: str, most_bytes: int, where: Where | None) -> bytes:
    """Return the content of a file that is to be a `what`. Raises InputError."""
    try:
        if path.stat().st_size > most_bytes:
            raise InputError(f"{path} is larger than {most_bytes >> 20} MiB: not a {what}", where=where)
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise InputError(
            f"cannot read the {what} {path}: {reason}", where=where, hint="check the path"
        ) from None
