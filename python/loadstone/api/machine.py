"""This machine: whether it is fit to generate load, what may be set on it, and what was left changed.

Knows what is told of each. The checks are `doctor`'s, the settings and their journal `control`'s.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import doctor
from loadstone.control import change_journal, changes
from loadstone.control.all_controls import Controls
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.control.changes import DamagedLine, Restored
    from loadstone.doctor import Check


def check_host(directory: Path | str = ".") -> list[Check]:
    """Tell whether this host is fit to generate load; `directory` is where bundles will be written.

    Each check has a `name`, a `state` (`ok`, `warn`, `fail` or `unknown`), what was `found`, and a `remedy`.
    """
    return doctor.examine(Path(directory).absolute())


def list_controls() -> list[dict[str, Any]]:
    """Return what an experiment may set here: the rows of `loadstone controls --json`.

    Each has a `name`, a `title`, a `source`, and `subjects` with the `value` of now and what each `takes`.
    """
    return [
        {
            "name": control.name,
            "title": control.title,
            "source": control.source,
            "named_by_user": control.by_name,
            "subjects": [
                {"subject": subject, "value": control.read(subject), "takes": list(control.choices(subject))}
                for subject in control.subjects()
            ],
        }
        for control in Controls().every()
    ]


def settings_in_use() -> dict[int, list[str]]:
    """Return what processes that are alive have changed and will put back: process id to settings."""
    return {
        record.pid: [str(change.setting) for change in changed]
        for record in change_journal.held(change_journal.folder())
        if (changed := record.open_changes())
    }


def settings_left() -> list[dict[str, Any]]:
    """Return what killed runs left changed: the rows of `loadstone restore --dry-run --json`."""
    return [
        asdict(change.setting)
        | {
            "before": changes.in_words(shown, change.before),
            "asked": changes.in_words(shown, change.asked),
            "pid": record.pid,
        }
        for record in change_journal.waiting(change_journal.folder())
        for change in record.open_changes()
        for shown in [_words_of(change.setting.control)]
    ]


def damage_of_settings() -> list[DamagedLine]:
    """Return the lines of journals that cannot be read: what they changed is not known."""
    return [
        one for record in change_journal.waiting(change_journal.folder()) for one in changes.damage_of(record)
    ]


def restore_settings(*, force: bool = False) -> list[Restored | DamagedLine]:
    """Put back what killed runs left changed on this machine, and return what became of each change.

    Each has a `setting`, its value `before`, an `outcome`, and `is_well` where nothing is left of it. With
    `force` also what somebody else has set since, and a command whose second one fails is forgotten. What
    is not put back stays in the journal, and so does a line that cannot be read: it has a `path`, a `line`
    and the outcome `damaged`.
    """
    return changes.restore(where=change_journal.folder(), force=force)


def _words_of(control: str) -> Callable[[str], str]:
    """Return how a control's values are told; one that nobody knows any more tells them as they are."""
    try:
        return Controls().named(control).shown
    except LoadstoneError:
        return str
