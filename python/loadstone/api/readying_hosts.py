"""Several load generators made ready: whether they are fit, this version on them, their certificates.

Knows how hosts are named in a word or a file. The work is done in `hosts`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone.errors import LoadstoneError
from loadstone.hosts.hosts_file import read_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.hosts.checking import HostFinding

CERTIFICATES: Final = Path("loadstone-certificates")


def check_hosts(hosts: str, targets: Sequence[str] = ()) -> list[HostFinding]:
    """Tell whether each host is reachable, of this version, on time and fit, and sees the targets.

    `hosts` are h1,root@h2:2222 or a file HOSTS.toml. A finding has a `host`, and what a check of this host
    has (`check_host`). Raises `InputError` for a file that cannot be read.
    """
    from loadstone.hosts import checking
    from loadstone.hosts.reach import Reached

    named = read_hosts(hosts)
    with Reached(named) as reached:
        return checking.check_hosts(named, reached, targets)


def install_on_hosts(
    hosts: str, *, wheels: Path | str | None = None
) -> Iterator[tuple[str, str | LoadstoneError]]:
    """Install this version on every host, and yield each step as it is done: host, and what it was.

    A host that fails yields its error last, and is no reason to leave out the next. `wheels` is a directory
    of the packages that a host without an index needs.
    """
    from loadstone.hosts.install import install

    named = read_hosts(hosts)
    extra = "[hosts]" if named.run.transport == "dask" else ""
    for host in named.host:
        try:
            for line in install(host, extra=extra, wheels=None if wheels is None else Path(wheels)):
                yield host.name, line
        except LoadstoneError as error:
            yield host.name, error


def write_certificates(hosts: str, directory: Path | str | None = None) -> list[Path]:
    """Write an authority and a certificate for each host into a new directory, and return the files.

    [default: ./loadstone-certificates]. The authority's own key is not kept.
    """
    from loadstone.hosts import certificates

    return list(certificates.write(Path(directory or CERTIFICATES), read_hosts(hosts).names))


def certificate_days() -> int:
    """Return how long a certificate is valid."""
    from loadstone.hosts import certificates

    return certificates.DAYS
