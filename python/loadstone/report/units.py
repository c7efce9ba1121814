"""Numbers for people, as every part of a report writes them; `loadstone.units` says how."""

from __future__ import annotations

from loadstone.units import (
    NONE,
    THIN,
    Estimated,
    bandwidth,
    bandwidth_decimal,
    count,
    digits,
    duration,
    seconds,
    size,
    with_error,
)

__all__ = (
    "NONE",
    "THIN",
    "Estimated",
    "bandwidth",
    "bandwidth_decimal",
    "count",
    "digits",
    "duration",
    "seconds",
    "size",
    "with_error",
)
