"""Values of parameters: numbers with their units, ranges, lists of names, choices.

Knows how vdbench reads a number and unfolds a range. Knows no keyword.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from loadstone.formats.vdbench.grammar import DASH, MAX_VALUES, Parameter
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER: Final = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?)(?:([kmgt])b?|(h)|(%)|)", re.IGNORECASE
)
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LARGEST: Final = float(2**63)
_NAME_END: Final = re.compile(r"(.*?)(0|[1-9]\d*)\Z")
HOUR_S: Final = 3600
MINUTE_S: Final = 60
MAX_S: Final = 2**31 - 1
"""68 years; far below it a time in nanoseconds still fits."""


class Number(NamedTuple):
    """A number, or a percentage."""

    value: float
    percent: bool = False


Reader = Callable[[Parameter], object]


def _number(parameter: Parameter, text: str, *, minutes: bool) -> Number:
    match = _NUMBER.fullmatch(text.strip())
    value = float(match[1]) if match else _LARGEST
    if match is None or abs(value) >= _LARGEST:
        example = "60, 5m or 1h" if minutes else "8, 4k, 1m or 10g"
        raise parameter.error("formats_vdbench.values.number", found=repr(text[:40]), example=example)
    if match[2]:
        value *= MINUTE_S if minutes and match[2].lower() == "m" else _UNITS[match[2].lower()]
    elif match[3]:
        value *= HOUR_S
    if abs(value) >= _LARGEST:
        raise parameter.error("formats_vdbench.values.too_large", found=text[:40])
    return Number(value, percent=bool(match[4]))


def numbers(parameter: Parameter, *, minutes: bool = False) -> tuple[Number, ...]:
    """Read one number or a list, ranges unfolded; `minutes`: m stands for minutes."""
    if not parameter.listed:
        return (_number(parameter, parameter.text, minutes=minutes),)
    pieces = list(parameter.pieces)
    if len(pieces) == 3 and pieces[2].lower() == "d" and DASH not in pieces:
        pieces.insert(1, DASH)  # (64,1,d) is (64-1,d)
    all_numbers: list[Number] = []
    at = 0
    while at < len(pieces):
        if pieces[at] != DASH:
            all_numbers.append(_number(parameter, pieces[at], minutes=minutes))
            at += 1
            continue
        if not all_numbers or at + 1 == len(pieces) or pieces[at + 1] == DASH:
            raise parameter.error("formats_vdbench.values.dash")
        if at + 2 == len(pieces) or pieces[at + 2] == DASH:
            raise parameter.error("formats_vdbench.values.no_step")
        end = _number(parameter, pieces[at + 1], minutes=minutes)
        all_numbers += _unfolded(parameter, all_numbers[-1], end, pieces[at + 2], minutes=minutes)
        at += 3
    return tuple(all_numbers)


def _unfolded(parameter: Parameter, begin: Number, end: Number, step: str, *, minutes: bool) -> list[Number]:
    """Return what follows `begin` up to `end`."""
    low, high = begin.value, end.value
    if begin.percent != end.percent:
        raise parameter.error("formats_vdbench.values.one_percentage")
    values: list[float] = []
    if step.lower() == "d":
        if low <= 0 or high <= 0:
            raise parameter.error("formats_vdbench.values.doubling")
        factor = 2.0 if low < high else 0.5
        value = low * factor
        while low < value <= high or high <= value < low:
            values.append(value)
            value *= factor
    else:
        by = _number(parameter, step, minutes=minutes).value
        if by <= 0 or high < low:
            raise parameter.error(
                "formats_vdbench.values.range_falls", low=f"{low:g}", high=f"{high:g}", by=f"{by:g}"
            )
        if (high - low) / by > MAX_VALUES:
            raise parameter.error("formats_vdbench.values.range_long", most=MAX_VALUES)
        count = int((high - low) / by + 1e-9)
        values = [low + by * step_number for step_number in range(1, count + 1)]
    return [Number(value, begin.percent) for value in values]


def number(parameter: Parameter) -> Number:
    """Read exactly one number."""
    return _one(parameter, numbers(parameter))


def seconds(parameter: Parameter) -> int:
    """Read whole seconds; `m` stands for minutes."""
    duration = _one(parameter, numbers(parameter, minutes=True))
    if duration.percent or duration.value < 0:
        raise parameter.error("formats_vdbench.values.seconds", found=repr(parameter.text))
    if duration.value > MAX_S:
        raise parameter.error("formats_vdbench.values.seconds_most", found=repr(parameter.text), most=MAX_S)
    return int(duration.value)


def _one(parameter: Parameter, amounts: Sequence[Number]) -> Number:
    if len(amounts) != 1:
        raise parameter.error("formats_vdbench.values.one_value", amounts=len(amounts))
    return amounts[0]


def whole(parameter: Parameter, *, least: int = 0, most: int = 2**31 - 1) -> int:
    """Read one whole number, not a percentage."""
    amount = number(parameter)
    if amount.percent or not least <= amount.value <= most or amount.value != int(amount.value):
        raise parameter.error(
            "formats_vdbench.values.whole", found=repr(parameter.text), least=least, most=most
        )
    return int(amount.value)


def percent(parameter: Parameter) -> float:
    """Read a share of 100, written with or without a percent sign."""
    share = number(parameter).value
    if not 0 <= share <= 100:
        raise parameter.error("formats_vdbench.values.percent", found=repr(parameter.text))
    return share


def name(parameter: Parameter) -> str:
    """Read one name."""
    if len(parameter.pieces) != 1 or not parameter.pieces[0].strip():
        raise parameter.error("formats_vdbench.values.name", found=repr(parameter.text[:40]))
    return parameter.pieces[0]


def names(parameter: Parameter) -> tuple[str, ...]:
    """Read names, ranges such as (sd1-sd9) unfolded; `*` stays."""
    if not parameter.listed:
        return (parameter.text,)
    all_names: list[str] = []
    pieces = list(parameter.pieces)
    while pieces:
        piece = pieces.pop(0)
        if piece != DASH:
            all_names.append(piece)
            continue
        if not all_names or not pieces or pieces[0] == DASH:
            raise parameter.error("formats_vdbench.values.dash_of_names")
        all_names += _between(parameter, all_names[-1], pieces.pop(0))
    return tuple(all_names)


def _between(parameter: Parameter, first: str, last: str) -> list[str]:
    low, high = _NAME_END.fullmatch(first), _NAME_END.fullmatch(last)
    if low is None or high is None or (low[1][-1:].isdigit() or high[1][-1:].isdigit()):
        raise parameter.error("formats_vdbench.values.names", first=first, last=last)
    if low[1] != high[1]:
        raise parameter.error("formats_vdbench.values.names_differ", first=first, last=last)
    begin, end = int(low[2]), int(high[2])
    if begin >= end:
        raise parameter.error("formats_vdbench.values.names_fall", first=first, last=last)
    if end - begin > MAX_VALUES:
        raise parameter.error("formats_vdbench.values.names_many", first=first, last=last, most=MAX_VALUES)
    return [f"{low[1]}{number}" for number in range(begin + 1, end + 1)]


def texts(parameter: Parameter) -> tuple[str, ...]:
    """Read values as they are written."""
    return parameter.pieces if parameter.listed else (parameter.text,)


def yes(parameter: Parameter) -> bool:
    """Read yes or no, of which the first letter counts."""
    answer = name(parameter).lower()
    if not answer.startswith(("y", "n")):
        raise parameter.error("formats_vdbench.values.yes_or_no", found=repr(answer))
    return answer.startswith("y")


def choice(parameter: Parameter, text: str, valid: Sequence[str]) -> str:
    """Return the valid word that begins with a text; the first one counts."""
    for word in valid:
        if text and word.startswith(text.lower()):
            return word
    raise parameter.error(
        "formats_vdbench.values.unknown_word", hint=nearest(text, valid), found=repr(text[:40])
    )


def shown(value: float) -> str:
    """Write a number as vdbench shows it in the names of runs: 4k, 1m, 0.1."""
    if value < 1024:
        return f"{value:.1f}".removesuffix(".0") if value == round(value, 1) else f"{value:g}"
    for unit, size in reversed(_UNITS.items()):
        if value >= size:
            return f"{value / size:.3f}".removesuffix(".000") + unit
    return f"{value:g}"
