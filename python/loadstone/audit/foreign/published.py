"""Published figures as TOML: what a person writes down from a document, and how it is checked.

Knows the keys, their types and what makes no sense together; docs/audit-toml.md describes them.
Quantities are text with their unit, as they were printed, so that what a source means by MB is
not lost. Judges nothing, and knows no default: a key that is absent is not known.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from loadstone import toml_text
from loadstone.audit.ceilings import TRANSPORTS
from loadstone.audit.foreign import reader
from loadstone.errors import InputError, Where
from loadstone.frozen_model import FrozenModel, readable
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.path import quantity
from loadstone.path.ceilings import nearest_link, parse_link

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT: Final = 1


def _link(text: str) -> str:
    if text not in TRANSPORTS and parse_link(text) is None:
        transports = ", ".join(TRANSPORTS)
        raise make_error(
            ValueError,
            "audit.published.link",
            found=repr(text),
            nearest=nearest_link(text),
            transports=transports,
        )
    return text


Size = Annotated[str, readable(quantity.size_bytes)]
Time = Annotated[str, readable(quantity.time_ns)]
Bandwidth = Annotated[str, readable(quantity.bandwidth_bytes_per_s)]
Block = Annotated[str, readable(quantity.block_bytes)]
Link = Annotated[str, AfterValidator(_link)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Rate = Annotated[float, Field(gt=0, le=1e12)]
Percent = Annotated[float, Field(ge=0, le=100)]
Access = Literal["random", "sequential"]


def many(value: Any) -> tuple[Any, ...]:
    """Return what stands as one value or as a list of repeats."""
    return () if value is None else value if isinstance(value, tuple) else (value,)


class SpecifiedRate(FrozenModel):
    """A line of a data sheet, for all drives of the system together."""

    op: Literal["read", "write"]
    access: Access | None = None
    bandwidth: Bandwidth | None = None
    iops: Rate | None = None
    source: str

    @model_validator(mode="after")
    def _one_of(self) -> SpecifiedRate:
        if (self.bandwidth is None) == (self.iops is None):
            raise make_error(ValueError, "audit.published.no_rate")
        return self


class System(FrozenModel):
    """What the document says of the system under test."""

    name: str
    description: str | None = None
    links: tuple[Link, ...] = ()
    media: str | None = None
    rotational: bool | None = None
    drives: Count | None = None
    raid: str | None = None
    same_drives_as: str | None = None
    """Another system made of the same drives, laid out in another way."""
    drive_writes_per_write: Annotated[float, Field(gt=0, le=100)] | None = None
    """Writes to drives for one small write of the host: 1, with mirrors 2, with parity 4 or 6."""
    cache: Size | None = None
    memory: Size | None = None
    capacity: Size | None = None
    specified: tuple[SpecifiedRate, ...] = ()


class PublishedLoad(FrozenModel):
    """What was asked for."""

    system: str | None = None
    op: Literal["read", "write", "mixed"] | None = None
    read_percent: Percent | None = None
    access: Access | None = None
    random_percent: Percent | None = None
    block: Block | None = None
    jobs: Annotated[int, Field(ge=1, le=reader.MOST_CLONES)] | None = None
    numjobs: Annotated[int, Field(ge=1, le=reader.MOST_CLONES)] | None = None
    iodepth: Count | None = None
    direct: bool | None = None
    offset_increment: Size | None = None
    size: Size | None = None
    new_file: bool | None = None
    runtime: Time | None = None
    ramp: Time | None = None


class PublishedFigures(FrozenModel):
    """What was printed. A list holds the repeats of one measurement."""

    iops: Rate | tuple[Rate, ...] | None = None
    bandwidth: Bandwidth | tuple[Bandwidth, ...] | None = None
    latency: Time | None = None
    latency_max: Time | None = None
    latency_stddev: Time | None = None
    queue_depth: Rate | None = None
    written: Size | None = None
    generator_cpu_percent: Annotated[float, Field(ge=0, le=1e6)] | None = None
    array_cpu_percent: Percent | None = None
    governor: str | None = None
    author_says: str | None = None


class Baseline(PublishedFigures):
    """The same load on an earlier state of the same system."""

    name: str


class Series(FrozenModel):
    """One number for each interval, in order."""

    interval: Time
    iops: tuple[Annotated[float, Field(ge=0, le=1e12)], ...] = Field(min_length=2)


class PublishedResult(PublishedLoad, PublishedFigures):
    """One load and its numbers."""

    name: str
    baseline: tuple[Baseline, ...] = ()
    series: Series | None = None


class MatrixColumn(PublishedLoad):
    """What a column of a matrix asked for."""

    name: str


class MatrixRow(PublishedLoad):
    """A row of a matrix: one value (or list of repeats) for each column, `[]` where there is none."""

    name: str
    iops: tuple[Rate | tuple[Rate, ...], ...] = ()
    bandwidth: tuple[Bandwidth | tuple[Bandwidth, ...], ...] = ()
    latency: tuple[Time | tuple[()], ...] = ()
    author_says: str | None = None


class Matrix(PublishedLoad):
    """Results as a table: what is said of the matrix holds for all, a row's word before a column's."""

    name: str
    column: tuple[MatrixColumn, ...] = Field(min_length=1)
    row: tuple[MatrixRow, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _full_rows(self) -> Matrix:
        for row in self.row:
            if not any(one for values in (row.iops, row.bandwidth, row.latency) for one in values):
                raise make_error(ValueError, "audit.published.no_value", row=repr(row.name))
            for key in ("iops", "bandwidth", "latency"):
                values = getattr(row, key)
                if values and len(values) != len(self.column):
                    raise make_error(
                        ValueError,
                        "audit.published.values",
                        row=repr(row.name),
                        values=len(values),
                        name=key,
                        columns=len(self.column),
                    )
        return self


class Published(FrozenModel):
    """The file."""

    format: Literal[1]
    title: str
    source: str
    system: tuple[System, ...] = ()
    result: tuple[PublishedResult, ...] = ()
    matrix: tuple[Matrix, ...] = ()

    @model_validator(mode="after")
    def _names(self) -> Published:
        known = [system.name for system in self.system]
        _unique(known, "system")
        _unique([one.name for one in self.result] + [one.name for one in self.matrix], "result or matrix")
        used = [one.system for one in self.result]
        used += [part.system for one in self.matrix for part in (one, *one.column, *one.row)]
        used += [system.same_drives_as for system in self.system]
        for name in used:
            if name is not None and name not in known:
                raise make_error(
                    ValueError,
                    "audit.published.no_system",
                    name=repr(name),
                    nearest=nearest(name, known) or "none is described",
                )
        if not self.result and not self.matrix:
            raise make_error(ValueError, "audit.published.nothing")
        return self


def _unique(names: Sequence[str], what: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise make_error(ValueError, "audit.published.called_twice", what=what, name=repr(twice))


def recognises(path: Path, head: bytes) -> bool:
    """Tell a file of published figures by its name and its first key."""
    return path.suffix == ".toml" and re.search(rb"^\s*format\s*=", head, re.MULTILINE) is not None


def read(path: Path) -> Published:
    """Read and check a file. Raises InputError with the key, what was found and what is near."""
    text = reader.text(path)
    try:
        content = toml_text.parsed(text)
    except toml_text.TomlError as error:
        raise reader.wrong(path, "not_toml", error.line, reason=str(error)) from error
    _check_format(path, text, content)
    try:
        return Published.model_validate(content)
    except ValidationError as error:
        raise _explained(path, error) from error


def _check_format(path: Path, text: str, content: dict[str, Any]) -> None:
    """Say what the first key should be: without it nobody knows how to read the others."""
    if "format" not in content:
        near = difflib.get_close_matches("format", content, n=1)
        if near:
            raise reader.wrong(path, "near_format", _line(text, near[0]), found=near[0], format=str(FORMAT))
        raise reader.wrong(path, "no_format", 1, format=str(FORMAT))
    format_version = content["format"]
    if isinstance(format_version, bool) or format_version != FORMAT:
        line = _line(text, "format")
        raise reader.wrong(path, "other_format", line, found=repr(format_version)[:40], format=str(FORMAT))


def _line(text: str, key: str) -> int | None:
    match = re.search(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*=", text, re.MULTILINE)
    return None if match is None else text.count("\n", 0, match.end()) + 1


def _explained(path: Path, error: ValidationError) -> Exception:
    first = error.errors(include_url=False)[0]
    unknown = first["type"] == "extra_forbidden"
    # Where a value may be of several types, pydantic adds the type's name to the place.
    loc = tuple(
        part
        for at, part in enumerate(first["loc"], start=1)
        if isinstance(part, int) or not re.search(r"[-\[]", part) or (unknown and at == len(first["loc"]))
    )
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).strip(".")
    model = _model_of(loc)
    if unknown:
        message, hint = (
            "is not a key here",
            nearest(str(loc[-1]), model.model_fields, limit=40),
        )
    elif first["type"] == "missing":
        message, hint = "is missing", None
    else:
        message, hint = toml_text.wrong_value(first), toml_text.near_choice(first)
    return InputError(f"{key}: {message}" if key else message, where=Where(str(path)), hint=hint)


_PARTS: Final[dict[str, type[FrozenModel]]] = {
    "system": System,
    "specified": SpecifiedRate,
    "result": PublishedResult,
    "baseline": Baseline,
    "series": Series,
    "matrix": Matrix,
    "column": MatrixColumn,
    "row": MatrixRow,
}


def _model_of(loc: tuple[int | str, ...]) -> type[FrozenModel]:
    """Return the table that a key stands in."""
    parts = [_PARTS[part] for part in loc[:-1] if isinstance(part, str) and part in _PARTS]
    return parts[-1] if parts else Published
