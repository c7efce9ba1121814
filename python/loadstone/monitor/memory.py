"""Memory levels: /proc/meminfo, as `memory.<what>_bytes`.

Format: proc(5); kB there are KiB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from loadstone.monitor.counters import Counters

MEMINFO = Path("/proc/meminfo")
LEVELS: Final = {
    "MemTotal": "total",
    "MemFree": "free",
    "MemAvailable": "available",
    "Cached": "cached",
    "Buffers": "buffers",
    "Dirty": "dirty",
    "Writeback": "writeback",
    "Slab": "slab",
    "SwapFree": "swap_free",
}


class Memory:
    """Levels in bytes."""

    def __init__(self, source: Path = MEMINFO) -> None:
        self._source = source

    def read(self) -> Counters:
        """Read now."""
        counters = Counters()
        for line in self._source.read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in LEVELS:
                counters.levels[f"memory.{LEVELS[name]}_bytes"] = int(rest.split()[0]) * 1024
        return counters
