"""Two clients and one storage server behind a link of 1 Gbit/s, and what the verdict says sets the number.

Both clients are network namespaces with ssh servers of their own. The server exports a disk over NBD to both,
and is watched by SSH, SNMP and node_exporter, as in `lab.watch`, whose cases these are: the link, then with
the link lifted a tenth of a CPU for the server, then a slow disk. Needs root.

    python -m lab.hosts.two_clients [link cpu disk] [--seconds 15] [--keep DIRECTORY]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab.hosts.namespaces import NamespaceHosts
from lab.parts import MIB, call, unmount, until
from lab.watch import CASES, CLIENT, DEMO, SERVER, StorageServer, is_as_expected, uri_of, why_missing

FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


class TwoClients(StorageServer):
    """The server, with hosts that reach it by its one link; each has the disk at the same path."""

    def __init__(self, hosts: NamespaceHosts, runtime_s: int) -> None:
        super().__init__(runtime_s)
        self._hosts = hosts

    def build(self, rate: str | None = None) -> None:
        """Make server and link, and the way there from each client."""
        super().build(rate)
        self._stack.callback(FORWARD.write_text, FORWARD.read_text())
        FORWARD.write_text("1")
        for name in self._hosts.names:
            call(*self._hosts.argv(name), "ip", "route", "replace", SERVER, "via", self._hosts.coordinator)
        clients = f"{self._hosts.coordinator.rpartition('.')[0]}.0/24"
        call("ip", "netns", "exec", self.space, "ip", "route", "replace", clients, "via", CLIENT)
        self.run_words = ("--hosts", self._hosts.hosts_toml())

    def export(self, disk: str, mib: int, *, direct: bool = True) -> str:
        """Serve a disk of the server to both clients; return where each of them has it."""
        port = self.offer(disk, direct=direct)
        place = self.folder / f"disk{port}"
        place.touch()
        for name in self._hosts.names:
            file = self.folder / f"{name}-{port}.nbd"
            file.touch()
            # In the client's network, and mounted here, where the loop device is made of it.
            inside = ("nsenter", f"--net=/run/netns/{self._hosts.space(name)}")
            self._program(*inside, "nbdfuse", "-C", "4", file, uri_of(port))
            until(lambda file=file: file.stat().st_size == mib * MIB, "nbdfuse's file")
            self._stack.callback(unmount, file)
            device = self.loop_over(file)
            self._hosts.inside(name, "mount", "--bind", device, place)
            self._stack.callback(self._hosts.inside, name, "umount", place)
        return str(place)


def main() -> int:
    """Run the cases that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(DEMO), help=", ".join(DEMO))
    parser.add_argument("--seconds", type=int, default=15, help="length of each run")
    parser.add_argument("--keep", type=Path, help="directory for the bundles and their reports")
    options = parser.parse_args()
    if (absent := why_missing()) is not None:
        print(f"not staged: {absent}")
        return 0
    failed = 0
    for case in (one for one in CASES if one.name in options.cases):
        with NamespaceHosts(2, name="two", own_mounts=True) as hosts:
            failed += not is_as_expected(case, TwoClients(hosts, options.seconds), options.keep)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
