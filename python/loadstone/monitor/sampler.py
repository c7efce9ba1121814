"""The clockwork of the monitors: one thread, one row a second.

Knows which collectors there are and what they cost. Does not know where rows go.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from loadstone import uncaught
from loadstone.monitor.block import Block
from loadstone.monitor.cgroup import Cgroup
from loadstone.monitor.clock import Clock
from loadstone.monitor.counters import Counters, increase
from loadstone.monitor.cpu import Cpu
from loadstone.monitor.engine import Engine
from loadstone.monitor.frequency import ClockFrequency
from loadstone.monitor.memory import Memory
from loadstone.monitor.net import Net
from loadstone.monitor.nfs import Nfs
from loadstone.monitor.pressure import Pressure
from loadstone.monitor.run_queue import RunQueue
from loadstone.monitor.served import Served
from loadstone.monitor.tasks import Tasks
from loadstone.monitor.tcp import Tcp
from loadstone.monitor.temperature import Temperature
from loadstone.monitor.vm import Vm
from loadstone.monitor.zram import Zram
from loadstone.path import nfs
from loadstone.path.mounts import mount_of
from loadstone.path.underlying import under_path
from loadstone.plan.model import TargetKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from loadstone.path.block import BlockDevice
    from loadstone.path.mounts import Mount
    from loadstone.plan.model import Plan

PERIOD_NS = 1_000_000_000
STOP_S = 5.0
EVERY = "all"
"""The name under which it is told that nothing is watched any more."""
SERVED: Final = "served"
"""The collector that is looked at more often than a row is written."""


class Collector(Protocol):
    """A source of counters."""

    def read(self) -> Counters:
        """Read now."""


class Sampler:
    """Reads every collector once a second from the run's origin on, and once at the end."""

    def __init__(
        self,
        plan: Plan,
        pid: int,
        origin_ns: int,
        write: Callable[[dict[str, Any]], None],
        under: MonitoredPath | None = None,
        *,
        collectors: Mapping[str, Collector] | None = None,
    ) -> None:
        """`origin_ns`: CLOCK_MONOTONIC of the run's origin; `write` takes one row.

        `under`: what was found under the targets before; None: look for it now.
        """
        self._served: Served | None = None
        self._failed: dict[str, str] = {}
        if collectors is None:
            under = under or MonitoredPath.of(plan)
            collectors = _collectors(under, pid) | self._follow(_numbers(under))
        self._collectors = dict(collectors)
        self._origin_ns = origin_ns
        self._write = write
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="monitors", daemon=True)
        self._cpu_ns = 0
        self._cost_ns = dict.fromkeys(self._collectors, 0)
        self._rows = 0
        self._before: Counters | None = None
        self._before_ns = 0

    def _follow(self, numbers: dict[str, str]) -> dict[str, Collector]:
        """Follow single I/Os of the devices, where the kernel permits it."""
        if not numbers:
            return {}
        try:
            self._served = Served(numbers)
        except OSError as error:
            self._failed[SERVED] = uncaught.words(error)
            return {}
        return {SERVED: self._served}

    def start(self) -> None:
        """Begin; the first reading is taken at once and is where counters count from."""
        self._sample()
        try:
            self._thread.start()
        except RuntimeError as error:
            # No thread may be had (ulimit -u, pids.max): the run goes on unwatched, and says so.
            self._failed[EVERY] = str(error)

    def stop(self) -> dict[str, Any]:
        """End with a last row, and return what watching cost.

        `cpu_ns` is all of it, writing included; `by_collector` the reading alone, in ns; `rows`;
        and `failed`, why a collector was given up, when one was.
        """
        self._done.set()
        if self._thread.ident is not None:  # Its first sample may have failed, before it was started.
            self._thread.join(STOP_S)
        if self._thread.is_alive():
            # It waits for something that does not answer; nothing waits for it.
            return {"rows": self._rows, "failed": {EVERY: f"the last reading took more than {STOP_S:.0f} s"}}
        if EVERY not in self._failed:
            self._sample()
        if self._served is not None:
            self._served.close()
        cost = {"cpu_ns": self._cpu_ns, "rows": self._rows, "by_collector": self._cost_ns}
        return cost | {"failed": self._failed} if self._failed else cost

    def _loop(self) -> None:
        look_in_s = math.inf if self._served is None else 0.0
        while True:
            passed_ns = time.monotonic_ns() - self._origin_ns
            row_in_s = (PERIOD_NS - passed_ns % PERIOD_NS) / 1e9
            if self._done.wait(min(row_in_s, look_in_s)):
                break
            try:
                if look_in_s < row_in_s:
                    look_in_s = self._look()
                    continue
                self._sample()
                look_in_s = max(0.0, look_in_s - row_in_s)
            except Exception as error:  # noqa: BLE001 # the run goes on, and says from when it was not watched
                self._failed[EVERY] = uncaught.words(error)
                break

    def _look(self) -> float:
        """Follow single I/Os; return in how many seconds to look again."""
        if self._served is None or SERVED in self._failed:
            return math.inf
        begin_ns = time.thread_time_ns()
        look_in_s = self._served.look()
        spent_ns = time.thread_time_ns() - begin_ns
        self._cost_ns[SERVED] += spent_ns
        self._cpu_ns += spent_ns
        return look_in_s

    def _sample(self) -> None:
        begin_ns = time.thread_time_ns()
        self._write_row(self._read())
        self._cpu_ns += time.thread_time_ns() - begin_ns

    def _read(self) -> Counters:
        now = Counters()
        for name, collector in self._collectors.items():
            if name in self._failed:
                continue
            begin_ns = time.thread_time_ns()
            try:
                one = collector.read()
            except Exception as error:  # noqa: BLE001
                # A kernel that writes something else costs its columns, never the run.
                self._failed[name] = uncaught.words(error)
                continue
            self._cost_ns[name] += time.thread_time_ns() - begin_ns
            now.growing |= one.growing
            now.levels |= one.levels
        return now

    def _write_row(self, now: Counters) -> None:
        now_ns = time.monotonic_ns()
        if self._before is not None and now_ns > self._before_ns:
            row: dict[str, Any] = {"t_ns": now_ns - self._origin_ns, "dt_ns": now_ns - self._before_ns}
            self._write(row | increase(self._before, now))
            self._rows += 1
        self._before, self._before_ns = now, now_ns


