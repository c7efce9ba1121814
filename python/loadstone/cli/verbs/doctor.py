"""`loadstone doctor`: is this host fit to generate load.

Knows what is printed and the exit code; `loadstone.check_host` looks.
"""

from __future__ import annotations

import json as json_format
import sys

import loadstone
from loadstone import exitcodes


def doctor(*, json: bool = False) -> int:
    """Tell whether this host is fit to generate load, and what to do where it is not.

    Ends with 1 when a check failed; warnings end with 0.

    Parameters
    ----------
    json
        Print one JSON document instead of a table.
    """
    rows = [check.document() for check in loadstone.check_host()]
    if json:
        sys.stdout.write(json_format.dumps({"checks": rows}, indent=2) + "\n")
    else:
        from loadstone.cli.display import checks

        checks.show(rows, "state", "name", "found", "remedy")
    return exitcodes.FAILED if any(one["state"] == "fail" for one in rows) else exitcodes.DONE
