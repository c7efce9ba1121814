"""What NFS mounts under the targets do: /proc/self/mountstats, as `nfs.<mount point>.<what>`.

`asked` bytes are what programs read and wrote, `wire` bytes what went to and from the server:
between them stands the page cache. Times are sums over the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.monitor.counters import Counters
from loadstone.path import nfs
from loadstone.path.mounts import PROC

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


class Nfs:
    """Counters of the mounts at the given points."""

    def __init__(self, points: Collection[str], proc: Path = PROC) -> None:
        self._points = points
        self._proc = proc

    def read(self) -> Counters:
        """Read now; without such a mount nothing is read at all."""
        counters = Counters()
        for point, mount in nfs.counts(self._proc).items() if self._points else ():
            if point in self._points:
                _add(counters, f"nfs.{point}", mount)
        return counters


def _add(counters: Counters, prefix: str, mount: nfs.MountCounts) -> None:
    counters.growing |= {
        f"{prefix}.asked_read_bytes": mount.asked_read_bytes,
        f"{prefix}.asked_write_bytes": mount.asked_write_bytes,
        f"{prefix}.read_bytes": mount.wire_read_bytes,
        f"{prefix}.write_bytes": mount.wire_write_bytes,
        f"{prefix}.reconnects": mount.reconnects,
        f"{prefix}.backlog": mount.backlog,
        f"{prefix}.retransmits": sum(op.transmissions - op.calls for op in mount.ops.values()),
        f"{prefix}.timeouts": sum(op.timeouts for op in mount.ops.values()),
    }
    for name, operation in (("READ", "read"), ("WRITE", "write"), ("COMMIT", "commit")):
        op = mount.ops.get(name)
        if op is not None:
            counters.growing |= {
                f"{prefix}.{operation}s": op.calls,
                f"{prefix}.{operation}_queue_ns": op.queue_ns,
                f"{prefix}.{operation}_rtt_ns": op.rtt_ns,
                f"{prefix}.{operation}_execute_ns": op.execute_ns,
            }
