"""`loadstone doctor`: is this host fit to generate load.

Knows what is printed and the exit code; `loadstone.check_host` looks.
"""

from __future__ import annotations

import loadstone
from loadstone.cli.display import checks


def doctor(*, json: bool = False) -> int:
    """Tell whether this host is fit to generate load, and what to do where it is not.

    Ends with 1 when a check failed; warnings end with 0.

    Parameters
    ----------
    json
        Print one JSON document instead of a table.
    """
    rows = [check.document() for check in loadstone.check_host()]
    return checks.show(rows, "state", "name", "found", "remedy", as_json=json)
