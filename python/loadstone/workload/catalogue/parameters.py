"""Parameters of a named workload, and how their values get into its jobs.

Knows types, what a value of each looks like, and how to refer to one: `"$depth"`, or a product
such as `"$bsu*$load*0.35"`. Knows no job.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone.errors import InputError
from loadstone.messages import make_error
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS_NS: Final = {"": 10**9, "s": 10**9, "ms": 10**6, "m": 60 * 10**9, "h": 3600 * 10**9}
_REFERENCE: Final = re.compile(r"\$[a-z_]+(?:\*(?:\$[a-z_]+|-?\d+(?:\.\d+)?))*")


@dataclass(frozen=True, slots=True)
class WorkloadParameter:
    """Something a user may set.

    `type`: `integer`, `percent`, `seconds` (becomes nanoseconds), `size` (becomes bytes) or
    `amount` (bytes or a percentage).
    """

    name: str
    type: str
    default: str
    meaning: str

    def value(self, text: str) -> object:
        """Read a value. Raises InputError for one of another type."""
        read, example = _TYPES[self.type]
        value = read(text.strip().lower())
        if value is None:
            raise make_error(
                InputError,
                "workload.catalogue.value",
                hint=self.meaning,
                found=repr(text),
                name=self.name,
                example=example,
            )
        return value


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text) and int(text) > 0 else None


def _percent(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,3})%?", text)
    return int(match[1]) if match and int(match[1]) <= 100 else None


def _seconds_ns(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,9})(ms|s|m|h|)", text)
    return int(match[1]) * _SECONDS_NS[match[2]] if match else None


def size_bytes(text: str) -> int | None:
    """Read a size such as `4k`; None for anything else."""
    match = re.fullmatch(r"(\d{1,12})([kmgt]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match and int(match[1]) else None


def _amount(text: str) -> Amount | None:
    match = re.fullmatch(r"(\d{1,3})%", text)
    if match is not None:
        return Amount(percent=float(match[1])) if 0 < int(match[1]) <= 100 else None
    size = size_bytes(text)
    return None if size is None else Amount(bytes=size)


_TYPES: Final = {
    "integer": (_integer, "32"),
    "percent": (_percent, "70"),
    "seconds": (_seconds_ns, "30, 30s or 5m"),
    "size": (size_bytes, "4k"),
    "amount": (_amount, "1g or 80%"),
}


def filled(value: Any, values: Mapping[str, object]) -> Any:
    """Return a value with every reference to a parameter replaced, in tables and lists, too."""
    if isinstance(value, dict):
        return {key: filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    if not isinstance(value, str) or _REFERENCE.fullmatch(value) is None:
        return value
    first, *more = (_operand(word, values) for word in value.split("*"))
    return math.prod(more, start=first) if more else first


def _operand(word: str, values: Mapping[str, object]) -> Any:
    if word.startswith("$"):
        return values[word[1:]]
    return float(word) if "." in word else int(word)
