"""A study on disk: several runs that belong together, each a bundle of its own.

One directory: `study.json` (written anew after every point, by rename, so that a killed study
opens), `input/` (what the user gave, byte for byte), `runs/NNN-name/` (bundles) and, at the end,
`result.json`. Knows names and fields only; runs nothing and computes nothing.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from loadstone.bundle import layout
from loadstone.bundle.read import Bundle
from loadstone.bundle.write import input_files
from loadstone.errors import BundleError
from loadstone.verdict import Kind as VerdictKind
from loadstone.verdict import RuleName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = 1
STUDY: Final = "study.json"
RUNS: Final = "runs"

Kind = Literal["list", "repeat", "sweep", "curve"]
"""`list`: the runs of a parameter file, in its order."""

Factor = str | float | int | None


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Point(_Model):
    """One run of a study. `status` is its bundle's, None while it runs or when it never began."""

    name: str
    """Unique in the study; what the front end calls the run (`rd1_(50%)`)."""
    factors: dict[str, Factor] = {}
    """What differs between points, by the field's name (`iodepth`, `bs`, `rate_percent`, `repeat`)."""
    role: Literal["measure", "prepare", "maximum"] = "measure"
    bundle: str | None = None
    """Directory, relative to the study's."""
    status: str | None = None
    exit_code: int | None = None
    error: str | None = None
    """What went wrong, for a run that has no bundle to say it."""
    verdict: VerdictKind | None = None
    """The kind of its verdict; all of it is in its bundle. None: a preparation, whose rate says nothing."""
    decided_by: RuleName | None = None
    """The rule that decided it, when it does not simply measure the storage."""
    why: str | None = None
    """What that rule found, or what is missing."""


class Study(_Model):
    """`study.json`."""

    format: int = FORMAT
    kind: Kind
    name: str
    front_end: str
    """Which language asked: `fio`, `vdbench`, `iometer`, `catalogue`."""
    loadstone_version: str
    started: str
    """ISO 8601, UTC."""
    request: dict[str, Any]
    """argv, cwd, options."""
    inputs: dict[str, str] = {}
    """Name as the user gave it to its file under `input/`."""
    settings: dict[str, Any] = {}
    """What the kind needs to be read again: levels of a sweep, the limit of a curve."""
    notes: list[Any] = []
    points: tuple[Point, ...] = ()
    status: Literal["running", "complete", "interrupted", "failed"] = "running"


def begin(path: Path, study: Study, inputs: Mapping[str, bytes]) -> Study:
    """Make the directory and write what the user gave; return the study with its `inputs` named.

    Raises `BundleError` when it cannot be written. `BundleWriter.check` says so beforehand.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / layout.INPUT).mkdir()
        (path / RUNS).mkdir()
        files = input_files(inputs)
        for name, file in files.items():
            (path / file).write_bytes(inputs[name])
        named = study.model_copy(update={"inputs": files})
        write(path, named)
    except OSError as error:
        raise BundleError(
            f"{path}: the study cannot be written: {error.strerror}",
            hint="name a directory you may write to with --out",
        ) from error
    return named


def is_study(path: Path) -> bool:
    """Tell a study's directory from a bundle's and from anything else."""
    return (path / STUDY).is_file()


def read(path: Path) -> Study:
    """Read `study.json`; raises `BundleError` for what is not a study of this version."""
    try:
        text = (path / STUDY).read_bytes()
        found = Study.model_validate_json(text)
    except OSError as error:
        raise BundleError(f"{path}: not a study: {STUDY}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BundleError(f"{path / STUDY}: {where}: {first['msg']}") from error
    if found.format > FORMAT:
        raise BundleError(f"{path}: the study has format {found.format}; this version reads up to {FORMAT}")
    return found


def write(path: Path, study: Study) -> None:
    """Write `study.json` whole or not at all."""
    text = json.dumps(study.model_dump(mode="json"), indent=2) + "\n"
    new = path / f"{STUDY}.new"
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path / STUDY)


def write_result(path: Path, document: Mapping[str, Any]) -> None:
    """Write `result.json`, the document of `--json`."""
    (path / layout.RESULT).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def is_bundle(path: Path) -> bool:
    """Tell whether a run got as far as a bundle."""
    return (path / layout.MANIFEST).is_file()


def bundle_of(path: Path, point: Point) -> Bundle | None:
    """Open a point's bundle; None when the point never began."""
    return None if point.bundle is None else Bundle.open(path / point.bundle)
