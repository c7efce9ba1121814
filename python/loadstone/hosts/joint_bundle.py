"""The bundle of all hosts while it is written: one Plan of theirs, what happens between them, their parts.

Knows a directory and what stands in it (`bundle.hosts`). Decides nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from loadstone.bundle.disk import Disk
from loadstone.bundle.hosts import FOLDER, HOSTS, HostPart, HostsRecord
from loadstone.bundle.read import Bundle
from loadstone.bundle.write import BundleWriter
from loadstone.errors import BundleError
from loadstone.hosts import merge
from loadstone.hosts.host_state import notes_of_hosts
from loadstone.hosts.links import fetch
from loadstone.session import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.bundle.hosts import SharedSeen
    from loadstone.hosts.ending import HostsEnding
    from loadstone.hosts.host_state import HostState
    from loadstone.hosts.links import Link
    from loadstone.session import RunRequest

MOST_EVENTS: Final = 10_000


class JointBundle:
    """One run's directory. Raises `BundleError` and OSError when it cannot be begun."""

    def __init__(
        self,
        directory: Path,
        asked: RunRequest,
        hosts: Mapping[str, HostState],
        *,
        shared: tuple[SharedSeen, ...],
        on_loss: str,
    ) -> None:
        self.directory = directory
        self._shared, self._on_loss = shared, on_loss
        plans = {name: state.armed_plan for name, state in hosts.items() if state.armed_plan is not None}
        self.merged = merge.merged_plan(plans, shared)
        joined = self.merged
        environments = {name: state.environment for name, state in hosts.items()}
        self._writer = BundleWriter.create(
            directory,
            request=asked.request,
            inputs=asked.inputs,
            workload_json=asked.workload_json,
            plan_json=joined.plan.model_dump_json(),
            notes=[*asked.notes, *notes_of_hosts(hosts)],
            environment=merge.merged_environment(environments, joined.parts, joined.plan, asked.spec),
        )

    def event(self, told: dict[str, Any]) -> None:
        """Append an event of the coordinator's own; a full disk costs it and nothing else."""
        with contextlib.suppress(OSError):
            self._writer.event(told)

    def watched(self, name: str, row: dict[str, int]) -> None:
        """Append a row of a watched host."""
        with contextlib.suppress(OSError):
            self._writer.watched(name, row)

    def collect(self, name: str, link: Link) -> None:
        """Bring a host's bundle here. Raises `RunError` and OSError when it does not come whole."""
        fetch(link, self.directory / FOLDER / name)

    def record(self, parts: tuple[HostPart, ...], events: Sequence[dict[str, Any]]) -> None:
        """Write down who took part, and what happened between them."""
        record = HostsRecord(
            hosts=parts, on_loss=self._on_loss, shared=self._shared, events=tuple(events[:MOST_EVENTS])
        )
        with contextlib.suppress(FileNotFoundError):
            Disk().put_whole(self.directory / HOSTS, record.model_dump_json(indent=2).encode() + b"\n")

    def leave(self) -> Outcome:
        """Leave it as it is: somebody insists."""
        self._writer.close()
        return Outcome(self._writer.directory, "partial", 130, None)

    def seal(
        self,
        parts: tuple[HostPart, ...],
        origin_unix_ns: int | None,
        ending: HostsEnding,
        result: Callable[[Bundle], dict[str, Any]] | None,
    ) -> Outcome:
        """Put the hosts' events together, and end it."""
        bundles = [
            (part, Bundle.open(self.directory / part.bundle, unverified=True))
            for part in parts
            if part.bundle is not None
        ]
        writer = self._writer
        for event in merge.merged_events(bundles, origin_unix_ns):
            writer.event(event)
        try:
            writer.seal(ending.status, exit_code=ending.exit_code, result=result)  # type: ignore[arg-type] # one of its three
        except BundleError as failed:
            return Outcome(writer.directory, "failed", failed.exit_code, failed)
        return Outcome(writer.directory, ending.status, ending.exit_code, ending.error)
