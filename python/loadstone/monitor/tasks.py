"""What the scheduler and the interrupts of the host do: /proc/stat.

Format: proc(5). Blocked tasks wait for I/O without a time limit, whoever's it is; interrupts and
context switches are of all processors together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from loadstone.monitor.counters import Counters

STAT = Path("/proc/stat")
GROWING: Final = {"ctxt": "context_switches", "intr": "interrupts", "processes": "forks"}
LEVELS: Final = {"procs_running": "runnable", "procs_blocked": "blocked"}


class Tasks:
    """Events as `tasks.<what>`, and how many tasks are runnable or blocked."""

    def __init__(self, source: Path = STAT) -> None:
        self._source = source

    def read(self) -> Counters:
        """Read now."""
        counters = Counters()
        for line in self._source.read_text().splitlines():
            name, *values = line.split()
            if name in GROWING:
                # Of the interrupts the first number is all of them; the rest are one by one.
                counters.growing[f"tasks.{GROWING[name]}"] = int(values[0])
            elif name in LEVELS:
                counters.levels[f"tasks.{LEVELS[name]}"] = int(values[0])
        return counters
