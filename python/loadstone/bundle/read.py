"""Reading a bundle, whole, partial, or still growing.

Knows which file to take when a run was sealed and when it was not. Changes nothing and
computes nothing.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from blake3 import blake3
from pyarrow.parquet import ParquetFile
from pydantic import ValidationError

from loadstone.bundle import arrows, layout, older
from loadstone.bundle.host import host_rows
from loadstone.bundle.lines import read_lines
from loadstone.errors import BundleError
from loadstone.plan.model import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PIECE_ROWS: Final = 8192


class Bundle:
    """One run as it is on disk. Small files are read once, on first use; tables on every call."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Open a directory; raises `BundleError` when it is not a bundle this version can read."""
        try:
            manifest = json.loads((path / layout.MANIFEST).read_bytes())
        except FileNotFoundError:
            what = "there is no such directory" if not path.exists() else f"it has no {layout.MANIFEST}"
            raise BundleError(
                f"{path}: not a bundle: {what}",
                hint="name the directory `loadstone run` printed after 'bundle:'",
            ) from None
        except NotADirectoryError:
            raise BundleError(
                f"{path}: not a bundle: it is a file",
                hint="name the directory `loadstone run` printed after 'bundle:'",
            ) from None
        except (OSError, ValueError) as error:
            raise BundleError(f"{path / layout.MANIFEST}: cannot be read: {error}") from error
        if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
            raise BundleError(f"{path / layout.MANIFEST}: not the manifest of a bundle: no 'format'")
        if manifest["format"] > layout.FORMAT:
            raise BundleError(
                f"{path}: the bundle has format {manifest['format']}; this version reads up to "
                f"{layout.FORMAT}",
                hint=f"use loadstone {manifest.get('loadstone_version', 'of that version')} or newer",
            )
        return cls(path, manifest)

    @property
    def status(self) -> str:
        """`complete`, `interrupted`, `failed`, or `partial` when the run was never sealed."""
        status = str(self.manifest.get("status"))
        return status if status in {"complete", "interrupted", "failed"} else "partial"

    @cached_property
    def plan(self) -> Plan:
        """What ran."""
        try:
            if self.manifest["format"] < layout.FORMAT:
                document = older.completed(self._json(layout.PLAN), self.manifest["format"])
                return Plan.model_validate_json(json.dumps(document))
            return Plan.model_validate_json(self._bytes(layout.PLAN))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BundleError(f"{self.path / layout.PLAN}: {where}: {first['msg']}") from error

    @cached_property
    def request(self) -> dict[str, Any]:
        """What was asked for, and how: argv, working directory, front end, options."""
        return dict(self._json(layout.REQUEST))

    @cached_property
    def notes(self) -> list[Any]:
        """What the user should know about how the request was read."""
        return list(self._json(layout.NOTES))

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Where it ran."""
        return dict(self._json(layout.ENVIRONMENT))

    @cached_property
    def inputs(self) -> dict[str, bytes]:
        """Name to content of every file the user gave, byte for byte."""
        return {name: self._bytes(file) for name, file in self.manifest.get("inputs", {}).items()}

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Every event, oldest first; ticks without their `rows`, which the samples hold in full."""
        return read_lines(self.path / layout.EVENTS, without=("rows",))

    def event(self, kind: str) -> dict[str, Any] | None:
        """Return the last event of a type."""
        return next((event for event in reversed(self.events) if event.get("type") == kind), None)

    def samples(self) -> pl.DataFrame:
        """Return the samples so far, columns as in `layout.SAMPLES`."""
        found = self._table("samples.arrows")
        return layout.SAMPLES.to_frame() if found is None else found

    def sample_pieces(self, columns: Sequence[str] = tuple(layout.SAMPLES)) -> Iterator[pl.DataFrame]:
        """Yield the samples so far a piece at a time, in memory that does not grow with the run."""
        sealed = self.path / layout.STREAMS["samples.arrows"]
        if sealed.exists():
            with ParquetFile(sealed) as file:
                for batch in file.iter_batches(PIECE_ROWS, columns=list(columns)):
                    yield older.filled(pl.DataFrame(batch)).select(columns)
        else:
            for piece in arrows.pieces(self.path / "samples.arrows", layout.SAMPLES):
                yield from piece.select(columns).iter_slices(PIECE_ROWS)

    def ios(self) -> pl.DataFrame | None:
        """Return one row per I/O, columns as in `layout.IOS`; `None` when they were not kept."""
        return self._table("ios.arrows")

    def host(self, *starts: str) -> pl.DataFrame:
        """Return the monitors' rows: `t_ns`, `dt_ns` and what the host has; empty when there are none.

        With `starts` only columns that begin with one of them: many cores have many columns.
        """
        return host_rows(self.path, starts)

    def verify(self) -> list[str]:
        """Return the files that are missing or differ from the manifest, in its order.

        Raises `BundleError` for a bundle that was never sealed: it has no hashes.
        """
        if "files" not in self.manifest:
            raise BundleError(f"{self.path}: a partial bundle has no hashes to verify")
        return [name for name, said in self.manifest["files"].items() if not self._same(name, said)]

    def _same(self, name: str, said: dict[str, Any]) -> bool:
        path = self.path / name
        if not path.is_file() or path.stat().st_size != said["size_bytes"]:
            return False
        return bool(blake3().update_mmap(path).hexdigest() == said["blake3"])

    def _table(self, stream: str) -> pl.DataFrame | None:
        sealed = self.path / layout.STREAMS[stream]
        if sealed.exists():
            return older.filled(pl.read_parquet(sealed)).select(layout.SCHEMAS[stream].names())
        growing = self.path / stream
        return arrows.read(growing, layout.SCHEMAS[stream]) if growing.exists() else None

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise BundleError(
                f"{self.path / name}: cannot be read: {error.strerror}",
                hint="the run may have been killed before it began",
            ) from error

    def _json(self, name: str) -> Any:
        try:
            return json.loads(self._bytes(name))
        except ValueError as error:
            raise BundleError(f"{self.path / name}: not JSON: {error}") from error
