"""A page of help, as text for a terminal of any width, from `help.json`.

`make docs` writes that file from the verbs (`reference_page.helps`), and a test keeps it fresh: to read it
takes a small part of the time that the parser of arguments needs to find out what there is to say. Knows
lines, frames and colours; does not know the verbs.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from itertools import groupby, takewhile
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone.printable import unfiltered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILE: Final = Path(__file__).with_name("help.json")
FLAGS: Final = {"--help", "-h"}
WITHOUT_TERMINAL: Final = 80
"""Columns of what is no terminal, or does not tell."""
_NAMES_SHARE: Final = 0.35
_GAP: Final = "  "
_FRAME_COLUMNS: Final = 4
_ROUND: Final = tuple("╭─╮│╰╯")
_ASCII: Final = tuple("+-+|++")
STYLES: Final = {
    "name": "36",
    "marker": "1;31",
    "choices": "38;5;246",
    "default": "38;5;246",
    "required": "31",
    "usage": "1",
}
_RESET: Final = "\x1b[0m"

Piece = tuple[str, str]
"""Text, and the name of its style; an empty name for none."""


def shown(words: Sequence[str]) -> bool:
    """Print the page that a command line wants, as wide as the terminal is; False where it wants none."""
    if words and not FLAGS & {*takewhile(lambda word: word != "--", words)}:
        return False
    pages = json.loads(FILE.read_text(encoding="utf-8"))
    verb = "" if not words or (len(words) == 1 and words[0] in FLAGS) else words[0]
    if verb not in pages:
        return False
    text = page(pages[verb], _columns(), colour=_colour(), ascii_only=not _unicode())
    unfiltered(sys.stdout).write(text)
    return True


def page(content: dict[str, Any], columns: int, *, colour: bool = False, ascii_only: bool = False) -> str:
    """Return a page of so many columns."""
    lines: list[list[Piece]] = [*_wrapped([(content["usage"], "usage")], columns), []]
    if content["description"]:
        lines += [*_wrapped([(content["description"], "")], columns), []]
    for panel in content["panels"]:
        lines += _framed(panel, columns, _ASCII if ascii_only else _ROUND)
    if content["epilogue"]:
        lines += [[], *_wrapped([(content["epilogue"], "")], columns)]
    return "".join(_text(line, colour=colour) + "\n" for line in lines)


def _text(line: list[Piece], *, colour: bool) -> str:
    alike = [(style, "".join(text for text, _ in group)) for style, group in groupby(line, itemgetter(1))]
    return "".join(
        f"\x1b[{STYLES[style]}m{text}{_RESET}" if colour and style else text for style, text in alike
    )


def _framed(panel: dict[str, Any], columns: int, frame: tuple[str, ...]) -> Iterator[list[Piece]]:
    left, flat, right, side, left_below, right_below = frame
    title = f" {panel['title']} "
    yield [(f"{left}{flat}{title}{flat * (columns - 3 - len(title))}{right}", "")]
    for line in _rows(panel["rows"], columns - _FRAME_COLUMNS, math.ceil(columns * _NAMES_SHARE)):
        used = sum(len(text) for text, _ in line)
        yield [(f"{side} ", ""), *line, (f"{' ' * (columns - _FRAME_COLUMNS - used)} {side}", "")]
    yield [(f"{left_below}{flat * (columns - 2)}{right_below}", "")]


def _rows(rows: list[dict[str, Any]], columns: int, most: int) -> Iterator[list[Piece]]:
    marked = any(row["required"] for row in rows)
    names = [_names(row["name"], most) for row in rows]
    widest = max(len(line) for lines in names for line in lines)
    rest = columns - widest - len(_GAP) - (1 + len(_GAP) if marked else 0)
    for row, labels in zip(rows, names, strict=True):
        description = [(row["text"], ""), *((text, style) for style, text in row["more"])]
        described = list(_wrapped(_joined(description), rest))
        for number in range(max(len(labels), len(described))):
            label = labels[number] if number < len(labels) else ""
            line: list[Piece] = [("*" if row["required"] and not number else " ", "marker"), (_GAP, "")]
            line = [*(line if marked else []), (label, "name"), (" " * (widest - len(label)) + _GAP, "")]
            yield line + (described[number] if number < len(described) else [])


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Put a space between pieces."""
    pieces = [piece for piece in pieces if piece[0]]
    return [one for piece in pieces for one in (piece, (" ", ""))][:-1]


def _names(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if len(longer) <= width or not lines[-1].strip():
            lines[-1] = longer
        else:
            lines.append(_GAP + word)
    return lines


def _wrapped(pieces: list[Piece], width: int) -> Iterator[list[Piece]]:
    """Break pieces into lines of whole words; a word longer than a line is cut."""
    line: list[Piece] = []
    used = 0
    for text, style in pieces:
        for word in re.findall(r"\n|[^\S\n]+|\S+", text):
            if word == "\n" or (not word.isspace() and used + len(word) > width):
                yield _stripped(line)
                line, used = [], 0
            if word == "\n" or (word.isspace() and used + len(word) > width):
                continue
            while len(word) > width:
                yield [(word[:width], style)]
                word = word[width:]  # noqa: PLW2901 # the rest of it
            line.append((word, style))
            used += len(word)
    yield _stripped(line)


def _stripped(line: list[Piece]) -> list[Piece]:
    while line and line[-1][0].isspace():
        line.pop()
    return line


def _unicode() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def _colour() -> bool:
    """Decide as everything else here that prints: `NO_COLOR`, `FORCE_COLOR`, and what the terminal is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in {"dumb", "unknown", ""}


def _columns() -> int:
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return int(named)
    for number in (0, 1, 2):
        try:
            return os.get_terminal_size(number).columns or WITHOUT_TERMINAL
        except OSError:
            continue
    return WITHOUT_TERMINAL
