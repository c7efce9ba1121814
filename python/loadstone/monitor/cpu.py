"""CPU time per core and in all: /proc/stat.

Format: proc(5). Guest time is inside user time and is not counted twice. `all` is the sum over
the cores, so a share of the host is one kind over the sum of all kinds.
"""

from __future__ import annotations

import os
from pathlib import Path

from loadstone.monitor.counters import Counters

STAT = Path("/proc/stat")
NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Cpu:
    """Time by kind, as `cpu.<core or all>.<kind>_ns`."""

    def __init__(self, source: Path = STAT) -> None:
        self._source = source

    def read(self) -> Counters:
        """Read now."""
        counters = Counters()
        for line in self._source.read_text().splitlines():
            if not line.startswith("cpu"):
                break
            name, *fields = line.split()
            user, nice, system, idle, iowait, irq, softirq, steal = (int(x) * NS_PER_TICK for x in fields[:8])
            prefix = f"cpu.{name.removeprefix('cpu') or 'all'}"
            counters.growing |= {
                f"{prefix}.user_ns": user + nice,
                f"{prefix}.system_ns": system,
                f"{prefix}.irq_ns": irq + softirq,
                f"{prefix}.iowait_ns": iowait,
                f"{prefix}.steal_ns": steal,
                f"{prefix}.idle_ns": idle,
            }
        return counters
