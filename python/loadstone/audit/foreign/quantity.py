"""Quantities as people print them: `5.7 GB/s`, `0.3 ms`, `4k`, `10 GiB`.

Knows units and that a number without one is ambiguous. Sizes of I/Os keep the field's habit:
`4k` is 4096 bytes; everywhere else `kB` is 1000 bytes and `KiB` is 1024.
"""

from __future__ import annotations

import math
import re
from typing import Final

_NUMBER: Final = re.compile(r"\s*(\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*([a-zA-Zµ/%]*)\s*\Z")
_TIME_NS: Final = {
    "ns": 1.0,
    "us": 1e3,
    "µs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "min": 60e9,
    "h": 3600e9,
}
_BYTES: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_BLOCK: Final = {"": 1, "k": 2**10, "m": 2**20, "K": 2**10, "M": 2**20} | _BYTES
MAX: Final = 1e18
"""Nothing that is measured is larger; what is, is a slip of the pen."""


def time_ns(text: str) -> float:
    """Read a time. Raises ValueError."""
    return _read(text, _TIME_NS, "a time with its unit, such as '0.3 ms'")


def size_bytes(text: str) -> int:
    """Read a size. Raises ValueError."""
    return int(_read(text, _BYTES, "a size with its unit, such as '10 GB' or '10 GiB'"))


def block_bytes(text: str) -> int:
    """Read the size of an I/O. Raises ValueError."""
    found = int(_read(text, _BLOCK, "the size of an I/O, such as '4k'"))
    if not found:
        raise ValueError("an I/O has at least one byte")
    return found


def bandwidth(text: str) -> float:
    """Read bytes per second. Raises ValueError."""
    units = {f"{unit}/s": factor for unit, factor in _BYTES.items()}
    return _read(text, units, "a bandwidth with its unit, such as '5.7 GB/s' or '110 MiB/s'")


def unit(text: str) -> str:
    """Return the unit of a quantity that was read before."""
    match = _NUMBER.match(text)
    return match[2] if match else ""


def _read(text: str, units: dict[str, float] | dict[str, int], expected: str) -> float:
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(f"found {text[:40]!r}, expected {expected}")
    if match[2] not in units:
        known = ", ".join(name for name in units if name)
        raise ValueError(f"found the unit {match[2]!r} in {text[:40]!r}, expected one of {known}")
    value = float(match[1]) * units[match[2]]
    if not math.isfinite(value) or value > MAX:
        raise ValueError(f"{text[:40]!r} is too large to be real")
    return value
