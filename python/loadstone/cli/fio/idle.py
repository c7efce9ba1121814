"""How idle the CPUs are while `loadstone fio --idle-prof` runs jobs.

Knows the kernel's account of each CPU. fio keeps a thread busy on each of them and infers from
what that gets done; what is asked of the kernel takes nothing from the run.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING, Final

from loadstone.monitor.cpu import Cpu
from loadstone.report.fio.stats import Idleness

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNITS: Final = 1000
_PAGE: Final = bytes(range(256)) * (os.sysconf("SC_PAGE_SIZE") // 256)


class IdleTimes:
    """The processors' idle time from the first I/O to the last."""

    def __init__(self, mode: str) -> None:
        self._each = mode == "percpu"
        self._unit_us = unit_us()
        self._first: Mapping[str, int] = {}
        self._last: Mapping[str, int] = {}

    def event(self, kind: str) -> None:
        """Read the kernel's account where the load begins and ends."""
        if kind == "start":
            self._first = Cpu().read().growing
        elif kind in {"tick", "end"}:
            self._last = Cpu().read().growing

    def found(self) -> Idleness:
        """Return what came of it."""
        cpus = sorted(
            (name.split(".")[1] for name in self._first if name.endswith(".idle_ns")),
            key=lambda name: (not name.isdigit(), name.zfill(9)),
        )
        each = [self._share(name) for name in cpus if name != "all"]
        return Idleness(self._share("all"), tuple(each) if self._each else None, *self._unit_us)

    def _share(self, cpu: str) -> float:
        grown = {
            name.rpartition(".")[2]: self._last.get(name, before) - before
            for name, before in self._first.items()
            if name.startswith(f"cpu.{cpu}.")
        }
        idle = grown.get("idle_ns", 0) + grown.get("iowait_ns", 0)
        return 100.0 * idle / max(1, sum(grown.values()))


def unit_us() -> tuple[float, float]:
    """Return mean and deviation, over the CPUs, of the time in which one fills a page."""
    page = bytearray(len(_PAGE))
    allowed = os.sched_getaffinity(0)
    took_us = []
    try:
        for cpu in sorted(allowed):
            os.sched_setaffinity(0, {cpu})
            begin_ns = time.perf_counter_ns()
            for _ in range(_UNITS):
                page[:] = _PAGE
            took_us.append((time.perf_counter_ns() - begin_ns) / 1000 / _UNITS)
    finally:
        os.sched_setaffinity(0, allowed)
    return statistics.fmean(took_us), statistics.stdev(took_us) if len(took_us) > 1 else 0.0
