r"""Text as it may go out to a terminal, a page or a table, whoever wrote it.

Names of jobs, files and devices, other tools' results and job files are foreign: they may hold
escape sequences that rewrite the screen, marks that turn the direction of writing round, or
ends of lines that fake messages. All of them go out as `\x1b` or `\u202e`, which a JSON string
takes for the same character. Knows no colours: `screen` does.
"""

from __future__ import annotations

import contextlib
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""How a cell begins that a spreadsheet takes for a formula."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")


_DOUBTFUL: Final = re.compile(r"[^\t\n\x20-\x7e]")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that have no picture of their own."""
_MARKDOWN: Final = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "`": "\\`", "[": "\\[", "<": "&lt;", "&": "&amp;"}
)
_END_OF_LINE: Final = re.compile(r"\n")


def printable(text: str) -> str:
    """Return a text in which everything can be seen; ends of lines and tabs stay."""
    return text if text.isprintable() else _DOUBTFUL.sub(_escaped, text)


def line(text: str) -> str:
    """Return a text that takes one line whatever it holds."""
    return _END_OF_LINE.sub(r"\\n", printable(text))


def message(text: str) -> str:
    """Return a message whose further lines are indented, as ours are: an end of line in a name fakes none."""
    return re.sub(r"\n(?!  )", r"\\n", printable(text))


def markdown(text: str) -> str:
    """Return a text in Markdown: no column, line, tag, link, picture or code of its own."""
    return line(text).translate(_MARKDOWN)


def fenced(text: str) -> str:
    """Return a block of a text as it is in Markdown, which nothing in it ends."""
    longest = max((len(backticks) for backticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{printable(text).rstrip()}\n{fence}"


def cell(text: str) -> str:
    """Return the text of a table's cell that no spreadsheet computes; numbers stay numbers."""
    text = line(text)
    return f"'{text}" if text.startswith(FORMULA) and not _NUMBER.match(text) else text


def _escaped(match: re.Match[str]) -> str:
    if unicodedata.category(match[0]) not in _HIDDEN:
        return match[0]
    code = ord(match[0])
    if code < 0x20:  # Never in a JSON document, unlike the rest.
        return f"\\x{code:02x}"
    pair = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pair[at] << 8 | pair[at + 1]:04x}" for at in range(0, len(pair), 2))


class _Printable:
    """A text stream through which only printable text goes; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        """The stream itself, for those who move the cursor and make their text printable themselves."""

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for one in lines:
            self.write(one)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream behind, for a line that is drawn over and over."""
    beneath: TextIO = getattr(stream, "rich_proxied_file", stream)
    return beneath


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Let only printable text through standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Printable(unfiltered(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
