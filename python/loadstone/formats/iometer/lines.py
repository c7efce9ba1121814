"""The shape of an `.icf` file: keys, values and sections.

Knows that a line beginning with an apostrophe is a key (or a remark under one) and that the
next other line is its value, which numbers and words a value may hold, and each one's line.
Knows no section.
Grammar: Iometer User's Guide, appendix "Test configuration file format"; Iometer 1.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, Where
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MAX_FILE_BYTES: Final = 16 << 20
MAX_NUMBER: Final = 2**63 - 1
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class IcfLine:
    """One line without the blanks around it."""

    text: str
    number: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """A key and its value; `value` is empty where the file has none."""

    key: str
    """Without the apostrophe, in lower case, blanks as one."""
    value: str
    where: Where
    """Of the value; of the key where there is none."""

    def numbers(self, names: str) -> list[int]:
        """Return the value as the whole numbers that `names` lists, separated by blanks or commas."""
        wanted = names.split(", ")
        words = self.value.replace(",", " ").split()
        values = [number(word) for word in words]
        if len(words) != len(wanted) or None in values:
            raise self.wrong("formats_iometer.expected.numbers", values=len(wanted), names=names)
        return [one for one in values if one is not None]

    def fields(self) -> list[str]:
        """Return what commas separate; a comma at the end separates nothing."""
        return [field.strip() for field in self.value.removesuffix(",").split(",")]

    def one_of(self, words: Iterable[str]) -> str:
        """Return the value, which must be one of these words in any case of letters."""
        known = list(words)
        if self.value.upper() in known:
            return self.value.upper()
        raise self.wrong(
            "formats_iometer.expected.one_of", hint=nearest(self.value.upper(), known), known=", ".join(known)
        )

    def wrong(self, key: str, /, *, hint: str | None = None, **values: str | int) -> InputError:
        """Make the error of a value that is not what was expected, which is a message of the catalogue."""
        shown = f"found {self.value[:_SHOWN]!r}" if self.value else "there is no value"
        return make_error(
            InputError,
            "formats_iometer.lines.found",
            where=self.where,
            hint=hint,
            found=shown,
            expected=say(key, **values),
        )


def number(word: str) -> int | None:
    """Return a whole number that is not negative; None for anything else."""
    if re.fullmatch(r"[0-9]{1,19}", word) is None:
        return None
    return int(word) if int(word) <= MAX_NUMBER else None


def plain(text: str) -> str:
    """Return a key as keys are compared: in lower case, blanks as one, none around commas."""
    return re.sub(r"\s*,\s*", ",", " ".join(text.removeprefix("'").split()).lower())


class IcfLines:
    """A file, read from its first line to its last."""

    def __init__(self, text: str, name: str, keys: Collection[str]) -> None:
        """`keys` are all that a file of any age may have; other key lines are remarks."""
        self.name = name
        self._keys = keys
        self._at = 0
        self._lines = [
            IcfLine(raw.strip(), at, raw.startswith("'")) for at, raw in enumerate(text.split("\n"), start=1)
        ]

    def where(self, line: IcfLine | None, option: str | None = None) -> Where:
        """Return the place of a line; the last one's for the end of the file."""
        return Where(self.name, line.number if line else len(self._lines), option)

    def peek(self) -> IcfLine | None:
        """Return the next line that is not blank; None at the end."""
        while self._at < len(self._lines) and not self._lines[self._at].text:
            self._at += 1
        return self._lines[self._at] if self._at < len(self._lines) else None

    def take(self) -> IcfLine | None:
        """Return the next line that is not blank, and go on; None at the end."""
        line = self.peek()
        self._at += line is not None
        return line

    def pair(self, inside: str) -> Pair:
        """Return the next key with its value. `inside` names the section, for errors."""
        line = self.take()
        if line is None:
            raise make_error(
                InputError, "formats_iometer.lines.cut_off", where=self.where(None), inside=inside
            )
        if not line.is_key:
            raise make_error(
                InputError,
                "formats_iometer.lines.no_line",
                where=self.where(line),
                line=f"{line.text[:_SHOWN]!r}",
                inside=inside,
            )
        key = plain(line.text)
        if key.startswith("end "):
            return Pair(key, "", self.where(line))
        self._skip_remarks()
        value = self._lines[self._at] if self._at < len(self._lines) else None
        if value is None or value.is_key:
            return Pair(key, "", self.where(line, line.text[1:]))
        self._at += 1
        return Pair(key, value.text, self.where(value, line.text[1:].strip()))

    def has_key(self, key: str) -> bool:
        """Tell whether a key stands anywhere in the file."""
        return any(line.is_key and plain(line.text) == key for line in self._lines)

    def values(self, inside: str) -> Iterable[tuple[str, Where]]:
        """Yield the lines up to the next key, blank ones left out."""
        while (line := self.peek()) is not None and not line.is_key:
            self._at += 1
            yield line.text, self.where(line, inside)

    def unknown(self, pair: Pair, inside: str, known: Iterable[str]) -> InputError:
        """Make the error of a key that its section does not have."""
        return make_error(
            InputError,
            "formats_iometer.lines.no_key",
            where=pair.where,
            hint=nearest(pair.key, known),
            inside=inside,
            key=f"{pair.key!r}",
        )

    def _skip_remarks(self) -> None:
        """Go past key lines that are no keys, such as the heading of three numbers."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.is_key or plain(line.text) in self._keys or plain(line.text).startswith("end "):
                return
            self._at += 1
