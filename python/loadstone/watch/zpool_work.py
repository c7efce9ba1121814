"""Scrubs and resilvers of a ZFS pool, as `zpool status` tells of them on every system.

Knows the line that begins with `scan:`. Knows no system, and not how the line was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.watch.malformed_lines import tolerant

if TYPE_CHECKING:
    from loadstone.monitor.counters import Counters


@tolerant
def zpool_work(reading: Counters, pool: str, text: str) -> None:
    """`scrub in progress since …`, `resilver in progress since …`, `scrub repaired 0B in …`."""
    running = " in progress" in text
    reading.levels[f"work.{pool}.running"] = int(running)
    if running:
        reading.levels[f"work.{pool}.{text.split(maxsplit=1)[0]}"] = 1
