"""Writing a bundle while the run goes on, and sealing it at the end.

Knows the order that keeps a bundle readable at every moment: the manifest first (status
`running`), then lines flushed one by one, and at the end tables, result, hashes and the
manifest again by rename. Does not know what any line means.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from loadstone import file_name
from loadstone.bundle import arrows, layout, members, seal, sums
from loadstone.bundle.disk import Disk, not_there, reason, remedy
from loadstone.bundle.growth import Growth
from loadstone.bundle.host import host_to_parquet, that_fit, watched_files
from loadstone.bundle.read import Bundle
from loadstone.errors import BundleError, as_text
from loadstone.messages import make_error, say, templates
from loadstone.path.child import run_in_child
from loadstone.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

Status = Literal["complete", "interrupted", "failed"]


class BundleWriter:
    """One run's directory. Make it with `create`, end it with `seal`, or `close` to leave it partial."""

    def __init__(self, directory: Path, manifest: dict[str, Any], disk: Disk) -> None:
        self._directory = directory
        self._manifest = manifest
        self._disk = disk
        self._columns: set[str] = set()
        self._watched: dict[str, tuple[int, set[str]]] = {}
        """Name of a watched host to its open file and the columns it has so far."""
        self._files: list[int] = []
        try:
            # Held, so that it is found again when somebody renames it.
            self._held = self._tracked(disk.open(directory, os.O_RDONLY | os.O_DIRECTORY))
            append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._events = self._tracked(disk.open(directory / layout.EVENTS, append))
            self._host = self._tracked(disk.open(directory / layout.HOST, append))
            over = os.O_WRONLY | os.O_CREAT
            self._growth = Growth(self._tracked(disk.open(directory / layout.GROWTH, over)), disk)
            self.note_growth()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def check(directory: Path) -> None:
        """Raise `BundleError` when a bundle could not be begun here; create nothing."""
        run_in_child(lambda: _check(directory), doing=say("path.child.looking.bundle", directory=directory))

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
        disk: Disk | None = None,
    ) -> BundleWriter:
        """Begin a bundle in a directory that does not exist or is empty.

        `inputs` maps the names the user gave to their bytes. `notes` is anything JSON can
        say, or pydantic models. Raises `BundleError` when the directory cannot be used.
        """
        _check(directory)
        templates()  # What is said where memory is short is read before.
        disk = disk or Disk()
        names = [layout.MANIFEST, f"{layout.MANIFEST}.part", layout.EVENTS, layout.HOST, layout.GROWTH]
        directories = [directory / layout.INPUT, *not_there(directory)]
        try:
            disk.mkdir(directory)
            inputs = {as_text(name): content for name, content in inputs.items()}
            files = input_files(inputs)
            begun = {file: inputs[name] for name, file in files.items()} | {
                layout.REQUEST: _pretty(request),
                layout.WORKLOAD: workload_json.encode(),
                layout.PLAN: plan_json.encode(),
                layout.NOTES: _pretty(notes),
                layout.ENVIRONMENT: _pretty(environment),
            }
            names += begun
            manifest = _first_manifest(files, begun)
            disk.put_whole(directory / layout.MANIFEST, _sealed(manifest))
            disk.mkdir(directory / layout.INPUT)
            for name, data in begun.items():
                disk.put(directory / name, data)
            return cls(directory, manifest, disk)
        except BaseException as error:
            # Nobody could read it, and a second try with the same directory would find it in its place.
            disk.take_back([directory / name for name in names], directories)
            if isinstance(error, OSError | MemoryError):
                raise _unwritten(directory, error) from error
            raise

    @property
    def directory(self) -> Path:
        """Where it is: where it was begun, unless somebody has renamed it since."""
        return self._present_directory() or self._directory

    def _present_directory(self) -> Path | None:
        """Return where it is now; None: it was removed."""
        if self._held not in self._files:
            return self._directory
        held_stat = os.fstat(self._held)
        now = Path(os.readlink(f"/proc/self/fd/{self._held}"))  # noqa: PTH115 # a link of procfs
        for path in (self._directory, now):
            with contextlib.suppress(OSError):
                path_stat = path.stat()
                if (path_stat.st_dev, path_stat.st_ino) == (held_stat.st_dev, held_stat.st_ino):
                    return path
        return None

    def unwritten(self, error: OSError | MemoryError) -> BundleError:
        """Say why it takes no more."""
        return (
            _gone(self._directory) if self._present_directory() is None else _unwritten(self.directory, error)
        )

    @property
    def engine_dir(self) -> Path:
        """Where the engine writes its tables."""
        return self._directory

    def event(self, obj: dict[str, Any]) -> None:
        """Append one event."""
        self._disk.write_all(self._events, _line(obj))

    def host(self, row: dict[str, Any]) -> None:
        """Append one row of the monitors."""
        self._columns.update(row)
        self._disk.write_all(self._host, _line(row))

    def watched(self, name: str, row: dict[str, Any]) -> None:
        """Append one row of a watched host; each of them is written by one thread."""
        if name not in self._watched:
            place = self.directory / watched_files(name)[1]
            if not self._watched:
                # Not those above it: a bundle that was removed is not begun anew.
                self._disk.mkdir(place.parent, above=False)
            append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._watched[name] = self._tracked(self._disk.open(place, append)), set()
        row = that_fit(row)
        file, columns = self._watched[name]
        columns.update(row)
        self._disk.write_all(file, _line(row))

    def note_growth(self) -> None:
        """Write down what the files that grow hold by now."""
        if self._files:
            self._growth.note(self.directory)

    def close(self) -> None:
        """Write no more lines; without `seal` the bundle stays a partial one."""
        if self._files:
            self._directory = self.directory
        for file in self._files:
            with contextlib.suppress(OSError):
                os.close(file)
        self._files = []

    def leave(self, result: Callable[[Bundle], dict[str, Any]] | None) -> None:
        """End the bundle as a partial one, because it could not be written; compute what can be."""
        self.close()
        if result is not None:
            # It is known already that something went wrong; this was a try.
            with contextlib.suppress(Exception):
                result(Bundle(self._directory, self._manifest))

    def seal(
        self,
        status: Status,
        *,
        exit_code: int | None = None,
        result: Callable[[Bundle], dict[str, Any]] | None = None,
    ) -> None:
        """End the bundle: tables to Parquet, result, hashes, manifest; all of it on disk.

        `result` computes `result.json` from the bundle as it will be read; it is asked also when
        the tables cannot be made, so that its figures are not lost. Raises `BundleError` when
        something cannot be written or computed; the bundle is then still readable, as a partial one.
        """
        is_gone = self._present_directory() is None
        self.close()
        if is_gone:
            # Nor is anything put into what somebody made in its place.
            raise _gone(self._directory)
        self._manifest |= {"status": status, "ended_unix_ns": time.time_ns()}
        if exit_code is not None:
            self._manifest["exit_code"] = exit_code
        failed: BaseException | None = None
        try:
            self._make_tables()
        except Exception as error:  # noqa: BLE001 # a library's own errors, too: it is told below
            failed = error
        document = None
        try:
            if result is not None:
                document = result(Bundle(self._directory, self._manifest))
        except Exception as error:  # noqa: BLE001 # what was measured is not lost for a figure that fails
            failed = failed or error
        try:
            self._complete(document, failed)
        except Exception as error:
            self._clear_away()
            if not self._directory.is_dir():
                raise _gone(self._directory) from error
            raise BundleError(f"{self._directory}: {self._left(error)}", hint=remedy(error)) from error

    def _left(self, error: Exception) -> str:
        """Say what is there after sealing failed."""
        with contextlib.suppress(BundleError):
            if members.document(self._directory, layout.MANIFEST)["status"] == self._manifest["status"]:
                # Only bringing the directory's entry to disk is left after it.
                return say("bundle.seal.not_lasting", reason=reason(error))
        return say("bundle.seal.failed", reason=reason(error))

    def _complete(self, document: dict[str, Any] | None, failed: BaseException | None) -> None:
        if failed is not None:
            raise failed
        if document is not None:
            self._disk.put_whole(self._directory / layout.RESULT, _pretty(document))
        for name in ("begun", "growth"):
            self._manifest.pop(name, None)
        self._disk.unlink(self._directory / layout.GROWTH)
        self._manifest["files"] = self._hashes()
        self._disk.put_whole(self._directory / layout.MANIFEST, _sealed(self._manifest))

    def _tracked(self, file: int) -> int:
        self._files.append(file)
        return file

    def _make_tables(self) -> None:
        for stream, table in layout.STREAMS.items():
            source = self._directory / stream
            if source.exists():
                part = self._directory / f"{table}.part"
                schema = layout.SCHEMAS[stream]
                self._disk.make(part, partial(_to_parquet, source, schema))
                self._disk.replace(part, self._directory / table)
                self._disk.unlink(source)
        lines = self._directory / layout.HOST
        if self._columns:
            part = self._directory / f"{layout.HOST_TABLE}.part"
            self._disk.make(part, lambda out: host_to_parquet(lines, out, self._columns))
            self._disk.replace(part, self._directory / layout.HOST_TABLE)
        self._disk.unlink(lines)
        for name, (_, columns) in self._watched.items():
            sealed, growing = watched_files(name)
            place = self._directory / growing
            part = self._directory / f"{sealed}.part"
            self._disk.make(part, partial(_host_table, place, columns))
            self._disk.replace(part, self._directory / sealed)
            self._disk.unlink(place)
        self._make_sums(Bundle(self._directory, self._manifest))

    def _make_sums(self, bundle: Bundle) -> None:
        last = bundle.last_interval()
        if sums.window_of(last) == 1:
            return  # They would be the samples again.
        part = self._directory / f"{layout.SUMS}.part"
        self._disk.make(part, partial(sums.to_parquet, bundle.sample_pieces, last))
        self._disk.replace(part, self._directory / layout.SUMS)

    def _clear_away(self) -> None:
        """Remove what was begun and not finished."""
        with contextlib.suppress(OSError):
            for part in [*self._directory.glob("*.part"), *self._directory.glob(f"{layout.WATCHED}/*.part")]:
                part.unlink()

    def _hashes(self) -> dict[str, dict[str, Any]]:
        """Size and BLAKE3 of every file but the manifest, each one brought to disk first."""
        hashes: dict[str, dict[str, Any]] = {}
        for path in sorted(self._directory.rglob("*")):
            name = path.relative_to(self._directory).as_posix()
            if path.is_file() and name != layout.MANIFEST and name not in seal.REPORTS:
                self._disk.sync(path)
                size_bytes, digest = seal.hash_of(self._directory, name)
                hashes[name] = {"size_bytes": size_bytes, "blake3": digest}
        return hashes


