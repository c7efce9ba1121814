"""What compressed memory disks hold: /sys/block/zram*/mm_stat.

Format: Linux Documentation/admin-guide/blockdev/zram.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.monitor.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.path.block import BlockDevice


class Zram:
    """`block.<device>.stored_bytes` before compression, and the `memory_bytes` they take."""

    def __init__(self, devices: Sequence[BlockDevice]) -> None:
        self._devices = [device for device in devices if device.attribute("mm_stat") is not None]

    def read(self) -> Counters:
        """Read now; a device that is gone has no keys."""
        counters = Counters()
        for device in self._devices:
            fields = (device.attribute("mm_stat") or "").split()
            if len(fields) > 2:
                counters.levels[f"block.{device.name}.stored_bytes"] = int(fields[0])
                counters.levels[f"block.{device.name}.memory_bytes"] = int(fields[2])
        return counters
