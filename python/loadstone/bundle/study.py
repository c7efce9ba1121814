"""A study on disk: several runs that belong together, each a bundle of its own.

One directory: `study.json` (written anew after every point, by rename, so that a killed study
opens), `input/` (what the user gave, byte for byte), `runs/NNN-name/` (bundles) and, at the end,
`result.json`. Knows names and fields only; runs nothing and computes nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, ValidationError

from loadstone import file_kind
from loadstone.bundle import layout, members, seal
from loadstone.bundle.disk import Disk, not_there, reason, remedy
from loadstone.bundle.read import Bundle, doubt, in_short
from loadstone.bundle.write import input_files
from loadstone.errors import BundleError, as_text
from loadstone.frozen_model import FrozenModel
from loadstone.messages import make_error
from loadstone.verdict import Kind as VerdictKind
from loadstone.verdict import RuleName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FORMAT: Final = 2
"""2: `study.json` has a hash of itself, and of every run's manifest."""
STUDY: Final = "study.json"
RUNS: Final = "runs"

Kind = Literal["list", "repeat", "sweep", "curve", "experiment"]
"""`list`: the runs of a parameter file, in its order; `experiment`: beside it is `experiment.json`."""

Factor = str | float | int | None


class Point(FrozenModel):
    """One run of a study. `status` is its bundle's, None while it runs, was killed or never began."""

    name: str
    """Unique in the study; what the front end calls the run (`rd1_(50%)`)."""
    factors: dict[str, Factor] = Field(default_factory=dict)
    """What differs between points, by the field's name (`iodepth`, `bs`, `rate_percent`, `repeat`)."""
    role: Literal["measure", "prepare", "maximum"] = "measure"
    bundle: str | None = None
    """Directory, relative to the study's; it is announced before it is made. As read, None until then."""
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
    seal: str | None = None
    """The hash its bundle's manifest has of itself, once it is sealed."""


class StudyRecord(FrozenModel):
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
    inputs: dict[str, str] = Field(default_factory=dict)
    """Name as the user gave it to its file under `input/`."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What the kind needs to be read again: levels of a sweep, the limit of a curve."""
    notes: list[Any] = Field(default_factory=list)
    points: tuple[Point, ...] = ()
    status: Literal["running", "complete", "interrupted", "failed"] = "running"
    expected: int | None = None
    """Runs there would have been in all, where that was known when it ended."""
    input_seals: dict[str, str] = Field(default_factory=dict)
    """BLAKE3 of each file under `input/`, by its name there."""
    result_seal: str | None = None
    """BLAKE3 of `result.json`, once it is written."""
    blake3: str | None = None
    """Hash of the rest of this document, once it is written."""


def _check_empty(path: Path) -> None:
    """Raise `BundleError` where something is there: it is neither written over nor taken back."""
    try:
        full = path.is_dir() and any(path.iterdir())
    except OSError as error:
        raise unwritten(path, error) from error
    if full:
        raise make_error(BundleError, "bundle.directory.not_empty", directory=path)


def begin(path: Path, study: StudyRecord, inputs: Mapping[str, bytes]) -> StudyRecord:
    """Make the directory and write what the user gave; return the study with its `inputs` named.

    Raises `BundleError` when it cannot be written. `BundleWriter.check` says so beforehand.
    """
    disk, names = Disk(), [STUDY, f"{STUDY}.new"]
    directories = [path / layout.INPUT, path / RUNS, *not_there(path)]
    _check_empty(path)
    try:
        for one in (path, path / layout.INPUT, path / RUNS):
            disk.mkdir(one)
        inputs = {as_text(name): content for name, content in inputs.items()}
        files = input_files(inputs)
        names += files.values()
        for name, file in files.items():
            disk.put(path / file, inputs[name])
        hashes = {file: seal.hash_of(path, file)[1] for file in files.values()}
        named = study.model_copy(update={"inputs": files, "input_seals": hashes})
        write(path, named)
    except (OSError, BundleError) as error:
        disk.take_back([path / name for name in names], directories)
        if isinstance(error, OSError):
            raise unwritten(path, error) from error
        raise
    return named


def unwritten(path: Path, error: OSError) -> BundleError:
    """Return the error of a file of a study that cannot be written."""
    return make_error(
        BundleError, "bundle.study.not_written", hint=remedy(error), path=path, reason=reason(error)
    )


def is_study(path: Path) -> bool:
    """Tell a study's directory from a bundle's and from anything else."""
    return os.path.lexists(path / STUDY)


@dataclass(frozen=True, slots=True)
class Opened:
    """A study as it is on disk. `verified` and `altered` as of a `Bundle`, its runs included."""

    path: Path
    study: StudyRecord
    bundles: dict[str, Bundle]
    """By the point's name; a point that never began has none."""
    verified: bool
    altered: tuple[str, ...]
    faults: tuple[str, ...] = ()
    """What could not be read, in words."""

    @property
    def doubt(self) -> str | None:
        """As of a `Bundle`."""
        return None if self.verified else doubt(self.altered or self.faults)

    @property
    def doubts(self) -> list[str]:
        """As of a `Bundle`, with what is to be known of runs that were never sealed."""
        unsealed = [f"{name}: {run.unsealed}" for name, run in self.bundles.items() if run.unsealed]
        return [*([self.doubt] if self.doubt else []), *self.faults, *unsealed]


