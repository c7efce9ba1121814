"""An experiment's file read: its parameters filled in, and errors that say where.

Knows TOML and how a mistake is told: file, line, key, what was found, what was expected, what is
near. Reads no job file.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from loadstone import input_file, toml_text
from loadstone.control.layout.model import LayoutDescription
from loadstone.errors import InputError, LoadstoneError, Where
from loadstone.experiment.file import (
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

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


def read_file(
    path: Path, values: Mapping[str, str] | None = None, given_at: Where | None = None
) -> tuple[ExperimentFile, bytes]:
    """Read a file with its parameters set; return it with its bytes. Raises `InputError`."""
    content = input_file.read(path, "experiment", MOST_BYTES)
    return parse(content, str(path), values, given_at), content


def parse(
    content: bytes, name: str, values: Mapping[str, str] | None = None, given_at: Where | None = None
) -> ExperimentFile:
    """Read the text of a file. Raises `InputError` with line, key, what was found and what is near.

    `given_at`: where parameters were given.
    """
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
    _check_given(document, values or {}, given_at)
    document = _with_parameters(document, values or {}, name, text)
    try:
        return ExperimentFile.model_validate(document)
    except ValidationError as error:
        raise _explained(name, text, error) from error


def _check_given(document: dict[str, Any], values: Mapping[str, str], given_at: Where | None) -> None:
    """Refuse values for parameters that the file does not have."""
    own = document.get("parameters", {})
    if not isinstance(own, dict):
        return
    for key in values:
        if key not in own:
            hint = nearest(key, own, limit=len(own)) or say("experiment.parameters.none")
            raise make_error(
                InputError, "experiment.parameters.not_had", where=given_at, hint=hint, name=repr(key)
            )


def _with_parameters(
    document: dict[str, Any], texts: Mapping[str, str], name: str, text: str
) -> dict[str, Any]:
    """Put the value of each parameter in place of its `$name`."""
    own = document.get("parameters", {})
    if not isinstance(own, dict):
        return document
    values = {key: _given(texts[key], default) if key in texts else default for key, default in own.items()}
    used: set[str] = set()
    filled = {
        key: value if key == "parameters" else _filled(value, values, used, _KeyPlace(name, text, (key,)))
        for key, value in document.items()
    }
    if unused := [key for key in values if key not in used]:
        place = _KeyPlace(name, text, ("parameters", unused[0]))
        raise make_error(InputError, "experiment.parameters.unused", where=place.where())
    return filled | ({"parameters": values} if own else {})


def _given(text: str, default: Any) -> Any:
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


def _filled(value: Any, values: Mapping[str, Any], used: set[str], place: _KeyPlace) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, values, used, place.below(key)) for key, one in value.items()}
    if isinstance(value, list):
        filled = [_filled(one, values, used, place.below(at)) for at, one in enumerate(value)]
        # A list in a list: `targets = ["$disks"]` has all of them.
        return [one for item, was in zip(filled, value, strict=True) for one in _spread(item, was)]
    if not isinstance(value, str) or "$" not in value:
        return value

    def one(match: re.Match[str]) -> str:
        parameter = _value(match, values, used, place)
        if isinstance(parameter, list):
            raise make_error(
                InputError, "experiment.parameters.list", where=place.where(), name=match[1] or match[2]
            )
        return str(parameter)

    whole = _REFERENCE.fullmatch(value)
    return _value(whole, values, used, place) if whole else _REFERENCE.sub(one, value)


def _spread(item: Any, was: Any) -> list[Any]:
    return item if isinstance(item, list) and isinstance(was, str) else [item]


def _value(match: re.Match[str], values: Mapping[str, Any], used: set[str], place: _KeyPlace) -> Any:
    name = match[1] or match[2]
    if name not in values:
        hint = nearest(name, values, limit=len(values)) or say("experiment.parameters.none")
        raise make_error(
            InputError, "experiment.parameters.unknown", where=place.where(), hint=hint, name=repr(name)
        )
    used.add(name)
    return values[name]


def _explained(name: str, text: str, error: ValidationError) -> InputError:
    every = error.errors(include_url=False)
    # A key that is missing is often the one that is misspelt.
    first = next((one for one in every if one["type"] == "extra_forbidden"), every[0])
    # A level may be a word or a table: what is wrong with the table says more.
    tables = [one for one in error.errors(include_url=False) if "ExperimentLevel" in one["loc"]]
    if tables and first["loc"][: len(first["loc"]) - 1] == tables[0]["loc"][: len(first["loc"]) - 1]:
        level = first.get("input")
        first = tables[0] if isinstance(level, dict) else first
    loc = tuple(part for part in first["loc"] if part not in ("ExperimentLevel", "[key]", *_SCALARS))
    loc += tuple(first.get("ctx", {}).get("loc", ()))
    place = _KeyPlace(name, text, loc)
    if first["type"] == "extra_forbidden":
        model = _model(loc[:-1])
        key = str(loc[-1])
        hint = nearest(key, model.model_fields, limit=len(model.model_fields))
        return make_error(InputError, "experiment.file.no_key", where=place.where(), hint=hint)
    if first["type"] == "missing":
        return make_error(InputError, "experiment.file.missing", where=place.where())
    if first["loc"] and first["loc"][-1] in _SCALARS:
        # It is one of these: the first that it could be is not the one that was meant.
        message_name = "experiment.file.level" if tables else "experiment.file.scalar"
        return make_error(
            InputError, message_name, where=place.where(), found=repr(first.get("input"))[:MOST_SHOWN]
        )
    message = toml_text.wrong_value(first)
    return InputError(
        message[0].lower() + message[1:], where=place.where(), hint=toml_text.near_choice(first)
    )


MOST_SHOWN: Final = 80
"""Characters of a value that is none."""
_SCALARS: Final = ("bool", "int", "float", "str")


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
