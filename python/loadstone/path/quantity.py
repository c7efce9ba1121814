"""Sizes, rates and times as people print them: `1100 MB/s`, `2 GiB`, `4k`, `0.3 ms`.

Knows units; a number without one is refused, because nobody can tell which was meant. `kB` is 1000
bytes and `KiB` 1024; the size of an I/O keeps the field's habit, in which `4k` is 4096 bytes.
"""

from __future__ import annotations

import re
from typing import Final

from loadstone.messages import make_error

_NUMBER: Final = re.compile(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([A-Za-zµ/]*)\s*")
_BYTES: Final = {"B": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kMGT", start=1)
    for suffix, base in (("B", 1000), ("iB", 1024))
}
_BYTES["KiB"] = _BYTES.pop("kiB")
_BLOCK: Final = _BYTES | {"k": 1024, "K": 1024, "m": 1 << 20, "M": 1 << 20}
_TIME_NS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9} | {
    "h": 3600 * 10**9
}
MAX: Final = 1e18


def size_bytes(text: str) -> int:
    """Read a size. Raises ValueError."""
    return round(_read(text, _BYTES, "a size with its unit, such as '2 GiB'"))


def block_bytes(text: str) -> int:
    """Read the size of an I/O. Raises ValueError."""
    return round(_read(text, _BLOCK, "the size of an I/O, such as '4k'"))


def bandwidth_bytes_per_s(text: str) -> float:
    """Read a bandwidth. Raises ValueError."""
    units = {f"{unit}/s": factor for unit, factor in _BYTES.items()}
    return _read(text, units, "a bandwidth with its unit, such as '1100 MB/s'")


def time_ns(text: str) -> float:
    """Read a time. Raises ValueError."""
    return _read(text, _TIME_NS, "a time with its unit, such as '0.3 ms'")


def unit(text: str) -> str:
    """Return the unit of a quantity that was read before."""
    match = _NUMBER.fullmatch(text)
    return match[2] if match else ""


def _read(text: str, units: dict[str, int], expected: str) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise make_error(ValueError, "path.quantity.number", found=repr(text[:40]), expected=expected)
    if match[2] not in units:
        raise make_error(
            ValueError,
            "path.quantity.unit",
            unit=repr(match[2]),
            found=repr(text[:40]),
            units=", ".join(units),
        )
    value = float(match[1].replace("_", "")) * units[match[2]]
    if not 0 < value <= MAX:
        raise make_error(ValueError, "path.quantity.no_device", found=repr(text[:40]))
    return value
