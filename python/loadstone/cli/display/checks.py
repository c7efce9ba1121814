"""Checks as a table or as JSON: of this host, or of several.

Knows the colours of their states, and the exit code.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from loadstone import exitcodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIPE_WIDTH: Final = 160
COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red", "unknown": "dim"}
HEADINGS: Final = {"host": "host", "state": "", "name": "check", "found": "found", "remedy": "remedy"}


def show(checks: Sequence[Mapping[str, str]], *columns: str, as_json: bool) -> int:
    """Print the documents of checks, a column for each of these keys; return the exit code."""
    if as_json:
        sys.stdout.write(json.dumps({"checks": checks}, indent=2) + "\n")
    else:
        _table(checks, *columns)
    return exitcodes.FAILED if any(one["state"] == "fail" for one in checks) else exitcodes.DONE


def _table(checks: Sequence[Mapping[str, str]], *columns: str) -> None:
    from rich.table import Table

    from loadstone.screen import Screen

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(HEADINGS[column], overflow="fold")
    for check in checks:
        state = f"[{COLOURS[check['state']]}]{check['state']}[/]"
        table.add_row(*(state if column == "state" else check[column] for column in columns))
    # A file or pipe has no width of its own.
    Screen(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
