"""Files of one JSON object per line whose last line may be cut off.

Knows that only a line with its line end was written in full. Knows no line's meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from loadstone import messages
from loadstone.bundle import members
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MOST_BYTES: Final = 1 << 26
"""Of one line: a longer one is none."""


def read_lines(
    path: Path,
    *,
    without: Sequence[str] = (),
    say: Callable[[str], None] | None = None,
    right: Callable[[Any], bool] = lambda value: isinstance(value, dict),
    last: str | None = None,
) -> list[dict[str, Any]]:
    """Return the objects of the whole lines; no file is none.

    Lines that cannot be read, or are not `right`, are left out, and `say` is told of them in words.
    Keys in `without` are left out, so that what is bulky and not needed takes no memory. One of them that
    is the `last` of its line is cut off unread: only for files that are known to be as they were written.
    Raises `BundleError` for what is no file.
    """
    if not members.exists(path.parent, path.name):
        return []
    objects: list[dict[str, Any]] = []
    wrong: list[int] = []
    cut_from = None if last is None else f'"{last}":'.encode()
    for number, line in enumerate(_whole(path), 1):
        try:
            value = from_json(line if cut_from is None else _cut(line, cut_from), allow_inf_nan=False)
        except ValueError:
            value = None
        if isinstance(value, dict) and right(value):
            for key in without:
                value.pop(key, None)
            objects.append(value)
        else:
            wrong.append(number)
    if wrong and say is not None:
        say(messages.say("bundle.fault.unreadable", file=path.name, place=_line_numbers(wrong)))
    return objects


def _cut(line: bytes, key: bytes) -> bytes:
    """Return a line without a list at its end; whole where it has none, or another object before it."""
    at = line.find(key)
    if at < 0 or not line.endswith(b"]}\n") or line.find(b"{", 1, at) >= 0:
        return line
    return line[:at].rstrip(b", ") + b"}"


def _line_numbers(wrong: Sequence[int]) -> str:
    if len(wrong) == 1:
        return f"line {wrong[0]}"
    return say("bundle.host.wrong_lines", lines=len(wrong), first=wrong[0])


def _whole(path: Path) -> Iterator[bytes]:
    with members.open_member(path.parent, path.name) as file:
        while line := file.readline(MOST_BYTES):
            whole = line.endswith(b"\n")
            if not whole and len(line) < MOST_BYTES:
                return
            yield line if whole else b""
            while not whole and (rest := file.readline(MOST_BYTES)):
                whole = rest.endswith(b"\n")
