"""The hosts of a file as links: which way each of them is reached.

Knows what has to be there for all of them together, and puts it away afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.hosts.agent_links import Link, PipeLink, agent_argv
from loadstone.hosts.dask_link import ControlPlane, DaskLink
from loadstone.hosts.descriptor_limit import make_room

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.hosts.hosts_file import HostsFile


class Reached:
    """While entered, `link` makes the link to a host."""

    def __init__(self, hosts: HostsFile) -> None:
        self._hosts = hosts
        remote = any(host.launch == "ssh" for host in hosts.host)
        by_dask = hosts.run.scheduler is not None or (hosts.run.transport == "dask" and remote)
        self._plane = ControlPlane(hosts) if by_dask else None

    def __enter__(self) -> Reached:
        make_room(self._hosts)
        if self._plane is not None:
            self._plane.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._plane is not None:
            self._plane.stop()

    def link(self, name: str, heard: Callable[[str, dict[str, Any]], None]) -> Link:
        """Return the link to one host, not yet open."""
        entry = self._hosts.entry(name)
        if self._plane is None or (entry.launch == "local" and self._hosts.run.scheduler is None):
            return PipeLink(name, agent_argv(entry, self._hosts.run), heard)
        return DaskLink(self._plane, entry, heard)
