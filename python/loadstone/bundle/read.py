"""Reading a bundle, whole, partial, damaged, or still growing.

Knows which file to take when a run was sealed and when it was not, that a sealed one is held
against its seal before anything is read from it, and that what cannot be read is named while the
rest is. Changes nothing and computes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import polars as pl
from pydantic import ValidationError

from loadstone import file_kind, slow_answer, units
from loadstone.bundle import (
    arrows,
    growth,
    layout,
    members,
    plan_consistency,
    schemas,
    seal,
    sealed_tables,
    sums,
)
from loadstone.bundle.host import TIMES, host_rows, watched_files
from loadstone.bundle.hosts import HOSTS, HostPart, HostsRecord, shifted_ios, shifted_samples
from loadstone.bundle.json_lines import read_lines
from loadstone.bundle.table_rows import columns_of, rows_where
from loadstone.errors import BundleError
from loadstone.messages import make_error, say
from loadstone.plan.model import Plan
from loadstone.workload.model import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pydantic import TypeAdapter

T = TypeVar("T")

PIECE_ROWS: Final = sealed_tables.PIECE_ROWS
FREE_NS: Final = 3600 * 10**9
MOST_TIMES: Final = 2
"""A row of samples may be later than all else that a bundle tells, but not by so much."""
MOST_NAMED: Final = 5
REQUESTED: Final = frozenset({"workload", "known_workload", "asked"})
"""What is read once more where it is wanted again."""
"""Of more files that differ the first are named."""


class Bundle:
    """One run as it is on disk. Small files are read once, on first use; tables on every call.

    `verified`: True when every file is the one that was sealed, None for a run that was never
    sealed, which has nothing to be held against, and False when the user wants to see it all the
    same. `altered` says what differs, `faults` what could not be read so far, both in words.
    """

    def __init__(
        self,
        path: Path,
        manifest: dict[str, Any],
        *,
        verified: bool | None = None,
        altered: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.verified = verified
        self.altered = altered
        self.faults: list[str] = []
        self._host_was_read = False
        self._samples_fault: str | None = None
        self._footers: sealed_tables.Footers = {}

    def __getstate__(self) -> dict[str, Any]:
        """Travel without what was asked for: cases are made of it, and nothing that comes after them."""
        return {name: value for name, value in vars(self).items() if name not in REQUESTED}

    @classmethod
    def open(cls, path: Path, *, unverified: bool = False) -> Bundle:
        """Open a directory and hold what is in it against its seal.

        Raises `BundleError` when it is not a bundle this version can read and, without
        `unverified`, when anything in it was altered, added or lost since it was sealed.
        """
        with slow_answer.told(path):
            document, manifest = _manifest(path)
        if manifest.files is None and document.get("status") in STATUSES:
            # Only a seal writes such a status, and it names the files.
            altered = [f"{layout.MANIFEST} was altered: it names no files"]
        elif manifest.files is None:
            altered = seal.begun_differences(path, document, manifest)
            altered += growth.differences(path) if manifest.growth else []
        else:
            altered = seal.differences(path, document, manifest)
        if altered and not unverified:
            if manifest.files is None:
                raise make_error(
                    BundleError, "bundle.seal.changed_since", path=path, altered=in_short(altered)
                )
            raise make_error(BundleError, "bundle.seal.changed", path=path, altered=in_short(altered))
        verified = False if unverified else (None if manifest.files is None else True)
        return cls(path, document, verified=verified, altered=tuple(altered))

    @property
    def status(self) -> str:
        """`complete`, `interrupted`, `failed`, or `partial` when the run was never sealed."""
        status = str(self.manifest.get("status"))
        return status if status in STATUSES else "partial"

    @property
    def doubt(self) -> str | None:
        """Why these may not be the numbers that were measured, in a sentence; None when they are."""
        return doubt(self.altered) if self.verified is False else None

    @property
    def unsealed(self) -> str | None:
        """What that means for its numbers, of a run that was killed or still runs; None of a sealed one."""
        return say("bundle.seal.unsealed") if self.verified is None and self.status == "partial" else None

    @property
    def doubts(self) -> list[str]:
        """Why its numbers may not be those that were measured, or not all, as far as it was read."""
        return [*(one for one in (self.doubt, self.unsealed) if one is not None), *self.faults]

    @cached_property
    def plan(self) -> Plan:
        """What ran."""
        try:
            plan = Plan.model_validate_json(members.content(self.path, layout.PLAN))
        except ValidationError as error:
            raise members.malformed(self.path / layout.PLAN, error) from error
        wrong = plan_consistency.contradiction(plan)
        if wrong is not None:
            raise make_error(
                BundleError, "bundle.plan.contradiction", path=self.path / layout.PLAN, reason=wrong
            )
        return plan

    @cached_property
    def hosts(self) -> HostsRecord | None:
        """The hosts of a run on several; None of a run on one."""
        if not members.exists(self.path, HOSTS):
            return None
        try:
            return HostsRecord.model_validate_json(members.content(self.path, HOSTS))
        except ValidationError as error:
            raise members.malformed(self.path / HOSTS, error) from error

    def of_host(self, part: HostPart) -> Bundle | None:
        """Return the bundle of one host; None where it did not come or cannot be read."""
        if part.bundle is None:
            return None
        try:
            members.check_directory(self.path, part.bundle)
            document, _ = _manifest(self.path / part.bundle)
        except BundleError as error:
            self._fault(error)
            return None
        # It is held against the seal of the whole.
        return Bundle(self.path / part.bundle, document, verified=self.verified)

    @cached_property
    def _known_plan(self) -> Plan | None:
        """The Plan, to hold other files against; None where it cannot be read."""
        try:
            return self.plan
        except BundleError:
            return None

    @cached_property
    def workload(self) -> Workload:
        """What was asked for, in its neutral form."""
        try:
            return Workload.model_validate_json(members.content(self.path, layout.WORKLOAD))
        except ValidationError as error:
            raise members.malformed(self.path / layout.WORKLOAD, error) from error

    @cached_property
    def known_workload(self) -> Workload | None:
        """The Workload; None where it cannot be read, which is a fault."""
        try:
            return self.workload
        except BundleError as error:
            self._fault(error)
            return None

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What the front end said of the workload and its jobs, of workloads of any version."""
        try:
            return schemas.RequestedWorkload.model_validate(self._document(layout.WORKLOAD)).model_dump(
                mode="json"
            )
        except ValidationError as error:
            raise members.malformed(self.path / layout.WORKLOAD, error) from error

    @cached_property
    def request(self) -> dict[str, Any]:
        """What was asked for, and how: argv, working directory, front end, options."""
        return dict(self._shaped("request", layout.REQUEST))

    @cached_property
    def notes(self) -> list[Any]:
        """What the user should know about how the request was read."""
        return list(self._shaped("notes", layout.NOTES))

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Where it ran."""
        return dict(self._shaped("environment", layout.ENVIRONMENT))

    def probed(self, shape: TypeAdapter[T]) -> T | None:
        """Return what probes after the run measured, without what breaks its shape; None where none ran."""
        try:
            if not members.exists(self.path, layout.PROBED):
                return None
        except BundleError as error:
            self._fault(error)
            return None
        document = self._without_wrong(layout.PROBED, shape)
        return None if document is None else shape.validate_python(document)

    @cached_property
    def inputs(self) -> dict[str, bytes]:
        """Name to content of every file the user gave, byte for byte."""
        contents: dict[str, bytes] = {}
        for name, file in self.manifest.get("inputs", {}).items():
            try:
                contents[name] = members.content(self.path, file)
            except BundleError as error:
                self._fault(error)
        return contents

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Every event, oldest first; ticks without their `rows`, which the samples hold in full."""
        plan = self._known_plan
        try:
            events = read_lines(
                self.path / layout.EVENTS,
                without=("rows",),
                say=self._say,
                right=lambda value: schemas.is_event(value, plan),
                last="rows" if self.verified else None,
            )
        except BundleError as error:
            self._fault(error)
            return []
        # The engine speaks before it writes samples.
        if not events and any(
            members.exists(self.path, name) for names in layout.STREAMS.items() for name in names
        ):
            self._say(say("bundle.file.no_events", file=layout.EVENTS))
        return events

    def event(self, kind: str) -> dict[str, Any] | None:
        """Return the last event of a type."""
        return next((event for event in reversed(self.events) if event.get("type") == kind), None)

    def samples(self) -> pl.DataFrame:
        """Return the samples so far, columns as in `layout.SAMPLES`."""
        pieces = list(self.sample_pieces())
        return pl.concat(pieces) if pieces else layout.SAMPLES.to_frame()

    def sample_pieces(self, columns: Sequence[str] = tuple(layout.SAMPLES)) -> Iterator[pl.DataFrame]:
        """Yield the samples so far a piece at a time, in memory that does not grow with the run."""
        needed = [*columns, *(name for name in sealed_tables.CHECKED if name not in columns)]
        impossible = wrong = late = 0
        for piece in self._pieces("samples.arrows", needed):
            possible = sealed_tables.possible_samples(self._known_plan, piece)
            possible_rows, too_late = self._in_time(rows_where(piece, possible))
            late += too_late
            right, mended = sealed_tables.mended(columns_of(possible_rows, columns))
            impossible += piece.height - possible_rows.height - too_late
            wrong += mended
            yield right
        if impossible:
            self._say(say("bundle.fault.samples", count=impossible))
        if late:
            self._say(say("bundle.fault.late", count=late, known=units.seconds((self._known_ns or 0) / 1e9)))
        if wrong and set(layout.NUMBERS) <= set(columns):
            self._say(say("bundle.fault.latencies", count=wrong))

    def _in_time(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """Return samples without those far beyond what else tells how long the run was, and how many.

        What makes a row for each second would make millions of them.
        """
        interval_ns = 1 if self._known_plan is None else self._known_plan.interval_ns
        reached = max(sums.last_of(rows["end_ns"]), sums.last_of(rows["interval"]) * interval_ns)
        if reached <= FREE_NS or self._known_ns is None:
            return rows, 0
        most_ns = FREE_NS + MOST_TIMES * self._known_ns
        if reached <= most_ns:
            return rows, 0
        in_time = (pl.col("end_ns") <= most_ns) & (pl.col("interval") <= most_ns // interval_ns)
        right = rows.filter(in_time)
        return right, rows.height - right.height

    @cached_property
    def _known_ns(self) -> int | None:
        """How long the run was by its events, its monitors and its Plan, at least; None where none tells."""
        times = [one["t_ns"] for one in self.events if isinstance(one.get("t_ns"), int)]
        if self.hosts is None:
            last_row = self.host(*TIMES)["t_ns"].max()
            times += [last_row] if isinstance(last_row, int) else []
        streams = () if self._known_plan is None else self._known_plan.streams
        if streams and all(one.limits.runtime_ns for one in streams):
            # Stages follow each other; at most all streams do.
            limits = [one.limits for one in streams]
            times.append(sum(one.start_delay_ns + one.ramp_ns + one.runtime_ns for one in limits))
        return max(times, default=None)

    def samples_fault(self) -> str | None:
        """Read the samples; return in words why not all of them can be read, None where they can."""
        if not self.verified:
            for _ in self.sample_pieces(["interval"]):
                pass
        return self._samples_fault

    def last_interval(self) -> int:
        """Return the number of the last interval that has samples; 0 without any."""
        return max((sums.last_of(piece["interval"]) for piece in self.sample_pieces(["interval"])), default=0)

    @cached_property
    def sums_window(self) -> int | None:
        """How many intervals a window of the sums has; None where they are not there, or may not be right."""
        if self.verified is False or not members.exists(self.path, layout.SUMS):
            return None
        intervals = [piece["intervals"] for piece in self.sums(["intervals"]) if piece.height]
        return int(pl.concat(intervals).min()) if intervals else None  # type: ignore[arg-type] # a column of numbers

    def sums(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield what the histograms come to (`bundle.sums`), a piece at a time."""
        needed = [*columns, *(name for name in sealed_tables.NAMED if name not in columns)]
        for piece in sealed_tables.pieces(self.path, layout.SUMS, sums.SCHEMA, needed, known=self._footers):
            named = rows_where(piece, sealed_tables.named_by(self._known_plan, piece))
            yield sealed_tables.mended(columns_of(named, columns))[0]

    def ios(self) -> pl.DataFrame | None:
        """Return one row per I/O, columns as in `layout.IOS`; `None` when they were not kept."""
        folders = (
            [self.path]
            if self.hosts is None
            else [self.path / one.bundle for one in self.hosts.hosts if one.bundle]
        )
        names = ("ios.arrows", layout.STREAMS["ios.arrows"])
        if not any(members.exists(folder, name) for folder in folders for name in names):
            return None
        pieces = [layout.IOS.to_frame(), *self._pieces("ios.arrows", tuple(layout.IOS))]
        table = pl.concat(pieces)
        right = table.filter(sealed_tables.possible_ios(self._known_plan))
        if right.height < table.height:
            self._say(say("bundle.fault.ios", count=table.height - right.height))
        return right

    def host(self, *starts: str) -> pl.DataFrame:
        """Return the monitors' rows: `t_ns`, `dt_ns` and what the host has; empty when there are none.

        With `starts` only columns that begin with one of them: many cores have many columns.
        """
        self._host_was_read = True
        try:
            return host_rows(self.path, starts, self._say)
        except BundleError as error:
            self._fault(error)
            return pl.DataFrame(schema=dict.fromkeys(TIMES, pl.Int64))

    def watched(self, name: str) -> pl.DataFrame:
        """Return the rows of a watched host: `t_ns`, `dt_ns` and what it told; empty when it told nothing."""
        sealed, growing = watched_files(name)
        try:
            return host_rows(self.path, (), self._say, sealed=sealed, growing=growing)
        except BundleError as error:
            self._fault(error)
            return pl.DataFrame(schema=dict.fromkeys(TIMES, pl.Int64))

    def look_at_all(self) -> None:
        """Read what is small, so that `faults` has all of it that cannot be read."""
        for read in (lambda: self.request, lambda: self.notes, lambda: self.environment, lambda: self.inputs):
            read()
        # Whoever read a part of it was told already what cannot be read.
        if not self._host_was_read:
            self.host(*TIMES)

    def verify(self) -> list[str]:
        """Return in words what is not as it was sealed.

        Raises `BundleError` for a bundle that was never sealed: it has no hashes.
        """
        document, manifest = _manifest(self.path)
        if manifest.files is None:
            raise make_error(BundleError, "bundle.seal.none", path=self.path)
        return seal.differences(self.path, document, manifest)

    def _pieces(self, stream: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield a table of the engine's, sealed or growing; what cannot be read is said."""
        if self.hosts is not None:
            yield from self._pieces_of_hosts(stream, columns)
            return
        sealed = layout.STREAMS[stream]
        schema = layout.SCHEMAS[stream]
        try:
            if members.exists(self.path, sealed):
                counted = pl.Schema({**schema, **layout.COUNTED})
                for piece in sealed_tables.pieces(self.path, sealed, counted, columns, known=self._footers):
                    yield columns_of(piece, columns)
            else:
                for piece in arrows.pieces(self.path / stream, schema, partial(self._unread, stream)):
                    yield from piece.select(columns).iter_slices(PIECE_ROWS)
        except BundleError as error:
            self._unread(stream, self._without_path(error))

    def _pieces_of_hosts(self, stream: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the tables of all hosts, on the run's clock and with its numbers."""
        for part in self.hosts.hosts if self.hosts is not None else ():
            bundle = self.of_host(part)
            if bundle is None:
                continue
            for piece in bundle._pieces(stream, columns):
                yield (
                    shifted_samples(piece, part, self.plan.interval_ns)
                    if stream == "samples.arrows"
                    else shifted_ios(piece, part)
                )
            for fault in bundle.faults:
                self._say(f"{part.name}: {fault}")
            if bundle._samples_fault is not None:
                self._samples_fault = f"{part.name}: {bundle._samples_fault}"

    def _shaped(self, what: schemas.Loader, name: str) -> Any:
        shape, empty = schemas.SHAPES[what]
        document = self._without_wrong(name, shape)
        return empty() if document is None else document

    def _without_wrong(self, name: str, shape: TypeAdapter[Any]) -> Any:
        """Read a document, without what breaks its shape and is said; None: nothing is left."""
        try:
            document, wrong = schemas.pruned(self._document(name), shape)
        except BundleError as error:
            self._fault(error)
            return None
        for place in wrong[:MOST_NAMED]:
            self._say(say("bundle.fault.unreadable", file=name, place=place))
        return document

    def _document(self, name: str) -> Any:
        return members.document(self.path, name)

    def _fault(self, error: BundleError) -> None:
        self._say(self._without_path(error))

    def _without_path(self, error: BundleError) -> str:
        return error.message.removeprefix(f"{self.path}{os.sep}")

    def _unread(self, stream: str, why: str) -> None:
        """Say why not all of a table of the engine's can be read."""
        self._say(why)
        if stream == "samples.arrows":
            self._samples_fault = why

    def _say(self, what: str) -> None:
        if what not in self.faults:
            self.faults.append(what)


STATUSES: Final = frozenset({"complete", "interrupted", "failed"})


def doubt(altered: Sequence[str]) -> str:
    """Say of what is read with `--unverified` why it may not be what was measured."""
    if altered:
        return say("bundle.seal.not_verified", altered=in_short(altered))
    return say("bundle.seal.unverified")


def in_short(altered: Sequence[str]) -> str:
    """Return what differs, the first of many."""
    more = len(altered) - MOST_NAMED
    return ", ".join(altered[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _manifest(path: Path) -> tuple[dict[str, Any], seal.Manifest]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        why = say("bundle.directory.not_there") if error.errno == errno.ENOENT else str(error.strerror)
        raise make_error(BundleError, "bundle.directory.unreadable", path=path, reason=why) from error
    if not stat.S_ISDIR(mode):
        raise make_error(BundleError, "bundle.directory.other", path=path, found=file_kind.words(mode))
    if not members.exists(path, layout.MANIFEST):
        raise make_error(BundleError, "bundle.directory.no_manifest", path=path, file=layout.MANIFEST)
    where = path / layout.MANIFEST
    document = members.document(path, layout.MANIFEST)
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise make_error(BundleError, "bundle.directory.no_format", path=where)
    if document["format"] != layout.FORMAT:
        raise _of_another_format(path, document)
    try:
        return document, seal.Manifest.model_validate(document)
    except ValidationError as error:
        raise members.malformed(where, error) from error


def _of_another_format(path: Path, document: dict[str, Any]) -> BundleError:
    bundle_format, wrote = document["format"], str(document.get("loadstone_version", "?"))
    text = say("bundle.format.other", path=str(path), found=bundle_format, readable=layout.FORMAT)
    if bundle_format > layout.FORMAT:
        return BundleError(text, hint=say("bundle.format.newer_hint", version=wrote))
    return BundleError(text, hint=say("bundle.format.older_hint", folder=layout.INPUT, version=wrote))
