"""Traffic of the devices under the targets: /sys/class/block/*/stat.

Format: Linux Documentation/block/stat.rst; sectors there are 512 bytes, times milliseconds.
`<kind>_time_ns` is the summed latency of the I/Os of that kind; `busy_ns` is the time with
at least one I/O in flight, so `busy_ns / dt_ns` is what iostat calls utilisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.monitor.counters import Counters
from loadstone.path.block import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.path.block import BlockDevice

NS_PER_MS = 1_000_000
INFLIGHT_FIELD = 8


class Block:
    """Counters of the given devices, as `block.<device>.<what>`."""

    def __init__(self, devices: Sequence[BlockDevice]) -> None:
        self._devices = devices

    def read(self) -> Counters:
        """Read now; a device that is gone, or whose kernel does not count (`queue/iostats`), has no keys."""
        counters = Counters()
        for device in self._devices:
            text = device.attribute("stat")
            if text is not None and device.disk().attribute("queue/iostats") != "0":
                _add(counters, f"block.{device.name}", [int(field) for field in text.split()])
        return counters


def _add(counters: Counters, prefix: str, fields: list[int]) -> None:
    counters.levels[f"{prefix}.inflight"] = fields[INFLIGHT_FIELD]
    counters.growing[f"{prefix}.busy_ns"] = fields[9] * NS_PER_MS
    counters.growing[f"{prefix}.queue_time_ns"] = fields[10] * NS_PER_MS
    for at, kind in ((0, "read"), (4, "write"), (11, "trim")):
        if at + 3 < len(fields):
            counters.growing |= {
                f"{prefix}.{kind}s": fields[at],
                f"{prefix}.{kind}_merges": fields[at + 1],
                f"{prefix}.{kind}_bytes": fields[at + 2] * SECTOR_BYTES,
                f"{prefix}.{kind}_time_ns": fields[at + 3] * NS_PER_MS,
            }
    if len(fields) > 16:
        counters.growing[f"{prefix}.flushes"] = fields[15]
        counters.growing[f"{prefix}.flush_time_ns"] = fields[16] * NS_PER_MS
