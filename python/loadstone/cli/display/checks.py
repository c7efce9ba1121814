"""Checks as a table: of this host, or of several.

Knows the colours of their states.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from loadstone.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIPE_WIDTH: Final = 160
COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red", "unknown": "dim"}
HEADINGS: Final = {"host": "host", "state": "", "name": "check", "found": "found", "remedy": "remedy"}


def show(checks: Sequence[Mapping[str, str]], *columns: str) -> None:
    """Print the documents of checks, a column for each of these keys."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(HEADINGS[column], overflow="fold")
    for check in checks:
        state = f"[{COLOURS[check['state']]}]{check['state']}[/]"
        table.add_row(*(state if column == "state" else check[column] for column in columns))
    # A file or pipe has no width of its own.
    Screen(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
