"""What writes hold: `compratio=`, `dedupratio=`, `pattern=FILE`.

Knows vdbench's rules for them (Vdb/Patterns.java: whole words of four bytes, over and over). Does not
know which SD or file system is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone import input_file
from loadstone.errors import InputError, RefusedError
from loadstone.formats.vdbench.mix import shown_sizes
from loadstone.formats.vdbench.values import shown
from loadstone.messages import make_error, say
from loadstone.workload.payload import MAX_PATTERN_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.errors import Where
    from loadstone.formats.vdbench.entity_values import Sizes
    from loadstone.formats.vdbench.file_systems import Say
    from loadstone.formats.vdbench.general import General

WORD_BYTES: Final = 4
_CHUNK_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class Reduction:
    """How far data can be reduced, as ratios of n:1."""

    compression: float
    dedup: float
    dedup_at: Where


def fields(general: General, reduction: Reduction, transfers: Sizes, note: Say) -> dict[str, Any]:
    """Return the fields of a job that say what it writes.

    Raises InputError and RefusedError for what does not go together.
    """
    job_fields: dict[str, Any] = {}
    compressed, repeated = _reduced(reduction.compression), _reduced(reduction.dedup)
    if compressed:
        job_fields["payload.compress"] = {"percent": compressed, "chunk_bytes": _CHUNK_BYTES}
    if compressed or repeated:
        job_fields["payload.refill_buffers"] = True
    buffer_pattern = pattern(general, reduction.compression, reduction.dedup)
    if buffer_pattern is not None:
        job_fields["payload.buffer_pattern"] = buffer_pattern
    if reduction.dedup <= 1:
        return job_fields
    where = reduction.dedup_at
    if general.verified_at is not None:
        raise make_error(RefusedError, "formats_vdbench.payload.dedup_and_validate", where=where)
    if general.dedupunit is None:
        raise make_error(InputError, "formats_vdbench.payload.no_unit", where=where)
    every = [*(size for size, _ in transfers.pairs), transfers.step_bytes]
    whole_units(general, every, f"a transfer of {shown_sizes(transfers)}", "xfersize=")
    if repeated:
        job_fields["payload.repeat"] = {"percent": repeated, "unit_bytes": general.dedupunit}
    note(where, say("formats_vdbench.payload.repeats", repeated=repeated))
    return job_fields


def whole_units(general: General, sizes: Sequence[int], what: str, keyword: str) -> None:
    """Raise InputError for sizes that are no multiples of `dedupunit=`, as vdbench wants them."""
    unit = general.dedupunit
    if unit and any(size % unit for size in sizes):
        raise make_error(
            InputError,
            "formats_vdbench.payload.not_whole_units",
            where=general.at["dedupunit"],
            what=what,
            unit=shown(unit),
            keyword=keyword,
        )


def _reduced(ratio: float) -> int:
    """Return the percentage that a ratio of n:1 takes away, 0 below 1:1."""
    return max(round(100 * (1 - 1 / ratio)), 0)


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
    for other, is_set in others.items():
        if is_set:
            raise make_error(InputError, "formats_vdbench.payload.exclusive", where=where, other=other)
    try:
        content = input_file.start(general.pattern, MAX_PATTERN_BYTES + 1)
    except OSError as error:
        raise make_error(
            InputError,
            "formats_vdbench.payload.unreadable",
            where=where,
            pattern=general.pattern,
            reason=error.strerror,
        ) from error
    if len(content) > MAX_PATTERN_BYTES:
        raise make_error(
            RefusedError,
            "formats_vdbench.payload.pattern_large",
            where=where,
            pattern=general.pattern,
            max_pattern=MAX_PATTERN_BYTES,
        )
    whole = content[: len(content) - len(content) % WORD_BYTES]
    if not whole:
        raise make_error(
            InputError,
            "formats_vdbench.payload.pattern_small",
            where=where,
            pattern=general.pattern,
            found=len(content),
            word=WORD_BYTES,
        )
    return tuple(whole)
