"""Writing a bundle while the run goes on, and sealing it at the end.

Knows the order that keeps a bundle readable at every moment: the manifest first (status
`running`), then lines flushed one by one, and at the end tables, result, hashes and the
manifest again by rename. Does not know what any line means.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from blake3 import blake3

from loadstone import __version__
from loadstone.bundle import arrows, layout
from loadstone.bundle.host import host_to_parquet
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

Status = Literal["complete", "interrupted", "failed"]


class BundleWriter:
    """One run's directory. Make it with `create`, end it with `seal`, or `close` to leave it partial."""

    def __init__(self, directory: Path, manifest: dict[str, Any]) -> None:
        self._directory = directory
        self._manifest = manifest
        self._events = (directory / layout.EVENTS).open("ab")
        self._host = (directory / layout.HOST).open("ab")
        self._columns: set[str] = set()

    @staticmethod
    def check(directory: Path) -> None:
        """Raise `BundleError` when a bundle could not be begun here; create nothing."""
        there = directory.absolute()
        try:
            if directory.is_dir() and any(directory.iterdir()):
                raise BundleError(
                    f"{directory}: the directory for the run is not empty",
                    hint="name a new one with --out; a run never writes over another",
                )
            while not there.exists() and there != there.parent:
                there = there.parent
            if there.is_dir():
                # Asking for permission is not enough: root has it on file systems that take no files.
                with tempfile.TemporaryFile(dir=there):
                    return
            why = f"{there} is not a directory"
        except OSError as error:
            why = f"{there}: {error.strerror}"
        raise BundleError(
            f"{directory}: the bundle cannot be written: {why}",
            hint="name a directory you may write to with --out",
        )

    @classmethod
    def create(
        cls,
        directory: Path,
        *,
        request: dict[str, Any],
        inputs: dict[str, bytes],
        workload_json: str,
        plan_json: str,
        notes: list[Any],
        environment: dict[str, Any],
    ) -> BundleWriter:
        """Begin a bundle in a directory that does not exist or is empty.

        `inputs` maps the names the user gave to their bytes. `notes` is anything JSON can
        say, or pydantic models. Raises `BundleError` when the directory cannot be used.
        """
        cls.check(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            files = input_files(inputs)
            manifest: dict[str, Any] = {
                "format": layout.FORMAT,
                "loadstone_version": __version__,
                "status": "running",
                "created_unix_ns": time.time_ns(),
                "pid": os.getpid(),
                "inputs": files,
            }
            _replace(directory / layout.MANIFEST, _pretty(manifest))
            (directory / layout.INPUT).mkdir()
            for name, file in files.items():
                (directory / file).write_bytes(inputs[name])
            (directory / layout.REQUEST).write_bytes(_pretty(request))
            (directory / layout.WORKLOAD).write_text(workload_json)
            (directory / layout.PLAN).write_text(plan_json)
            (directory / layout.NOTES).write_bytes(_pretty(notes))
            (directory / layout.ENVIRONMENT).write_bytes(_pretty(environment))
            return cls(directory, manifest)
        except OSError as error:
            raise BundleError(
                f"{directory}: the bundle cannot be written: {error.strerror}",
                hint="name a directory you may write to with --out",
            ) from error

    @property
    def engine_dir(self) -> Path:
        """Where the engine writes its tables."""
        return self._directory

    def event(self, obj: dict[str, Any]) -> None:
        """Append one event."""
        _line(self._events, obj)

    def host(self, row: dict[str, Any]) -> None:
        """Append one row of the monitors."""
        self._columns.update(row)
        _line(self._host, row)

    def close(self) -> None:
        """Write no more lines; without `seal` the bundle stays a partial one."""
        for file in (self._events, self._host):
            with contextlib.suppress(OSError):
                file.close()

    def seal(
        self,
        status: Status,
        *,
        exit_code: int | None = None,
        result: Callable[[Bundle], dict[str, Any]] | None = None,
    ) -> None:
        """End the bundle: tables to Parquet, result, hashes, manifest; all of it on disk.

        `result` computes `result.json` from the bundle as it will be read. Raises
        `BundleError` when something cannot be written; the bundle is then still readable,
        as a partial one.
        """
        try:
            self.close()
            self._make_tables()
            self._manifest |= {"status": status, "ended_unix_ns": time.time_ns()}
            if exit_code is not None:
                self._manifest["exit_code"] = exit_code
            if result is not None:
                document = result(Bundle(self._directory, self._manifest))
                (self._directory / layout.RESULT).write_bytes(_pretty(document))
            self._manifest["files"] = _hashes(self._directory)
            _replace(self._directory / layout.MANIFEST, _pretty(self._manifest))
        except OSError as error:
            raise BundleError(
                f"{self._directory}: the bundle cannot be sealed: {error.strerror}",
                hint="what was measured is still there and opens as a partial run",
            ) from error

    def _make_tables(self) -> None:
        for stream, table in layout.STREAMS.items():
            source = self._directory / stream
            if source.exists():
                made = self._directory / f"{table}.part"
                arrows.to_parquet(source, made, layout.SCHEMAS[stream])
                made.replace(self._directory / table)
                source.unlink()
        lines = self._directory / layout.HOST
        if self._columns:
            made = self._directory / f"{layout.HOST_TABLE}.part"
            host_to_parquet(lines, made, self._columns)
            made.replace(self._directory / layout.HOST_TABLE)
        lines.unlink()


def input_files(inputs: Mapping[str, bytes]) -> dict[str, str]:
    """Name to a file under `input/`: the last part of the name, made unique and harmless."""
    files: dict[str, str] = {}
    for name in inputs:
        base = Path(name).name.lstrip(".") or "input"
        file, number = base, 1
        while f"{layout.INPUT}/{file}" in files.values():
            number += 1
            file = f"{number}-{base}"
        files[name] = f"{layout.INPUT}/{file}"
    return files


def _hashes(directory: Path) -> dict[str, dict[str, Any]]:
    """Size and BLAKE3 of every file but the manifest, each one brought to disk first."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name != layout.MANIFEST:
            with path.open("rb") as file:
                os.fsync(file.fileno())
            digest = blake3().update_mmap(path).hexdigest()
            found[name] = {"size_bytes": path.stat().st_size, "blake3": digest}
    return found


def _line(file: BinaryIO, obj: dict[str, Any]) -> None:
    file.write(json.dumps(obj, separators=(",", ":"), default=_plain).encode() + b"\n")
    file.flush()


def _pretty(obj: object) -> bytes:
    return json.dumps(obj, indent=2, ensure_ascii=False, default=_plain).encode() + b"\n"


def _plain(value: object) -> object:
    """Say values JSON has no word for: pydantic models, paths, tuples of either."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else str(value)


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
