"""fio's job language."""

from __future__ import annotations

from loadstone.formats.fio.command_line import command_lines
from loadstone.formats.fio.read import (
    FileSource,
    ReadOptions,
    Source,
    TextSource,
    TokenSource,
    read_jobfiles,
)

__all__ = [
    "FileSource",
    "ReadOptions",
    "Source",
    "TextSource",
    "TokenSource",
    "command_lines",
    "read_jobfiles",
]
