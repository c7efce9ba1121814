"""Lines to parameters: quotes, continuation, parentheses, `keyword=value`.

Knows the characters that mean something. Knows no keyword by its meaning, besides the few in
whose lists a dash is no range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loadstone.errors import InputError, Where
from loadstone.formats import quote
from loadstone.messages import make_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.formats.vdbench.lines import ParameterLine

MAX_VALUES: Final = 10_240
DASH: Final = "-"
"""The piece between the two ends of a range."""
_QUOTED: Final = {" ": "\ue000", ",": "\ue001", "=": "\ue002", "-": "\ue003", "(": "\ue004", ")": "\ue005"}
"""What quotes protect, as characters that mean nothing until the value is taken apart."""
_HIDE: Final = {ord(plain): hidden for plain, hidden in _QUOTED.items()}
_SHOW: Final = {ord(hidden): plain for plain, hidden in _QUOTED.items()}
_NO_RANGES: Final = ("host", "hd", "replay", "fileselect", "startcmd", "start_cmd", "endcmd", "end_cmd")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`keyword=value` or `keyword=(value,value,...)`."""

    keyword: str
    """In lower case, abbreviated as it was written."""
    text: str
    """The value as written, without quotes."""
    pieces: tuple[str, ...]
    """The values of a list, with `DASH` within ranges; or the value."""
    listed: bool
    where: Where

    def error(self, key: str, /, *, hint: str | None = None, **values: str | int | None) -> InputError:
        """Return an error at this place, with a message of the catalogue."""
        return make_error(InputError, key, where=self.where, hint=hint, **values)


def parameters(lines: Sequence[ParameterLine]) -> Iterator[Parameter]:
    """Take lines apart; a line that ends with a comma goes on in the next one."""
    for text, starts in _joined(lines):
        for begin, word in _words(text, starts):
            where = _place(starts, begin)
            yield _parameter(word, where)


_Starts = list[tuple[int, Where]]
"""Position in a joined line, and the line that begins there."""


def _joined(lines: Sequence[ParameterLine]) -> Iterator[tuple[str, _Starts]]:
    text, starts = "", _Starts()
    for line in lines:
        starts.append((len(text), line.where))
        text += _protected(line)
        if not text.endswith(","):
            yield text, starts
            text, starts = "", []
    if text:
        yield text, starts


def _protected(line: ParameterLine) -> str:
    """Take quotes off and hide what they protect; cut the comment after the first blank."""
    if re.search("[\ue000-\ue005]", line.text):
        raise make_error(InputError, "formats_vdbench.grammar.not_text", where=line.where)
    parts = line.text.split('"')
    if len(parts) % 2 == 0:
        if re.search(r"\s", parts[0]):
            parts = [parts[0]]  # The quote stands in the comment.
        else:
            raise make_error(InputError, "formats_vdbench.grammar.quote_open", where=line.where)
    hidden = "".join(part.translate(_HIDE) if index % 2 else part for index, part in enumerate(parts))
    return re.split(r"[ \t]", hidden, maxsplit=1)[0]


def _plain(text: str) -> str:
    return text.translate(_SHOW)


def _place(starts: _Starts, position: int) -> Where:
    return next(where for begin, where in reversed(starts) if begin <= position)


def _words(text: str, starts: _Starts) -> Iterator[tuple[int, str]]:
    """Split at commas outside of parentheses. A comma at the very end ends nothing."""
    depth, begin = 0, 0
    for position, letter in enumerate(text):
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth < 0:
                raise make_error(
                    InputError, "formats_vdbench.grammar.bracket_unopened", where=_place(starts, position)
                )
        elif letter == "," and depth == 0:
            yield begin, text[begin:position]
            begin = position + 1
    if depth:
        raise make_error(InputError, "formats_vdbench.grammar.bracket_open", where=_place(starts, begin))
    if begin < len(text):
        yield begin, text[begin:]


def _parameter(word: str, where: Where) -> Parameter:
    keyword, equals, rest = word.partition("=")
    written = _plain(keyword).strip()
    keyword = written.lower()
    shown = keyword if quote.NAME.fullmatch(written) else None
    where = Where(where.file, where.line, shown if equals else None)
    if not equals:
        at = Where(where.file, where.line)
        if not word:
            raise make_error(InputError, "formats_vdbench.grammar.nothing", where=at)
        raise make_error(InputError, "formats_vdbench.grammar.no_keyword", where=at, shown=quote.UNSHOWN)
    if len(keyword) < 2:
        raise make_error(
            InputError,
            "formats_vdbench.grammar.keyword_short",
            where=Where(where.file, where.line),
            keyword=len(keyword),
        )
    if not rest:
        raise make_error(InputError, "formats_vdbench.grammar.no_value", where=where)
    if not rest.startswith("("):
        return Parameter(keyword, _plain(rest), (_plain(rest),), listed=False, where=where)
    pattern = r"[,()]" if keyword in _NO_RANGES or keyword.startswith("misc") else r"[,()]|(-)"
    pieces = [piece for piece in re.split(pattern, rest) if piece]
    if not pieces:
        raise make_error(InputError, "formats_vdbench.grammar.list_empty", where=where)
    if len(pieces) > MAX_VALUES:
        raise make_error(InputError, "formats_vdbench.grammar.list_long", where=where, max_values=MAX_VALUES)
    plain = tuple(_plain(piece) for piece in pieces)
    return Parameter(keyword, _plain(rest), plain, listed=True, where=where)
