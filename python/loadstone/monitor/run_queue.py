"""How long the engine's threads were ready to run and had no CPU: /proc/PID/task/TID/schedstat.

Format: Linux Documentation/scheduler/sched-stats.rst. `on_cpu_ns` is exact where the times of
`engine` are whole ticks. A thread that was not measured a second ago has nothing to report, and
the sum over the threads has nothing in a second in which one of them ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.monitor.counters import Counters
from loadstone.monitor.engine import MAX_THREADS, PROC

if TYPE_CHECKING:
    from pathlib import Path


class RunQueue:
    """`engine.<on_cpu or run_queue>_ns`, and the same of each thread as `engine.<tid>-<name>.<what>`."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._tasks = proc / str(pid) / "task"

    def read(self) -> Counters:
        """Read now; a process that is gone, or a kernel without schedstat, has no keys."""
        counters = Counters()
        try:
            threads = sorted(self._tasks.iterdir())
        except OSError:
            return counters
        known: list[tuple[str, int, int]] = []
        for thread in threads:
            try:
                on_cpu, waited, _ = (thread / "schedstat").read_text().split()
                name = (thread / "comm").read_text(errors="replace").rstrip("\n")
            except (OSError, ValueError):
                continue
            known.append((f"engine.{thread.name}-{name}", int(on_cpu), int(waited)))
        if known:
            counters.growing["engine.on_cpu_ns"] = sum(on_cpu for _, on_cpu, _ in known)
            counters.growing["engine.run_queue_ns"] = sum(waited for _, _, waited in known)
        for prefix, on_cpu_ns, waited_ns in known if len(known) <= MAX_THREADS else ():
            counters.growing[f"{prefix}.on_cpu_ns"] = on_cpu_ns
            counters.growing[f"{prefix}.run_queue_ns"] = waited_ns
        return counters
