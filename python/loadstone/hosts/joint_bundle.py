"""The bundle of all hosts while it is written: one Plan of theirs, what happens between them, their parts.

Knows a directory and what stands in it (`bundle.hosts`). Decides nothing.
"""

from __future__ import annotations

import shutil
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from loadstone.bundle.disk import Disk
from loadstone.bundle.hosts import FOLDER, HOSTS, HostPart, HostsRecord
from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.hosts import merge
from loadstone.hosts.agent_links import fetch
from loadstone.hosts.host_state import notes_of_hosts
from loadstone.session import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.bundle.hosts import SharedSeen
    from loadstone.hosts.agent_links import Link
    from loadstone.hosts.ending import HostsEnding
    from loadstone.hosts.host_state import HostState
    from loadstone.session import RunRequest

MOST_EVENTS: Final = 10_000
COMING: Final = ".coming"
"""Ends the name of a host's bundle that is still on its way; it begins with a dot, which no host's does."""


class JointBundle:
    """One run's directory. Raises `BundleError` when it cannot be begun."""

    def __init__(
        self,
        directory: Path,
        request: RunRequest,
        hosts: Mapping[str, HostState],
        *,
        shared: tuple[SharedSeen, ...],
        on_loss: str,
    ) -> None:
        self._error: OSError | MemoryError | None = None
        self._placing = threading.Lock()
        self._ended = False
        self._shared, self._on_loss = shared, on_loss
        plans = {name: state.armed_plan for name, state in hosts.items() if state.armed_plan is not None}
        self.merged = merge.merged_plan(plans, shared)
        joined = self.merged
        environments = {name: state.environment for name, state in hosts.items()}
        self._writer = BundleWriter.create(
            directory,
            request=request.request,
            inputs=request.inputs,
            workload_json=request.workload_json,
            plan_json=joined.plan.model_dump_json(),
            notes=[*request.notes, *notes_of_hosts(hosts)],
            environment=merge.merged_environment(environments, joined.parts, joined.plan, request.spec),
        )

    @property
    def directory(self) -> Path:
        """Where it is now."""
        return self._writer.directory

    def event(self, event: dict[str, Any]) -> None:
        """Append an event of the coordinator's own."""
        self._guarded(partial(self._writer.event, event))
        self._writer.note_growth()

    def watched(self, name: str, row: dict[str, int]) -> None:
        """Append a row of a watched host."""
        self._guarded(partial(self._writer.watched, name, row))

    def _guarded(self, write: Callable[[], None]) -> None:
        """Do what writes. The hosts go on without: the first error is told when it is ended."""
        try:
            write()
        except (OSError, MemoryError) as error:
            self._error = self._error or error

    def collect(self, name: str, link: Link) -> None:
        """Bring a host's bundle here, or nothing of it. Raises `RunError` and OSError, if not all comes."""
        place = self.directory / FOLDER
        coming = place / f".{name}{COMING}"
        Disk().mkdir(place, above=False)
        try:
            fetch(link, coming)
            with self._placing:
                if not self._ended:
                    Disk().replace(coming, place / name)
        finally:
            shutil.rmtree(coming, ignore_errors=True)

    def _end_collecting(self) -> None:
        """Take no host's bundle from now on, and keep none in part: the host has the whole one."""
        with self._placing:
            self._ended = True
        for coming in (self.directory / FOLDER).glob(f".*{COMING}"):
            shutil.rmtree(coming, ignore_errors=True)

    def record(self, parts: tuple[HostPart, ...], events: Sequence[dict[str, Any]]) -> None:
        """Write down who took part, and what happened between them. Raises `BundleError`."""
        record = HostsRecord(
            hosts=parts, on_loss=self._on_loss, shared=self._shared, events=tuple(events[:MOST_EVENTS])
        )
        text = record.model_dump_json(indent=2).encode() + b"\n"
        try:
            Disk().put_whole(self.directory / HOSTS, text)
        except (OSError, MemoryError) as error:
            raise self._writer.unwritten(error) from error

    def leave(self) -> Outcome:
        """Leave it as it is: somebody insists."""
        self._end_collecting()
        self._writer.close()
        return Outcome(self._writer.directory, "partial", 130, None)

    def seal(
        self,
        parts: tuple[HostPart, ...],
        events: Sequence[dict[str, Any]],
        origin_unix_ns: int | None,
        ending: HostsEnding,
        result: Callable[[Bundle], dict[str, Any]] | None,
    ) -> None:
        """Put the hosts' events together, and end it. Raises `BundleError`."""
        self._end_collecting()
        try:
            self.record(parts, events)
            self._put_together(parts, origin_unix_ns)
            self._writer.seal(ending.status, exit_code=ending.exit_code, result=result)  # type: ignore[arg-type] # one of its three
        finally:
            self._writer.close()

    def _put_together(self, parts: tuple[HostPart, ...], origin_unix_ns: int | None) -> None:
        bundles = [
            (part, Bundle.open(self.directory / part.bundle, unverified=True))
            for part in parts
            if part.bundle is not None
        ]
        for event in merge.merged_events(bundles, origin_unix_ns):
            self.event(event)
        if self._error is not None:
            raise self._writer.unwritten(self._error)
