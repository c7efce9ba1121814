"""Numbers as fio prints them.

Knows fio's rounding and unit prefixes for its human output. Deliberately knows nothing
of jobs or statistics. The rules (how many digits, when a prefix is taken, how halves
carry) are those fio's output shows; scripts parse these strings.
"""

from __future__ import annotations

from typing import Final

_SI: Final = ("", "k", "M", "G", "T", "P", "E")
_IEC: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def scaled(number: int, digits: int, *, binary: bool, unit: str = "", power: int = 0) -> str:
    """Write `number` in at most `digits` characters (the point included), with prefix and unit.

    `power` is the prefix the number already has (1: it counts k or Ki). A number that
    does not fit is divided by 1,000 or 1,024 until it does; what was cut off becomes
    decimals as far as there is room, else it rounds.
    """
    step = 1024 if binary else 1000
    prefixes = _IEC if binary else _SI
    remainder: int | None = None
    while len(str(number)) > digits and power < len(prefixes) - 1:
        number, remainder = divmod(number, step)
        power += 1
    if remainder is None:
        return f"{number}{prefixes[power]}{unit}"
    room = digits - len(str(number)) - 1
    if room <= 0:
        number += remainder >= step // 2
        return f"{number}{prefixes[power]}{unit}"
    fraction = f"{remainder / step:.{room}f}"
    number += fraction[0] == "1"
    return f"{number}.{fraction[2:]}{prefixes[power]}{unit}"


def both(number: int, digits: int, *, unit: str, binary_first: bool = True) -> tuple[str, str]:
    """Write a size or rate twice: with the prefixes of `kb_base`, then with the others."""
    return (
        scaled(number, digits, binary=binary_first, unit=unit),
        scaled(number, digits, binary=not binary_first, unit=unit),
    )
