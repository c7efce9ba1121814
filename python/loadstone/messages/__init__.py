"""What the program says, as templates with named values: one file for each room, and one place to translate.

Knows how a value is written, by the unit at the end of its name. Knows no finding and no screen.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loadstone import units

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.errors import Where

ROOMS: Final = (
    "analysis",
    "api",
    "audit",
    "bundle",
    "cli",
    "comparison",
    "control",
    "doctor",
    "effects",
    "engine",
    "evidence",
    "experiment",
    "formats_fio",
    "formats_iometer",
    "formats_vdbench",
    "hosts",
    "monitor",
    "output",
    "path",
    "plan",
    "probe",
    "program",
    "refusals",
    "report",
    "study",
    "toml",
    "verdict",
    "watch",
    "workload",
)
Value = str | float | Path | None
E = TypeVar("E", bound=Exception)


def _percent(value: float) -> str:
    # In a sentence, which is searched for as it is typed.
    return units.percent(value).replace("<", "less than ").replace(units.THIN, " ")


WRITERS: Final[tuple[tuple[str, Callable[[float], str]], ...]] = (
    ("_si_bytes_per_s", units.bandwidth_decimal),
    ("_bytes_per_s", units.bandwidth),
    ("_bytes", units.size),
    ("_ns", units.duration),
    ("_s", units.seconds),
    ("_percent", _percent),
    ("_share", lambda value: _percent(100 * value)),
    ("_iops", lambda value: f"{units.count(value)} IOPS"),
    ("_ios", lambda value: f"{units.count(value)} I/O{'' if value == 1 else 's'}"),
    ("_count", units.count),
)
"""How a value is written whose name ends so; any other is a word, or a whole number."""


def say(key: str, /, **values: Value) -> str:
    """Return the message `key` (`ROOM.NAME...`) with its values, each in the unit its name ends with.

    `{probes:# probe agrees|# probes agree}` has a form for one and one for any other number, which is `#`.
    """
    return template(key).format(**{name: Written(written(name, value)) for name, value in values.items()})


def make_error(
    kind: Callable[..., E],
    key: str,
    /,
    *,
    where: Where | None = None,
    hint: str | None = None,
    **values: str | int | Path | None,
) -> E:
    """Return an error with the message `key`, and `hint` or the hint `key_hint` of the catalogue.

    A number that was given, and not measured, is passed as the text that it was.
    """
    details = {name: one for name, one in (("where", where), ("hint", hint)) if one is not None}
    if hint is None and f"{key}_hint" in _room(key.partition(".")[0]):
        details["hint"] = say(f"{key}_hint", **values)
    return kind(say(key, **values), **details)


class Written(str):
    """A value as a message shows it, which chooses between the words for one and for many."""

    __slots__ = ()

    def __format__(self, forms: str) -> str:
        if not forms:
            return str(self)
        one, _, many = forms.partition("|")
        return (one if self == "1" else many).replace("#", self)


def title(rule: str) -> str:
    """Return the short title of a rule."""
    return template(f"audit.{rule}.title")


def label(evidence: str) -> str:
    """Return what a piece of evidence is called, by its name in the JSON; the name where it is unknown."""
    return _room("evidence").get(f"evidence.{evidence}", evidence.replace("_", " "))


def template(key: str) -> str:
    """Return the text of a message before its values are in it."""
    return _room(key.partition(".")[0])[key]


def written(name: str, value: Value) -> str:
    """Write a value in the unit that its name ends with."""
    if value is None:
        return units.NONE
    if isinstance(value, str | Path):
        return str(value)
    writer = next((write for suffix, write in WRITERS if name.endswith(suffix)), None)
    if writer is not None:
        return writer(value)
    if isinstance(value, float):
        raise TypeError(f"{name}={value}: a number needs a unit at the end of its name")
    return str(value)


def templates() -> dict[str, str]:
    """Return every message by its key."""
    return {key: text for room in ROOMS for key, text in _room(room).items()}


@functools.cache
def _room(room: str) -> dict[str, str]:
    """Return the messages of a room: what says little reads few, and what says nothing loads no parser."""
    import tomllib  # noqa: PLC0415 - a help says none of them, and is to be there at once
    from importlib import resources  # noqa: PLC0415 - as above

    text = (resources.files(__name__) / f"{room}.toml").read_text(encoding="utf-8")
    return _flat(tomllib.loads(text), room)


def _flat(table: dict[str, Any], prefix: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in table.items():
        key = f"{prefix}.{name}"
        texts |= _flat(value, key) if isinstance(value, dict) else {key: value}
    return texts
