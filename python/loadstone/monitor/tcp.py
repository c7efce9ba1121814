"""TCP segments sent again, lost or damaged, of all connections: /proc/net/snmp and netstat.

Format: RFC 4022 for the names in snmp, the kernel's net/ipv4/proc.c for TcpExt; a line of names
is followed by one of values. Knows no single connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from loadstone.monitor.counters import Counters

NET = Path("/proc/net")
GROWING: Final = {
    ("snmp", "Tcp", "InSegs"): "received_segments",
    ("snmp", "Tcp", "OutSegs"): "sent_segments",
    ("snmp", "Tcp", "RetransSegs"): "retransmitted_segments",
    ("snmp", "Tcp", "InErrs"): "bad_segments",
    ("netstat", "TcpExt", "TCPTimeouts"): "timeouts",
    ("netstat", "TcpExt", "TCPLostRetransmit"): "lost_retransmits",
}


class Tcp:
    """Segments and timeouts, as `tcp.<what>`."""

    def __init__(self, net: Path = NET) -> None:
        self._net = net

    def read(self) -> Counters:
        """Read now; what a kernel does not count has no key."""
        counters = Counters()
        for file in ("snmp", "netstat"):
            try:
                lines = (self._net / file).read_text().splitlines()
            except OSError:
                continue
            for names, values in zip(lines[::2], lines[1::2], strict=False):
                protocol = names.partition(":")[0]
                for name, value in zip(names.split()[1:], values.split()[1:], strict=False):
                    counter = GROWING.get((file, protocol, name))
                    if counter is not None:
                        counters.growing[f"tcp.{counter}"] = int(value)
        return counters
