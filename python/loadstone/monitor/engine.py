"""CPU time and memory of the engine, thread by thread: /proc/PID/task.

Format: proc(5). io_uring's kernel workers are threads of the engine here (`iou-wrk-…`), so
their time is seen, and apart.
"""

from __future__ import annotations

import os
from pathlib import Path

from loadstone.monitor.counters import Counters
from loadstone.monitor.cpu import NS_PER_TICK

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MAX_THREADS = 64
"""Beyond this many threads only the whole process is kept: rows stay short."""


class Engine:
    """The process as `engine.<what>`, its threads as `engine.<tid>-<name>.<what>`."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._directory = proc / str(pid)

    def read(self) -> Counters:
        """Read now; a process that is gone has no keys."""
        counters = Counters()
        try:
            _, fields = _stat(self._directory / "stat")
            threads = sorted((self._directory / "task").iterdir())
        except (OSError, ValueError):
            return counters
        counters.levels["engine.threads"] = len(threads)
        counters.levels["engine.rss_bytes"] = int(fields[21]) * PAGE_BYTES
        _times(counters, "engine", fields)
        for thread in threads[:MAX_THREADS] if len(threads) <= MAX_THREADS else []:
            try:
                name, thread_fields = _stat(thread / "stat")
            except (OSError, ValueError):
                continue
            _times(counters, f"engine.{thread.name}-{name}", thread_fields)
        return counters


def _times(counters: Counters, prefix: str, fields: list[str]) -> None:
    counters.growing[f"{prefix}.user_ns"] = int(fields[11]) * NS_PER_TICK
    counters.growing[f"{prefix}.system_ns"] = int(fields[12]) * NS_PER_TICK


def _stat(path: Path) -> tuple[str, list[str]]:
    """Name and the fields after it, from field 3 (`state`) at index 0."""
    text = path.read_text(errors="replace")
    left, _, right = text.rpartition(")")
    return left.partition("(")[2], right.split()