def read(path: Path, *, unverified: bool = False) -> StudyRecord:
    """Read `study.json`; raises `BundleError` for what is not a study of this version, or not as it was."""
    if not is_study(path):
        raise make_error(BundleError, "bundle.study.none", path=path, file=STUDY)
    document = members.document(path, STUDY)
    try:
        record = StudyRecord.model_validate(document)
    except ValidationError as error:
        raise members.malformed(path / STUDY, error) from error
    if record.format != FORMAT:
        raise make_error(BundleError, "bundle.study.format", path=path, found=record.format, readable=FORMAT)
    names = [point.name for point in record.points]
    if len(set(names)) != len(names):
        raise make_error(BundleError, "bundle.study.one_name", path=path / STUDY)
    outside = [name for name in _places(record) if not members.is_inside(name)]
    if outside:
        raise make_error(BundleError, "bundle.study.outside", path=path / STUDY, name=repr(outside[0]))
    altered = _altered(path, record, document)
    if altered and not unverified:
        raise make_error(BundleError, "bundle.study.changed", path=path, altered=in_short(altered))
    points = tuple(_as_begun(path, point) for point in record.points)
    # The hash is of the file, not of what it says.
    return record.model_copy(update={"blake3": None, "points": points})


def _as_begun(path: Path, point: Point) -> Point:
    """Return a point without its bundle where that was announced, and was not made before the end."""
    if point.status is not None or point.bundle is None or is_bundle(path / point.bundle):
        return point
    return point.model_copy(update={"bundle": None})


def open_all(path: Path, *, unverified: bool = False) -> Opened:
    """Open a study with all of its runs. Raises `BundleError`, as `read` and `Bundle.open` do.

    With `unverified` a run that cannot be opened at all is left out, and named.
    """
    study = read(path, unverified=unverified)
    bundles: dict[str, Bundle] = {}
    altered = _altered(path, study, members.document(path, STUDY))
    faults = []
    for point in study.points:
        try:
            bundle = bundle_of(path, point, unverified=unverified)
        except BundleError as error:
            if not unverified:
                raise
            faults.append(str(error))
            continue
        if bundle is not None:
            bundles[point.name] = bundle
            altered += [f"{point.bundle}: {one}" for one in bundle.altered]
    return Opened(path, study, bundles, not unverified, tuple(altered), tuple(faults))


def _places(study: StudyRecord) -> Iterator[str]:
    yield from study.inputs.values()
    yield from (point.bundle for point in study.points if point.bundle is not None)


def _altered(path: Path, study: StudyRecord, document: Mapping[str, Any]) -> list[str]:
    """Return in words what of the study itself is not as it was written; runs answer for themselves."""
    altered = seal.own_difference(document, STUDY, required=True)
    result = {} if study.result_seal is None else {layout.RESULT: study.result_seal}
    for name, member_seal in (study.input_seals | result).items():
        try:
            if seal.hash_of(path, name)[1] != member_seal:
                altered.append(f"{name} was altered")
        except BundleError as error:
            altered.append(error.message.removeprefix(f"{path}{os.sep}"))
    return altered


def write(path: Path, study: StudyRecord) -> None:
    """Write `study.json` whole or not at all. Raises `BundleError`."""
    write_sealed(path, STUDY, study.model_copy(update={"blake3": None}))


def write_sealed(path: Path, name: str, record: FrozenModel) -> None:
    """Write a document of a study with a hash of itself, whole or not at all. Raises `BundleError`."""
    document = json.loads(json.dumps(record.model_dump(mode="json")))
    text = json.dumps(seal.with_digest(document), indent=2) + "\n"
    disk, new = Disk(), path / f"{name}.new"
    try:
        disk.put(new, text.encode(), durable=True)
        disk.replace(new, path / name)
    except OSError as error:
        raise unwritten(path, error) from error


def result_text(document: Mapping[str, Any]) -> str:
    """Return a result as `result.json` and `--json` have it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_result(path: Path, document: Mapping[str, Any]) -> str:
    """Write `result.json` and return its hash. Raises `BundleError`."""
    try:
        Disk().put(path / layout.RESULT, result_text(document).encode("utf-8", "replace"))
        return seal.hash_of(path, layout.RESULT)[1]
    except OSError as error:
        raise unwritten(path, error) from error


def seal_of(path: Path) -> str | None:
    """Return the hash of a bundle's manifest; None where there is none."""
    try:
        digest = members.document(path, layout.MANIFEST).get(seal.DIGEST)
    except (BundleError, AttributeError):
        return None
    return digest if isinstance(digest, str) else None


def is_bundle(path: Path) -> bool:
    """Tell whether a run got as far as a bundle."""
    return file_kind.is_file(path / layout.MANIFEST)


def bundle_of(path: Path, point: Point, *, unverified: bool = False) -> Bundle | None:
    """Open a point's bundle; None when the point never began.

    Raises `BundleError` for a bundle that cannot be opened, or is not the one the study was made of.
    """
    if point.bundle is None:
        return None
    members.check_directory(path, point.bundle)
    bundle = Bundle.open(path / point.bundle, unverified=unverified)
    if point.seal is not None and bundle.manifest.get(seal.DIGEST) != point.seal:
        if not unverified:
            raise make_error(
                BundleError, "bundle.study.other_bundle", path=path / point.bundle, name=point.name
            )
        bundle.altered = (*bundle.altered, "it is not the bundle that the study was made with")
    return bundle
