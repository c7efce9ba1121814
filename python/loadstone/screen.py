"""Text with colours and tables for a terminal: rich's console, through which only printable text goes.

Knows that what rich adds itself are styles and control segments, and that all other text is foreign.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment

from loadstone.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable


class Screen(Console):
    """A console of rich's that lets no escape sequence of a name through."""

    @property
    def file(self) -> IO[str]:
        """The stream itself, through every layer: a live display puts one of its own over ours."""
        stream = super().file
        while (beneath := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = beneath
        return stream

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            one if one.control else Segment(printable(one.text), one.style) for one in buffer
        )
