"""One program run, and what it cost the machine.

Knows CPU time: that of a whole process tree (`getrusage` of the children that were
waited for, so helpers, threads and io_uring's own kernel workers count), that of kernel
threads which belong to no process (a loop device does its work there), and how busy
everybody else was meanwhile. Knows no program and no option.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from _typeshed import DataclassInstance

TICKS_HZ = os.sysconf("SC_CLK_TCK")
KTHREADD = "2"
"""Process id of the parent of all kernel threads."""
IDLE_CORES = 0.1
"""So little use of the machine by others counts as none."""


@dataclass(frozen=True)
class ProgramResult:
    """What a program said of itself: I/Os done, their rate, mean of their `lat`."""

    ios: int
    iops: float
    lat_ns: float


@dataclass(frozen=True)
class MeasuredRun:
    """A run: what it said, and what was seen from outside. Seconds of CPU time."""

    result: ProgramResult
    wall_s: float
    user_s: float
    system_s: float
    kernel_s: float
    others_cores: float


@dataclass(frozen=True)
class CostPerIo:
    """I/Os per second, nanoseconds of CPU time per I/O, mean latency, cores others used."""

    iops: float
    user_ns: float
    system_ns: float
    kernel_ns: float
    lat_ns: float
    others_cores: float

    @property
    def total_ns(self) -> float:
        """All CPU time per I/O."""
        return self.user_ns + self.system_ns + self.kernel_ns


def run(
    command: list[str],
    read: Callable[[str], ProgramResult],
    watch: Callable[[int], AbstractContextManager[object]] | None = None,
) -> MeasuredRun:
    """Run a program to its end, standard input open all the while.

    `watch` is given the process id and entered for the length of the run. Raises
    `RuntimeError` with the program's last words when it fails.
    """
    source, keep_open = os.pipe()
    try:
        kernel, busy = kernel_threads_s(), busy_s()
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        with (
            subprocess.Popen(
                command, stdin=source, stdout=PIPE, stderr=PIPE, text=True, env=_agreed(command)
            ) as process,
            watch(process.pid) if watch else contextlib.nullcontext(),
        ):
            out, err = process.communicate()
        wall_s, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        kernel, busy = kernel_threads_s() - kernel, busy_s() - busy
    finally:
        os.close(source)
        os.close(keep_open)
    if process.returncode != 0:
        message = f"{' '.join(command)} ended with {process.returncode}: {(err or out)[-600:]}"
        raise RuntimeError(message)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    others = max(0.0, busy - kernel - user - system) / wall_s
    return MeasuredRun(read(out), wall_s, user, system, max(0.0, kernel), others)


def _agreed(command: list[str]) -> dict[str, str]:
    """The environment with consent to write over what the bench itself made."""
    names = [word.partition("=")[2] for word in command if word.startswith("--filename=")]
    return {**os.environ, "LOADSTONE_FIO_OVERWRITE": "1", "LOADSTONE_ACCEPT_DATA_LOSS": ":".join(names)}


def slope(short: list[MeasuredRun], long: list[MeasuredRun]) -> CostPerIo:
    """Return medians of rates, and the cost per I/O between all short and all long runs.

    The difference leaves start and end of the program out. Costs are NaN where the long
    runs did not do clearly more I/Os than the short ones: there is nothing to divide by.
    """
    ios = _sum(long, "ios") - _sum(short, "ios")
    steady = ios > 0.5 * _sum(short, "ios")

    def per_io_ns(field: str) -> float:
        return (_sum(long, field) - _sum(short, field)) * 1e9 / ios if steady else math.nan

    return CostPerIo(
        iops=statistics.median(run.result.iops for run in long),
        user_ns=per_io_ns("user_s"),
        system_ns=per_io_ns("system_s"),
        kernel_ns=per_io_ns("kernel_s"),
        lat_ns=statistics.median(run.result.lat_ns for run in long),
        others_cores=statistics.median(run.others_cores for run in long),
    )


def _sum(runs: list[MeasuredRun], field: str) -> float:
    return sum(run.result.ios if field == "ios" else getattr(run, field) for run in runs)


def known(row: DataclassInstance) -> dict[str, object]:
    """Fields of a dataclass for JSON, which has no NaN: what is not known is null."""
    fields = dataclasses.asdict(row).items()
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in fields}


def busy_s() -> float:
    """Processor time anybody has used since boot, stolen time included."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, _cpu_line()[:8])
    return (user + nice + system + irq + softirq + steal) / TICKS_HZ


def kernel_threads_s() -> float:
    """Processor time of the kernel threads alive now."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # gone meanwhile
        if rest[1] == KTHREADD:
            ticks += int(rest[11]) + int(rest[12])
    return ticks / TICKS_HZ


def wait_for_quiet(patience_s: float) -> None:
    """Return when the machine has been idle for 0.3 s, or after `patience_s` anyway."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        before = busy_s()
        time.sleep(0.3)
        if (busy_s() - before) / 0.3 < IDLE_CORES:
            return


def _cpu_line() -> list[str]:
    with Path("/proc/stat").open() as lines:
        return next(lines).split()[1:]


def tidy_when_stopped() -> None:
    """End by an exception when told to end, so that devices and directories are removed."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def scratch(prefix: str = "bench-", folder: str | None = None) -> tempfile.TemporaryDirectory[str]:
    """A directory that is gone afterwards."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir=folder)
