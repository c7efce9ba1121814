"""What writes hold when a file says it: `pattern=FILE`.

Knows vdbench's rules for such a file (Vdb/Patterns.java: whole words of four bytes, over and over).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, RefusedError
from loadstone.workload.model import MAX_PATTERN_BYTES

if TYPE_CHECKING:
    from loadstone.formats.vdbench.general import General

WORD_BYTES: Final = 4


def pattern(general: General, ratio: float, dedup: float) -> tuple[int, ...] | None:
    """Return the bytes that are written over and over, None when they are to be made.

    `ratio` and `dedup`: of compression and of equal blocks, 1 for none. Raises InputError for a
    file that cannot be used or beside keywords that say what is written, too, and RefusedError
    for one that is too long.
    """
    if general.pattern is None:
        return None
    where = general.at["pattern"]
    others = {
        "compratio=": ratio > 1,
        "dedupratio=": dedup > 1,
        "validate=": general.verified_at is not None,
    }
    for other, given in others.items():
        if given:
            raise InputError(f"pattern= and {other} exclude each other, as in vdbench", where=where)
    try:
        found = Path(general.pattern).read_bytes()
    except OSError as error:
        raise InputError(f"{general.pattern} cannot be read: {error.strerror}", where=where) from error
    if len(found) > MAX_PATTERN_BYTES:
        raise RefusedError(
            f"{general.pattern} has {len(found)} bytes: "
            f"patterns of more than {MAX_PATTERN_BYTES} are not supported",
            where=where,
            hint=f"cut it: head -c {MAX_PATTERN_BYTES} {general.pattern}",
        )
    whole = found[: len(found) - len(found) % WORD_BYTES]
    if not whole:
        raise InputError(
            f"{general.pattern} has {len(found)} bytes, expected {WORD_BYTES} or more", where=where
        )
    return tuple(whole)