def _unwritten(directory: Path, error: OSError | MemoryError) -> BundleError:
    return make_error(
        BundleError,
        "bundle.directory.not_written",
        hint=remedy(error),
        directory=directory,
        reason=reason(error),
    )


def _gone(directory: Path) -> BundleError:
    hint = remedy(FileNotFoundError(errno.ENOENT, ""))
    return make_error(BundleError, "bundle.directory.gone", hint=hint, directory=directory)


def _first_manifest(inputs: dict[str, str], begun: dict[str, bytes]) -> dict[str, Any]:
    """Return what the manifest says of a run that begins: the files of its `inputs`, the seals of `begun`."""
    return {
        "format": layout.FORMAT,
        "loadstone_version": __version__,
        "status": "running",
        "created_unix_ns": time.time_ns(),
        "pid": os.getpid(),
        "inputs": inputs,
        "begun": {name: seal.sealed(data) for name, data in begun.items()},
        "growth": True,
    }


def _check(directory: Path) -> None:
    ancestor = directory.absolute()
    try:
        if directory.is_dir() and any(directory.iterdir()):
            raise make_error(BundleError, "bundle.directory.not_empty", directory=directory)
        while not ancestor.exists() and ancestor != ancestor.parent:
            ancestor = ancestor.parent
        if ancestor.is_dir():
            # Asking for permission is not enough: root has it on file systems that take no files.
            with tempfile.TemporaryFile(dir=ancestor):
                return
        why, hint = say("bundle.directory.no_directory", path=ancestor), say("bundle.remedy.eacces")
    except OSError as error:
        why, hint = f"{ancestor}: {error.strerror}", remedy(error)
    raise make_error(BundleError, "bundle.directory.not_written", hint=hint, directory=directory, reason=why)


