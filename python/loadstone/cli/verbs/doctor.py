"""`loadstone doctor`: is this host fit to generate load.

Knows how findings are shown; the checks are in `loadstone.doctor`.
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Final

from loadstone import exitcodes
from loadstone.screen import Screen

PIPE_WIDTH: Final = 160
COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red", "unknown": "dim"}


def doctor(*, json: bool = False) -> int:
    """Tell whether this host is fit to generate load, and what to do where it is not.

    Ends with 1 when a check failed; warnings end with 0.

    Parameters
    ----------
    json
        Print one JSON document instead of a table.
    """
    from rich.table import Table

    from loadstone import doctor as checks

    found = checks.examine(Path.cwd())
    if json:
        sys.stdout.write(
            json_format.dumps({"checks": [check.document() for check in found]}, indent=2) + "\n"
        )
    else:
        table = Table(box=None, pad_edge=False)
        for heading in ("", "check", "found", "remedy"):
            table.add_column(heading, overflow="fold")
        for check in found:
            colour = COLOURS[check.state]
            table.add_row(f"[{colour}]{check.state}[/]", check.name, check.found, check.remedy)
        # A file or pipe has no width of its own.
        Screen(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
    failed = any(check.state == "fail" for check in found)
    return exitcodes.FAILED if failed else exitcodes.DONE
