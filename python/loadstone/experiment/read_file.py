"""An experiment's file read: its parameters filled in, and errors that say where.

Knows TOML and how a mistake is told: file, line, key, what was found, what was expected, what is
near. Reads no job file.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from loadstone import input_file, toml_text
from loadstone.control.layout.description import LayoutDescription
from loadstone.errors import InputError, LoadstoneError, Where, raise_all
from loadstone.experiment.file import (
    AS_IS,
    NAME,
    ExperimentAims,
    ExperimentFactor,
    ExperimentFile,
    ExperimentLevel,
    ExperimentLimits,
    ExperimentPattern,
    ExperimentSetting,
)
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest
from loadstone.toml_repair import Keys, RepairedDocument, TomlMistake, near

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

_TABLES: Final[dict[str, type[BaseModel]]] = {
    "patterns": ExperimentPattern,
    "factors": ExperimentFactor,
    "aims": ExperimentAims,
    "settings": ExperimentSetting,
    "layouts": LayoutDescription,
    "budget": ExperimentLimits,
    "levels": ExperimentLevel,
}
_REFERENCE: Final = re.compile(r"\$(?:([a-z_][a-z0-9_]*)|\{([a-z_][a-z0-9_]*)\})")
MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ReadExperiment:
    """A file as far as it can be read."""

    whole: ExperimentFile | None
    """With what is wrong put right or left out; None: nothing can be said of the rest."""
    content: bytes
    mistakes: tuple[LoadstoneError, ...] = ()
    """All that are known, each with its line."""
    left_out: frozenset[Keys] = frozenset()
    """Where something stands in for what is wrong, so that nothing is concluded from it."""


def read_file(
    path: Path, values: Mapping[str, str] | None = None, given_at: Where | None = None
) -> ReadExperiment:
    """Read a file with its parameters set. Raises `InputError` where it is no TOML.

    `given_at`: where parameters were given.
    """
    content = input_file.read(path, "experiment", MOST_BYTES)
    return read_content(content, str(path), values, given_at)


def parse(
    content: bytes, name: str, values: Mapping[str, str] | None = None, given_at: Where | None = None
) -> ExperimentFile:
    """Read the text of a file. Raises `InputError` with line, key, what was found and what is near."""
    reading = read_content(content, name, values, given_at)
    raise_all(reading.mistakes)
    assert reading.whole is not None  # noqa: S101 - without a mistake there is one
    return reading.whole


def read_content(
    content: bytes, name: str, values: Mapping[str, str] | None = None, given_at: Where | None = None
) -> ReadExperiment:
    """Read the text of a file, and all that is wrong in it. Raises `InputError` where it is no TOML."""
    if len(content) > MOST_BYTES:
        raise make_error(InputError, "experiment.file.too_large", where=Where(name), most=MOST_BYTES)
    try:
        text = toml_text.decoded(content)
        document = toml_text.parsed(text)
    except UnicodeDecodeError as error:
        raise make_error(InputError, "experiment.file.not_text", where=Where(name)) from error
    except toml_text.TomlError as error:
        raise make_error(
            InputError, "experiment.file.not_toml", where=Where(name, error.line), reason=str(error)
        ) from error
    mistakes: list[LoadstoneError] = [*_not_had(document, values or {}, given_at)]
    parameters = _Parameters(document.get("parameters", {}), values or {}, mistakes)
    filled = parameters.filled(document, name, text)
    repaired = RepairedDocument(filled, _stand_in, _keys_of, tables=(ExperimentLevel.__name__,))
    repaired.doubted = parameters.unknown
    whole = repaired.read(ExperimentFile)
    mistakes += [_explained(name, text, one) for one in repaired.mistakes]
    left_out = frozenset(repaired.left_out | repaired.doubted)
    return ReadExperiment(cast("ExperimentFile | None", whole), content, tuple(mistakes), left_out)


def _not_had(
    document: dict[str, Any], values: Mapping[str, str], given_at: Where | None
) -> Iterator[LoadstoneError]:
    """Refuse values for parameters that the file does not have."""
    own = document.get("parameters", {})
    for key in values if isinstance(own, dict) else ():
        if key not in own:
            hint = nearest(key, own, limit=len(own)) or say("experiment.parameters.none")
            yield make_error(
                InputError, "experiment.parameters.not_had", where=given_at, hint=hint, name=repr(key)
            )


class _Parameters:
    """The parameters of a file, which stand for their values wherever it says `$name`."""

    def __init__(self, own: Any, texts: Mapping[str, str], mistakes: list[LoadstoneError]) -> None:
        self._mistakes = mistakes
        self._own = own if isinstance(own, dict) else {}
        self._values = {
            key: _parameter_value(texts[key], default) if key in texts else default
            for key, default in self._own.items()
        }
        self._used: set[str] = set()
        self.unknown: set[Keys] = set()
        """Places whose value is not known."""

    def filled(self, document: dict[str, Any], name: str, text: str) -> dict[str, Any]:
        """Put the value of each parameter in place of its `$name`."""
        filled = {
            key: value if key == "parameters" else self._filled(value, _KeyPlace(name, text, (key,)))
            for key, value in document.items()
        }
        # Where a reference is to nothing, it may be to what seems unused.
        for key in () if self.unknown else self._values:
            if key not in self._used:
                place = _KeyPlace(name, text, ("parameters", key)).where()
                self._mistakes.append(make_error(InputError, "experiment.parameters.unused", where=place))
        return filled | ({"parameters": self._values} if self._own else {})

    def _filled(self, value: Any, place: _KeyPlace) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(one, place.below(key)) for key, one in value.items()}
        if isinstance(value, list):
            filled = [self._filled(one, place.below(at)) for at, one in enumerate(value)]
            # A list in a list: `targets = ["$disks"]` has all of them.
            return [one for item, was in zip(filled, value, strict=True) for one in _spread(item, was)]
        if not isinstance(value, str) or "$" not in value:
            return value

        def one(match: re.Match[str]) -> str:
            parameter = self._value(match, place)
            if not isinstance(parameter, list):
                return str(parameter)
            name = match[1] or match[2]
            self.unknown.add(place.loc)
            if name in self._values:
                self._mistakes.append(
                    make_error(InputError, "experiment.parameters.list", where=place.where(), name=name)
                )
            return match[0]

        whole = _REFERENCE.fullmatch(value)
        return self._value(whole, place) if whole else _REFERENCE.sub(one, value)

    def _value(self, match: re.Match[str], place: _KeyPlace) -> Any:
        name = match[1] or match[2]
        if name in self._values:
            self._used.add(name)
            return self._values[name]
        hint = nearest(name, self._values, limit=len(self._values)) or say("experiment.parameters.none")
        error = make_error(
            InputError, "experiment.parameters.unknown", where=place.where(), hint=hint, name=repr(name)
        )
        meant = near(name, self._values)
        if meant is None:
            self._mistaken(place, error)
            return match[0]
        self._mistakes.append(error)
        self._used.add(meant)
        return self._values[meant]

    def _mistaken(self, place: _KeyPlace, error: LoadstoneError) -> None:
        self._mistakes.append(error)
        self.unknown.add(place.loc)


def _parameter_value(text: str, default: Any) -> Any:
    """Return a value of the command line: a list where the default is one, a number where it is one."""
    if isinstance(default, list):
        return [word for word in text.split(",") if word]
    if isinstance(default, int) and re.fullmatch(r"-?\d+", text):
        return int(text)
    return text


class _KeyPlace:
    """Where in the document a value stands."""

    def __init__(self, name: str, text: str, loc: tuple[str | int, ...]) -> None:
        self.name, self.text, self.loc = name, text, loc

    def below(self, part: str | int) -> _KeyPlace:
        """Return a place inside this one."""
        return _KeyPlace(self.name, self.text, (*self.loc, part))

    def where(self) -> Where:
        """Return file, line and key."""
        return Where(self.name, line_of(self.text, self.loc), _key(self.loc) or None)


def _spread(item: Any, was: Any) -> list[Any]:
    return item if isinstance(item, list) and isinstance(was, str) else [item]


def _stand_in(document: dict[str, Any], loc: Keys) -> Any:
    """Return what stands for something that is wrong while the rest is looked at; None: nothing."""
    if len(loc) == 1:
        return {"title": "?", "runtime": "1s", "ramp": "1s", "pause": "1s", "size": "1m"}.get(str(loc[0]))
    table, at = str(loc[0]), loc[1]
    one = document[table][at] if isinstance(document.get(table), list) else {}
    own_name = one.get("name") if isinstance(one, dict) else None
    names = [other.get("name") for other in document[table] if isinstance(other, dict)] if one else []
    fit = isinstance(own_name, str) and re.fullmatch(NAME, own_name) and names.count(own_name) == 1
    name = own_name if fit else f"left out {at}"
    other_level = {"name": "other", "do": "true", "undo": "true"}
    stand_ins = {
        "patterns": {"name": name, "options": {"rw": "read"}},
        "factors": {"name": name, "kind": "command", "levels": [AS_IS, other_level]},
        "settings": {"control": name, "value": 1},
        "aims": {"most": "iops"},
        "layouts": {} if re.fullmatch(NAME, str(at)) else None,
    }
    return stand_ins.get(table)


def _keys_of(loc: Keys) -> Iterable[str]:
    return _model(loc).model_fields


def _explained(name: str, text: str, mistake: TomlMistake) -> InputError:
    place, kind, error = _KeyPlace(name, text, mistake.loc), mistake.kind, mistake.error
    if kind == "extra_forbidden":
        fields = _model(mistake.loc[:-1]).model_fields
        hint = nearest(str(mistake.loc[-1]), fields, limit=len(fields))
        return make_error(InputError, "experiment.file.no_key", where=place.where(), hint=hint)
    if kind == "missing":
        return make_error(InputError, "experiment.file.missing", where=place.where())
    if kind == "scalar":
        # It is one of these: the first that it could be is not the one that was meant.
        key = "experiment.file.level" if "levels" in mistake.loc else "experiment.file.scalar"
        return make_error(InputError, key, where=place.where(), found=repr(error.get("input"))[:MOST_SHOWN])
    message = toml_text.wrong_value(error) if mistake.rule is None else mistake.rule.text
    return InputError(
        message[0].lower() + message[1:], where=place.where(), hint=toml_text.near_choice(error)
    )


MOST_SHOWN: Final = 80
"""Characters of a value that is none."""


def _model(loc: Sequence[str | int]) -> type[BaseModel]:
    named = (_TABLES.get(part) for part in reversed(loc) if isinstance(part, str))
    return next((one for one in named if one is not None), ExperimentFile)


@contextlib.contextmanager
def with_lines(path: Path, content: bytes, whole: ExperimentFile) -> Iterator[None]:
    """Give errors about a factor or a pattern of the file its line."""
    try:
        yield
    except LoadstoneError as error:
        raise error.elsewhere(lambda known: line_given(known, path, content, whole)) from error


def line_given(where: Where | None, path: Path, content: bytes, whole: ExperimentFile) -> Where | None:
    """Return where something of a factor or a pattern that is told by its name stands in the file."""
    if where is None:
        return where
    name = Where(str(path)).file
    if where.file.startswith(f"{name}: "):
        # The options of a pattern are read as a job file of their own.
        inside = where.file.removeprefix(f"{name}: ")
        where = Where(name, None, inside if where.option is None else f"{inside}.{where.option}")
    if where.option is None:
        return where
    if where.line is not None or where.file != name:
        return where
    kind, _, rest = str(where.option).partition(".")
    if kind not in ("factors", "patterns"):
        return Where(where.file, line_of(content.decode(), str(where.option).split(".")), where.option)
    names = [one.name for one in (whole.factors if kind == "factors" else whole.patterns)]
    own = next((at for at, name in enumerate(names) if rest == name or rest.startswith(f"{name}.")), None)
    if own is None:
        return where
    inner = rest.removeprefix(names[own]).lstrip(".").split(".") if rest != names[own] else ["name"]
    return Where(where.file, line_of(content.decode(), (kind, own, *inner)), where.option)


def _key(loc: Sequence[str | int]) -> str:
    """Return a place as people write it: `factors[2].levels`."""
    key = ""
    for part in loc:
        key += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if key else part
    return key


def line_of(text: str, loc: Sequence[str | int]) -> int | None:
    """Find the line of a value, or of the nearest thing around it; tomllib does not tell."""
    counts: dict[str, int] = {}
    table_key: tuple[str | int, ...] = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*(\[{1,2})\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$", line)
        if header:
            names = tuple(part.strip().strip("\"'") for part in header[2].split("."))
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
                table_key = (*names, counts[header[2]])
            elif names[0] in counts:
                table_key = (names[0], counts[names[0]], *names[1:])
            else:
                table_key = names
            place = table_key
        elif key := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*(?:\.|=)", line):
            place = (*table_key, key[1])
        else:
            continue
        # A list of tables that is no key has its first table's line.
        same = tuple(loc[: len(place)]) == place or (header and place[:-1] == tuple(loc))
        if same and (best is None or len(place) > best[0]):
            best = (len(place), number)
    return None if best is None else best[1]
