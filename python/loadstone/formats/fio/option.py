"""One option of fio and what is done about it, and the helpers to write such rows.

Knows what a row holds and the common shapes of values (flag, number, size, time, choice,
triplet). Knows no option by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from loadstone.formats.fio import numbers, values
from loadstone.formats.fio.numbers import Reading
from loadstone.messages import say
from loadstone.messages.suggest import nearest

Verdict = Literal["honoured", "harmless", "refused"]
Fields = dict[str, Any]
"""Job field (`logs.bw` for nested ones) to value."""
Reader = Callable[[str | None, Reading, Mapping[str, Any]], Fields]
"""Takes the text (None: no value given), and the fields read so far."""

INT32 = 2**31 - 1
INT63 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Option:
    """A row of the table.

    `why` says for a harmless option why it changes nothing, for a refused one why it is
    refused and what to do instead, for an honoured one anything worth knowing.
    """

    name: str
    verdict: Verdict
    why: str = ""
    read: Reader | None = None
    aliases: tuple[str, ...] = ()
    flag: bool = False
    """May be written without a value."""
    off: tuple[str, ...] = ()
    """Values of a refused option that ask for nothing, and are accepted."""
    engine: str = ""
    """Engine the option belongs to, or several with commas between; empty: all."""


def _need(text: str | None, reading: Reading) -> str:
    if text is None or not text.strip():
        raise reading.error("formats_fio.option.no_value")
    return text


_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def truth(text: str | None, reading: Reading) -> bool:
    """Read a truth value; none at all is true."""
    word = "1" if text is None else text.strip().lower()
    if word not in _TRUE + _FALSE:
        raise reading.error("formats_fio.option.no_truth", found=repr(text))
    return word in _TRUE


def switched(text: str | None, reading: Reading) -> bool:
    """Read an option that may stand without a value, with one: as in fio any number but 0 is true."""
    digits = (text or "").strip()
    if digits.isascii() and digits.isdigit() and int(digits) > 1:
        reading.note("trap", say("formats_fio.option.means_one", number=digits))
        return True
    return truth(text, reading)


def honoured(
    name: str, read: Reader, *aliases: str, why: str = "", flag: bool = False, engine: str = ""
) -> Option:
    """Return the row of an option that is done."""
    return Option(name, "honoured", why, read, aliases, flag, engine=engine)


def flag(name: str, field: str, *aliases: str, why: str = "", engine: str = "") -> Option:
    """Return the row of an option that may stand without a value."""
    return honoured(
        name, lambda text, r, _: {field: switched(text, r)}, *aliases, why=why, flag=True, engine=engine
    )


def boolean(name: str, field: str, *aliases: str, why: str = "") -> Option:
    """Return the row of a 0-or-1 option."""
    return honoured(name, lambda text, r, _: {field: truth(_need(text, r), r)}, *aliases, why=why)


def number(name: str, field: str, *aliases: str, low: int = 0, high: int = INT32, why: str = "") -> Option:
    """Return the row of an integer option."""
    return honoured(
        name, lambda text, r, _: {field: numbers.integer(_need(text, r), r, low, high)}, *aliases, why=why
    )


def size(name: str, field: str, *aliases: str, why: str = "") -> Option:
    """Return the row of a size in bytes."""
    return honoured(name, lambda text, r, _: {field: numbers.size(_need(text, r), r)}, *aliases, why=why)


def amount(name: str, field: str, *aliases: str, why: str = "", over_is_all: bool = False) -> Option:
    """Return the row of a size in bytes or percent."""
    return honoured(
        name,
        lambda text, r, _: {field: values.amount_or_none(_need(text, r), r, over_is_all=over_is_all)},
        *aliases,
        why=why,
    )


def seconds(name: str, field: str, *aliases: str, why: str = "") -> Option:
    """Return the row of a time whose plain numbers are seconds."""
    return honoured(
        name,
        lambda text, r, _: {field: numbers.time_ns(_need(text, r), r, numbers.SECOND_NS)},
        *aliases,
        why=why,
    )


def microseconds(name: str, field: str, *aliases: str, why: str = "") -> Option:
    """Return the row of a time whose plain numbers are microseconds."""
    return honoured(
        name,
        lambda text, r, _: {field: numbers.time_ns(_need(text, r), r, numbers.MICROSECOND_NS)},
        *aliases,
        why=why,
    )


def text(name: str, field: str, *aliases: str, why: str = "") -> Option:
    """Return the row of a text."""
    return honoured(name, lambda t, r, _: {field: _need(t, r).strip()}, *aliases, why=why)


def choice(name: str, field: str, choices: Mapping[str, object], *aliases: str, why: str = "") -> Option:
    """Return the row of one of several words."""

    def read(value: str | None, reading: Reading, _: Mapping[str, Any]) -> Fields:
        word = _need(value, reading).strip()
        if word not in choices:
            raise reading.error(
                "formats_fio.option.unknown_word", hint=nearest(word, choices), found=repr(word)
            )
        return {field: choices[word]}

    return honoured(name, read, *aliases, why=why)


def parsed(
    name: str, field: str, read: Callable[[str, Reading], object], *aliases: str, why: str = ""
) -> Option:
    """Return the row of an option with a notation of its own."""
    return honoured(name, lambda t, r, _: {field: read(_need(t, r), r)}, *aliases, why=why)


def triplet(
    name: str, field: str, read: Callable[[str, Reading], object], *aliases: str, why: str = ""
) -> Option:
    """Return the row of an option with values for reads, writes and trims."""
    return honoured(
        name,
        lambda t, r, fields: {field: values.triple(_need(t, r), r, fields.get(field), read)},
        *aliases,
        why=why,
    )


def harmless(name: str, why: str, *aliases: str, flag: bool = False, engine: str = "") -> Option:
    """Return the row of an option that changes nothing here."""
    return Option(name, "harmless", why, None, aliases, flag, engine=engine)


def refused(
    name: str, why: str, *aliases: str, off: tuple[str, ...] = (), flag: bool = False, engine: str = ""
) -> Option:
    """Return the row of an option that is not done, with values that ask for nothing."""
    return Option(name, "refused", why, None, aliases, flag, off, engine)
