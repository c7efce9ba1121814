"""Numbers as fio writes them: sizes, times, percentages, arithmetic.

Knows the suffixes, the two readings of `k` and `ki`, and where fio's own reading of a
number differs from what its author must have meant: there the meaning is taken and a
note says what fio would have done (`strict` keeps fio's value). Knows no option.
Grammar: fio's HOWTO, sections "Parameter types" and "Time".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError
from loadstone.messages import make_error, say
from loadstone.workload.model import Note, NoteKind
from loadstone.workload.placement import Amount

if TYPE_CHECKING:
    from loadstone.errors import Where

MAX_NUMBER: Final = 2**63 - 1
_NUMBER = re.compile(
    r"(?P<sign>[-+]?)(?P<digits>0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?|\.\d+)(?P<suffix>[a-zA-Z%]*)\Z"
)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIME_NS: Final = {
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "us": 1_000,
    "usec": 1_000,
    "ns": 1,
    "nsec": 1,
}
SECOND_NS: Final = 1_000_000_000
MICROSECOND_NS: Final = 1_000


@dataclass(slots=True)
class Reading:
    """What it takes to read one value, and the notes taken on the way."""

    where: Where
    kb_base: int = 1024
    strict: bool = False
    blank_before: bool = False
    """There was a blank between `=` and the value: fio then reads no suffix."""
    notes: list[Note] = field(default_factory=list)

    def note(self, kind: NoteKind, text: str) -> None:
        """Keep a note about this value."""
        self.notes.append(Note(where=self.where, text=text, kind=kind))

    def error(self, key: str, /, *, hint: str | None = None, **values: str | int | None) -> InputError:
        """Return (not raise) an error at this value, with a message of the catalogue."""
        return make_error(InputError, key, where=self.where, hint=hint, **values)


def _split(text: str, reading: Reading, expected: str) -> tuple[Fraction, str]:
    """Return the number and its suffix in lower case."""
    match = _NUMBER.match(text.strip())
    if match is None:
        raise reading.error("formats_fio.numbers.form", found=repr(text), expected=expected)
    digits = match["digits"]
    number = Fraction(int(digits, 16)) if digits[:2].lower() == "0x" else Fraction(digits.rstrip(".") or "0")
    if "." in digits:
        reading.note("trap", say("formats_fio.numbers.fraction", found=repr(text.strip())))
    return (-number if match["sign"] == "-" else number), match["suffix"].lower()


def _bounded(number: Fraction, text: str, reading: Reading) -> int:
    if abs(number) > MAX_NUMBER:
        raise reading.error("formats_fio.numbers.too_large", found=repr(text.strip()))
    return int(number)


def multiplier(suffix: str, kb_base: int, *, strict: bool) -> int | None:
    """Bytes per unit of a size suffix in lower case, or None when there is no such suffix.

    `kib` is 1024 and `k`, `kb` are `kb_base`; with `strict` fio's way: `kib` is 1000 if `kb_base` is
    1024, and `ki` is read as `k`.
    """
    match = re.fullmatch(r"([kmgtp]?)(i?)(b?)", suffix)
    if match is None or (match[2] and not match[1]):
        return None
    if not match[2] or (strict and not match[3]):
        base = kb_base
    else:
        base = 1000 if strict and kb_base == 1024 else 1024
    return int(base ** _POWERS[match[1]])


def size(text: str, reading: Reading, *, signed: bool = False) -> int:
    """Read a number with an optional size suffix, such as `4k`; arithmetic in parentheses."""
    if text.lstrip().startswith("("):
        return evaluate(text, reading)
    if reading.strict and text.rstrip().endswith(")"):
        reading.note("trap", say("formats_fio.numbers.bracket_unopened", found=repr(text.strip())))
        text = text.rstrip().rstrip(")")
    expected = "a number such as 4096, 4k, 1m or (2*4k)"
    number, suffix = _split(text, reading, expected)
    if suffix == "z":
        raise reading.error("formats_fio.numbers.zones", found=repr(text.strip()))
    unit = multiplier(suffix, reading.kb_base, strict=reading.strict)
    if unit is None:
        raise reading.error("formats_fio.numbers.size_suffix", found=repr(text.strip()), suffix=repr(suffix))
    if number < 0 and not signed:
        raise reading.error("formats_fio.numbers.negative", found=repr(text.strip()), expected=expected)
    if "i" in suffix:
        fio, meant = (
            number * (multiplier(suffix, reading.kb_base, strict=how) or 1) for how in (True, False)
        )
        if fio != meant:
            reading.note(
                "trap",
                say(
                    "formats_fio.numbers.binary_suffix",
                    found=repr(text.strip()),
                    number=int(fio),
                    kb_base=reading.kb_base,
                    effect=_effect(int(meant), reading),
                ),
            )
    if reading.blank_before and unit != 1:
        unit = _after_blank(text, number, unit, reading)
    return _bounded(number * unit, text, reading)


def _after_blank(text: str, number: Fraction, unit: int, reading: Reading) -> int:
    """Decide the unit of a value with a blank before it, where fio drops the suffix."""
    effective_unit = 1 if reading.strict else unit
    reading.note(
        "trap",
        say(
            "formats_fio.numbers.blank_before_size",
            found=repr(text.strip()),
            number=int(number),
            effect=_effect(int(number * effective_unit), reading),
        ),
    )
    return effective_unit


def _effect(number: int, reading: Reading) -> str:
    """Say whether a value stays as fio reads it, or is read as it is meant."""
    return (
        say("formats_fio.numbers.kept")
        if reading.strict
        else say("formats_fio.numbers.read_as", number=number)
    )


def integer(text: str, reading: Reading, low: int, high: int) -> int:
    """Read a plain number (fio allows size suffixes here, too) and check its bounds."""
    value = size(text, reading, signed=True)
    if not low <= value <= high:
        raise reading.error("formats_fio.numbers.out_of_range", found=text.strip(), low=low, high=high)
    return value


def amount(text: str, reading: Reading, *, over_is_all: bool = False) -> Amount:
    """Read bytes or a percentage. `over_is_all`: more than 100 % means all, as fio takes its `size`."""
    if not text.rstrip().endswith("%"):
        return Amount(bytes=size(text, reading))
    number, _ = _split(text.rstrip()[:-1], reading, "a percentage such as 80%")
    if over_is_all and number > 100:
        reading.note("trap", say("formats_fio.numbers.more_than_all", found=repr(text.strip())))
        number = Fraction(100)
    if not 0 <= number <= 100:
        raise reading.error("formats_fio.numbers.percent", found=repr(text.strip()))
    return Amount(percent=float(number))


def time_ns(text: str, reading: Reading, default_unit_ns: int) -> int:
    """Read a time; a number without suffix counts `default_unit_ns`. Nanoseconds."""
    if text.lstrip().startswith("("):
        return evaluate(text, reading) * default_unit_ns
    number, suffix = _split(text, reading, "a time such as 30, 30s, 5m, 1h, 250ms or 10us")
    if suffix and suffix not in _TIME_NS:
        raise reading.error("formats_fio.numbers.time_suffix", found=repr(text.strip()), suffix=repr(suffix))
    if number < 0:
        raise reading.error("formats_fio.numbers.time_negative", found=repr(text.strip()))
    unit = _TIME_NS.get(suffix, default_unit_ns)
    if reading.blank_before and suffix and unit != default_unit_ns:
        effective_unit = default_unit_ns if reading.strict else unit
        strict, lenient = (
            "formats_fio.numbers.blank_before_time_kept",
            "formats_fio.numbers.blank_before_time",
        )
        reading.note("trap", say(strict if reading.strict else lenient, found=repr(text.strip())))
        unit = effective_unit
    return _bounded(number * unit, text, reading)


_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?|\.\d+)([a-zA-Z]*)|([-+*/%^()]))")
_MAX_DEPTH: Final = 50


def evaluate(text: str, reading: Reading) -> int:
    """Work out `+ - * / % ^` and parentheses over numbers with units, e.g. `(4*1k+2k)`.

    Division keeps fractions until the end, where the result is cut to an integer.
    """
    value = _Arithmetic(text, reading).value()
    return _bounded(value, text, reading)


class _Arithmetic:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.text = text
        self.reading = reading
        self.tokens: list[Fraction | str] = []
        self.depth = 0
        position = 0
        body = text.rstrip()
        while position < len(body):
            match = _TOKEN.match(body, position)
            if match is None:
                raise self.error()
            self.tokens.append(match[3] or self._number(match[1], match[2]))
            position = match.end()

    def error(self) -> InputError:
        return self.reading.error("formats_fio.numbers.arithmetic", found=repr(self.text.strip()))

    def _number(self, digits: str, suffix: str) -> Fraction:
        number = Fraction(int(digits, 16)) if digits[:2].lower() == "0x" else Fraction(digits)
        unit = multiplier(suffix.lower(), self.reading.kb_base, strict=self.reading.strict)
        if unit is None:
            raise self.error()
        return number * unit

    def value(self) -> Fraction:
        result = self._sum()
        if self.tokens:
            raise self.error()
        return result

    def _take(self, *wanted: str) -> str | None:
        if self.tokens and isinstance(self.tokens[0], str) and self.tokens[0] in wanted:
            return str(self.tokens.pop(0))
        return None

    def _sum(self) -> Fraction:
        left = self._product()
        while operator := self._take("+", "-"):
            right = self._product()
            left = left + right if operator == "+" else left - right
        return left

    def _product(self) -> Fraction:
        left = self._power()
        while operator := self._take("*", "/", "%"):
            right = self._power()
            if operator == "*":
                left *= right
            elif right == 0:
                raise self.error()
            else:
                left = left / right if operator == "/" else left % right
        return left

    def _power(self) -> Fraction:
        base = self._atom()
        if not self._take("^"):
            return base
        exponent = self._power()
        if exponent.denominator != 1 or not 0 <= exponent <= 63 or abs(base) > MAX_NUMBER:
            raise self.error()
        return Fraction(base**exponent)

    def _atom(self) -> Fraction:
        self.depth += 1
        if self.depth > _MAX_DEPTH or not self.tokens:
            raise self.error()
        if self._take("-"):
            value = -self._atom()
        elif self._take("("):
            value = self._sum()
            if not self._take(")"):
                raise self.error()
        else:
            token = self.tokens.pop(0)
            if isinstance(token, str):
                raise self.error()
            value = token
        self.depth -= 1
        return value