def devices_under(paths: Iterable[str]) -> list[BlockDevice]:
    """Block devices under any of the paths, each once, nearest first."""
    devices: dict[str, BlockDevice] = {}
    for path in paths:
        for device in under_path(Path(path)):
            devices.setdefault(device.name, device)
    return list(devices.values())


@dataclass(frozen=True, slots=True)
class MonitoredPath:
    """What carries the targets. To find out touches them; to watch it does not."""

    devices: tuple[BlockDevice, ...]
    mounts: tuple[Mount, ...]

    @classmethod
    def of(cls, plan: Plan) -> MonitoredPath:
        """Look."""
        real = [target.path for target in plan.targets if target.kind is not TargetKind.VIRTUAL]
        mounted = [mount for path in real if (mount := mount_of(Path(path))) is not None]
        return cls(tuple(devices_under(real)), tuple(mounted))


def _numbers(under: MonitoredPath) -> dict[str, str]:
    """Return the devices' names by their numbers, as `7:0`."""
    return {number: one.name for one in under.devices if (number := one.attribute("dev")) is not None}


def _collectors(under: MonitoredPath, pid: int) -> dict[str, Collector]:
    devices, mounted = list(under.devices), under.mounts
    return {
        "cpu": Cpu(),
        "engine": Engine(pid),
        "run_queue": RunQueue(pid),
        "frequency": ClockFrequency(),
        "memory": Memory(),
        "vm": Vm(),
        "tasks": Tasks(),
        "pressure": Pressure(),
        "cgroup": Cgroup(pid, _numbers(under)),
        "block": Block(devices),
        "zram": Zram(devices),
        "net": Net(),
        "tcp": Tcp(),
        "nfs": Nfs({mount.point for mount in mounted if mount.kind in nfs.KINDS}),
        "temperature": Temperature(),
        "clock": Clock(),
    }
