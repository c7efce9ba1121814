"""The limit on open files of the coordinator: so many hosts need so many, and a shell allows 1,024 as a rule.

Knows how many a link takes. Knows nothing of a host's own limit: its agent tells that.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Final

from loadstone.errors import RefusedError
from loadstone.messages import make_error

if TYPE_CHECKING:
    from loadstone.hosts.hosts_file import HostsFile

OWN: Final = 64
"""Of this program: bundle, event loops, what it reads."""
BY_PIPE: Final = 3
"""The standard streams of an agent or of its ssh."""
BY_DASK: Final = 8
"""Those of ssh, and connections of scheduler and worker to each other."""


def needed_by(hosts: HostsFile) -> int:
    """Return how many files are open while all of these hosts are spoken with."""
    by_dask = hosts.run.scheduler is not None or hosts.run.transport == "dask"
    return OWN + sum(
        BY_DASK if by_dask and (host.launch == "ssh" or hosts.run.scheduler is not None) else BY_PIPE
        for host in hosts.host
    )


def make_room(hosts: HostsFile) -> None:
    """Allow this process the files that the hosts need. Raises `RefusedError` where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = needed_by(hosts)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise make_error(RefusedError, "hosts.files.few", hosts=len(hosts.host), files=needed, allowed=hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
