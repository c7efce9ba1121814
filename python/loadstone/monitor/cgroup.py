"""What the engine's control groups keep it from: CPU throttling and limits on I/O.

Format: Linux Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst. A limit that is
changed while a run goes on is seen here; the layers of the data path have those from before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.monitor.counters import Counters
from loadstone.path import cgroups
from loadstone.path.mounts import PROC

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CPU_STAT: Final = {
    "nr_periods": ("periods", 1),
    "nr_throttled": ("throttled_periods", 1),
    "throttled_time": ("throttled_ns", 1),
    "throttled_usec": ("throttled_ns", 1000),
}


class Cgroup:
    """`cgroup.cpu.<what>`, and `cgroup.<device>.<op>_limit_<bytes_per_s or iops>` where one is set."""

    def __init__(self, pid: int, devices: Mapping[str, str], proc: Path = PROC) -> None:
        """`devices`: `major:minor` to kernel name, of the devices that matter."""
        self._cpu = [*cgroups.directories("cpu", pid, proc), *cgroups.directories("", pid, proc)]
        self._devices = devices
        self._io = [group for group in cgroups.io_groups(pid, proc) if group.own]

    def read(self) -> Counters:
        """Read now; several groups' throttled times are added up."""
        counters = Counters()
        for _, directory in self._cpu:
            try:
                lines = (directory / "cpu.stat").read_text().splitlines()
            except OSError:
                continue
            for line in lines:
                name, _, value = line.partition(" ")
                if name in CPU_STAT:
                    counter, factor = CPU_STAT[name]
                    key = f"cgroup.cpu.{counter}"
                    counters.growing[key] = counters.growing.get(key, 0) + int(value) * factor
        for limit in cgroups.io_limits(self._io):
            device = self._devices.get(limit.device)
            if device is not None:
                key = f"cgroup.{device}.{limit.op}_limit_{limit.quantity}"
                counters.levels[key] = min(limit.per_s, counters.levels.get(key, limit.per_s))
        return counters
