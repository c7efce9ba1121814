"""Traffic of the network interfaces: /proc/net/dev, as `net.<interface>.<what>`.

Format: proc(5). The loopback interface counts too: a target may be behind it.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.monitor.counters import Counters

DEV = Path("/proc/net/dev")


class Net:
    """Bytes, packets, errors and drops, received and sent."""

    def __init__(self, source: Path = DEV) -> None:
        self._source = source

    def read(self) -> Counters:
        """Read now."""
        counters = Counters()
        for line in self._source.read_text().splitlines()[2:]:
            name, _, rest = line.partition(":")
            fields = [int(field) for field in rest.split()]
            for direction, at in (("rx", 0), ("tx", 8)):
                prefix = f"net.{name.strip()}.{direction}"
                counters.growing |= {
                    f"{prefix}_bytes": fields[at],
                    f"{prefix}_packets": fields[at + 1],
                    f"{prefix}_errors": fields[at + 2],
                    f"{prefix}_drops": fields[at + 3],
                }
        return counters
