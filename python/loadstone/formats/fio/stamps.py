"""What fio's options of headers come to where blocks are verified by stamps.

Knows which of them have no effect then, and why. Knows no block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from loadstone.formats.fio.lower import Lowering

_METHOD: Final = "verification.verify"
_ONLY_HEADERS: Final = {
    "headers.verify_pattern_interval_bytes": "verify_pattern_interval",
    "headers.trim_percent": "trim_percentage",
    "headers.trim_verify_zero": "trim_verify_zero",
    "headers.trim_backlog": "trim_backlog",
    "headers.trim_backlog_batch": "trim_backlog_batch",
}
_NOT_FOR_STAMPS: Final = {
    "headers.verify_offset_bytes": "every 512 bytes have a stamp: there is no header to move",
    "headers.verify_backlog": "all that was written is read back when the writing is done",
    "headers.verify_backlog_batch": "all that was written is read back when the writing is done",
    "headers.verify_dump": "what was expected and found is in the events",
    "headers.verify_header_seed": "stamps do not depend on a seed",
    "headers.verify_write_sequence": "stamps hold the number of the write",
    "headers.verify_state_save": "stamps say themselves what was written",
    "headers.verify_state_load": "stamps say themselves what was written",
    "headers.verify_policy": "stamps say themselves what was written",
    "headers.experimental_verify": "what was written is kept in a table of 4 bytes for each block",
}


def check(lowering: Lowering) -> None:
    """Say what options of headers change nothing. Raises RefusedError for what stamps cannot do."""
    method = lowering.known(_METHOD, None)
    if method is None:
        return
    hint = "run it with `loadstone fio`, which verifies by fio's headers"
    for field, option in _ONLY_HEADERS.items():
        if lowering.known(field, None):
            raise make_error(
                RefusedError,
                "formats_fio.stamps.no_effect",
                where=lowering.at(field),
                hint=hint,
                option=option,
            )
    if lowering.known("verification.verify_pattern_offsets", None):
        raise make_error(
            RefusedError,
            "formats_fio.stamps.offset_pattern",
            where=lowering.at("verification.verify_pattern"),
            hint=hint,
        )
    if method == "null":
        raise make_error(RefusedError, "formats_fio.stamps.verify_null", where=lowering.at(_METHOD))
    for field, why in _NOT_FOR_STAMPS.items():
        if lowering.known(field, None) is not None and not {field, _METHOD}.isdisjoint(lowering.fields):
            option = field.removeprefix("headers.").removesuffix("_bytes")
            lowering.note("info", field, f"{option} changes nothing: {why}")
