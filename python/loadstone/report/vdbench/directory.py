"""Pages on disk: files that grow line by line, and are right in the end.

Knows what of each page is in its file already. What is there is never taken back while runs go on, so
that whoever follows a file sees every line once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loadstone import file_name, output, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
"""How a tag begins; vdbench's own tables have `<` before a space."""


class TaggedLine(str):
    """A line with tags of ours; any other line is text, whatever a name in it looks like."""

    __slots__ = ()


@dataclass(slots=True)
class Page:
    """One file: its name without ending, and its lines."""

    name: str
    body: list[str] = field(default_factory=list)

    @property
    def file(self) -> str:
        """The file's name: jobs of other languages have paths in their names."""
        return file_name.short(self.name, ".html")

    @property
    def text(self) -> str:
        """The whole file."""
        return _shown(self.body)


def _shown(lines: Sequence[str]) -> str:
    """Return lines as they stand in a file."""
    return "".join(f"{printable.line(_escaped(line))}\n" for line in lines)


def _escaped(line: str) -> str:
    return line if isinstance(line, TaggedLine) else _TAG.sub("&lt;", line)


class Directory:
    """A directory of pages. Raises what `output` does for what cannot be written, or may not be."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._written: dict[str, int] = {}
        """Lines of each page that are in its file."""
        self._files: dict[str, output.GrowingFile] = {}

    def check(self) -> None:
        """Make the directory, before there is anything to write: which pages it will have is not known yet.

        Raises RefusedError for a page there that somebody else made, and InputError when there can be none.
        """
        output.directory(self._out)
        output.check(self._out / Page("summary").file)
        for existing in sorted(self._out.glob("*.html")):
            output.check(existing)

    def grow(self, pages: Sequence[Page]) -> None:
        """Append what is new; the first time begin the files."""
        self._guarded(pages, self._append)

    def settle(self, pages: Sequence[Page]) -> None:
        """Make the files what the pages are: append where that is enough, or write anew."""
        self._guarded(pages, self._exactly)

    def _guarded(self, pages: Sequence[Page], write: Callable[[Page], None]) -> None:
        output.directory(self._out)
        for page in pages:
            write(page)

    def _append(self, page: Page) -> None:
        done = self._written.get(page.name)
        new = page.body[done or 0 :]
        self._written[page.name] = len(page.body)
        if new or done is None:
            if page.name not in self._files:
                self._files[page.name] = output.GrowingFile(self._out / page.file)
            self._files[page.name].append(_shown(new).encode())

    def _exactly(self, page: Page) -> None:
        path, text = self._out / page.file, page.text
        file = self._files.get(page.name)
        existing = path.read_text(encoding="utf-8") if file is not None else None
        if file is not None and existing is not None and text.startswith(existing):
            file.append(text[len(existing) :].encode())
        else:
            output.write(path, text)
