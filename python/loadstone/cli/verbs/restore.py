"""`loadstone restore`: put back what a run that was killed has left changed on this machine.

Knows how that is shown. What was changed stands in the journal of `control`.
"""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from loadstone import exitcodes
from loadstone.cli.display import console
from loadstone.cli.options.arguments import Flag
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.control.journal import Record


def restore(
    *,
    dry_run: Annotated[bool, Flag] = False,
    force: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    json: Annotated[bool, Flag] = False,
) -> int:
    """Put back the settings of this machine that a killed run has left changed.

    What a run that is alive has changed is its own to put back, and is only named. Ends with 1 where
    something could not be put back; it stays in the journal then.

    Parameters
    ----------
    dry_run
        Only say what is changed.
    force
        Put back also what somebody else has set to a third value since, and forget a fill whose file
        system is gone.
    json
        Print one JSON document.
    """
    from loadstone.control import changes, journal

    where = journal.folder()
    alive = [record for record in journal.held(where) if record.open_changes()]
    for record in alive:
        names = ", ".join(str(change.setting) for change in record.open_changes())
        console.say(f"process {record.pid} is alive and will put back: {names}")
    if dry_run:
        return _shown(journal.waiting(where), json=json)
    done = changes.restore(where=where, force=force)
    if json:
        rows = [asdict(one) | {"outcome": one.outcome.value} for one in done]
        sys.stdout.write(json_format.dumps({"restored": rows}, indent=2) + "\n")
    else:
        for one in sorted(done, key=lambda one: one.is_well):
            sys.stdout.write(f"{one}\n")
        if not done:
            sys.stdout.write("nothing was left changed\n")
    return exitcodes.DONE if all(one.is_well for one in done) else exitcodes.FAILED


def _words_of(control: str) -> Callable[[str], str]:
    """Return how a control's values are told; one that nobody knows any more tells them as they are."""
    from loadstone.control.table import Controls

    try:
        return Controls().named(control).shown
    except LoadstoneError:
        return str


def _shown(waiting: list[Record], *, json: bool) -> int:
    from loadstone.control import changes

    rows: list[dict[str, Any]] = [
        asdict(change.setting)
        | {
            "before": changes.in_words(shown, change.before),
            "asked": changes.in_words(shown, change.asked),
            "pid": record.pid,
        }
        for record in waiting
        for change in record.open_changes()
        for shown in [_words_of(change.setting.control)]
    ]
    if json:
        sys.stdout.write(json_format.dumps({"changed": rows}, indent=2) + "\n")
        return exitcodes.DONE
    for row in rows:
        name = f"{row['control']} of {row['subject']}" if row["subject"] else row["control"]
        sys.stdout.write(f"{name}: set to {row['asked']} by process {row['pid']}; it was {row['before']}\n")
    if not rows:
        sys.stdout.write("nothing was left changed\n")
    return exitcodes.DONE
