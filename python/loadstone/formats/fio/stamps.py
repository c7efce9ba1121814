"""What fio's options of headers come to where blocks are verified by stamps.

Knows which of them have no effect then, and why. Knows no block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.messages import make_error, say

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
    "headers.verify_offset_bytes": "formats_fio.stamps.no_header",
    "headers.verify_backlog": "formats_fio.stamps.read_back",
    "headers.verify_backlog_batch": "formats_fio.stamps.read_back",
    "headers.verify_dump": "formats_fio.stamps.in_events",
    "headers.verify_header_seed": "formats_fio.stamps.no_seed",
    "headers.verify_write_sequence": "formats_fio.stamps.number_of_write",
    "headers.verify_state_save": "formats_fio.stamps.hold_state",
    "headers.verify_state_load": "formats_fio.stamps.hold_state",
    "headers.verify_policy": "formats_fio.stamps.hold_state",
    "headers.experimental_verify": "formats_fio.stamps.table_of_writes",
}


def check(lowering: Lowering) -> None:
    """Say what options of headers change nothing. Raises RefusedError for what stamps cannot do."""
    method = lowering.known(_METHOD, None)
    if method is None:
        return
    hint = say("formats_fio.stamps.by_headers")
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
            text = say("formats_fio.jobs.changes_nothing", option=option, why=say(why))
            lowering.note("info", field, text)
