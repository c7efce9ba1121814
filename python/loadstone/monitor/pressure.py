"""Time in which tasks stood still for want of CPU, I/O or memory: /proc/pressure.

Format: Linux Documentation/accounting/psi.rst. `some`: at least one task waited; `full`: all
that had anything to do. Kernels without PSI have no keys.
"""

from __future__ import annotations

from pathlib import Path

from loadstone.monitor.counters import Counters

PRESSURE = Path("/proc/pressure")
NS_PER_US = 1000


class Pressure:
    """Stalled time, as `pressure.<resource>.<some or full>_ns`."""

    def __init__(self, source: Path = PRESSURE) -> None:
        self._source = source

    def read(self) -> Counters:
        """Read now."""
        counters = Counters()
        for resource in ("cpu", "io", "memory"):
            try:
                text = (self._source / resource).read_text()
            except OSError:
                continue
            for line in text.splitlines():
                kind, *fields = line.split()
                total_us = next(int(field[6:]) for field in fields if field.startswith("total="))
                counters.growing[f"pressure.{resource}.{kind}_ns"] = total_us * NS_PER_US
        return counters
