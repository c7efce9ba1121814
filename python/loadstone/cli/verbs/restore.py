"""`loadstone restore`: put back what a run that was killed has left changed on this machine.

Knows how that is shown; `loadstone.restore_settings` does it.
"""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import Flag
from loadstone.messages import say


def restore(
    *,
    dry_run: Annotated[bool, Flag] = False,
    force: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    json: Annotated[bool, Flag] = False,
) -> int:
    """Put back the settings of this machine that a killed run has left changed.

    What a run that is alive has changed is its own to put back: that is refused, and ends with 1. So does
    what could not be put back; it stays in the journal then.

    Parameters
    ----------
    dry_run
        Only say what is changed.
    force
        Put back also what somebody else has set to a third value since. Forget a fill whose file
        system is gone, and a command whose second one fails again.
    json
        Print one JSON document.
    """
    from loadstone.api import machine

    in_use = machine.settings_in_use()
    for pid, names in in_use.items():
        console.say(say("cli.restore.in_use", pid=str(pid), settings=", ".join(names)))
    if dry_run:
        for damage in machine.damage_of_settings():
            console.say(str(damage))
        return _shown(machine.settings_left(), in_use=bool(in_use), json=json)
    done = machine.restore_settings(force=force)
    if json:
        rows = [asdict(one) for one in done]
        sys.stdout.write(json_format.dumps({"restored": rows}, indent=2) + "\n")
    else:
        for one in sorted(done, key=lambda one: one.is_well):
            sys.stdout.write(f"{one}\n")
        if not done and not in_use:
            sys.stdout.write(say("cli.restore.nothing") + "\n")
    well = not in_use and all(one.is_well for one in done)
    return exitcodes.DONE if well else exitcodes.FAILED


def _shown(rows: list[dict[str, Any]], *, in_use: bool, json: bool) -> int:
    if json:
        sys.stdout.write(json_format.dumps({"changed": rows}, indent=2) + "\n")
        return exitcodes.DONE
    for row in rows:
        name = f"{row['control']} of {row['subject']}" if row["subject"] else row["control"]
        line = say(
            "cli.restore.left", setting=name, value=row["asked"], pid=str(row["pid"]), before=row["before"]
        )
        sys.stdout.write(f"{line}\n")
    if not rows and not in_use:
        sys.stdout.write(say("cli.restore.nothing") + "\n")
    return exitcodes.DONE