def input_files(inputs: Mapping[str, bytes]) -> dict[str, str]:
    """Name to a file under `input/`: the last part of the name, made unique and harmless."""
    files: dict[str, str] = {}
    for name in inputs:
        base = Path(name).name.lstrip(".") or "input"
        file, number = base, 1
        while f"{layout.INPUT}/{file}" in files.values():
            number += 1
            file = file_name.short(f"{number}-{base}")
        files[name] = f"{layout.INPUT}/{file}"
    return files


def _to_parquet(source: Path, schema: pl.Schema, out: Path) -> None:
    arrows.to_parquet(source, out, schema)


def _host_table(lines: Path, columns: set[str], out: Path) -> None:
    host_to_parquet(lines, out, columns)


def _line(obj: dict[str, Any]) -> bytes:
    line = json.dumps(obj, separators=(",", ":"), ensure_ascii=False, default=_plain)
    return line.encode(errors="replace") + b"\n"


def _pretty(obj: object) -> bytes:
    # A name on the command line may be bytes that are no text; JSON has no word for them.
    return json.dumps(obj, indent=2, ensure_ascii=False, default=_plain).encode(errors="replace") + b"\n"


def _sealed(manifest: dict[str, Any]) -> bytes:
    """Return a manifest with the hash of what will be read of it."""
    return _pretty(seal.with_digest(json.loads(_pretty(manifest))))


def _plain(value: object) -> object:
    """Say values JSON has no word for: pydantic models, paths, tuples of either."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else str(value)
