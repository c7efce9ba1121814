"""What on this host would hold the engine up or take a way of doing I/O from it, found before a run.

Knows scheduling classes, their throttle, and whether a ring can be set up. Changes nothing; one
finding each, with its remedy, for `doctor` and for the notes of a run.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
from dataclasses import dataclass
from typing import Final

from loadstone import units
from loadstone.environment import text

REAL_TIME: Final = {os.SCHED_FIFO: "SCHED_FIFO", os.SCHED_RR: "SCHED_RR", 6: "SCHED_DEADLINE"}
RESET_ON_FORK: Final = 0x40000000
IO_URING_SETUP: Final = 425
"""The same number on all architectures but alpha (it is newer than their common table)."""
RING_PARAMS_BYTES: Final = 120
FAIR_SERVER_US: Final = (50_000, 1_000_000)
CPU_CGROUPS: Final = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")


@dataclass(frozen=True, slots=True)
class HostLimit:
    """Something that holds the engine up. `found` says what and what follows, `remedy` what to do."""

    name: str
    found: str
    remedy: str


def real_time() -> HostLimit | None:
    """Find a real-time class that the kernel stops for a part of each second."""
    policy = os.sched_getscheduler(0)
    name = REAL_TIME.get(policy & ~RESET_ON_FORK)
    if name is None or policy & RESET_ON_FORK:
        return None
    stopped = _stopped()
    if stopped is None:
        return None
    off_us, period_us = stopped
    return HostLimit(
        "real-time class",
        f"{name}: the kernel may stop it for {off_us / 1000:g} ms of each {period_us / 1000:g} ms, "
        "where other work waits for its CPU, and every I/O that is due then is late",
        "keep other work off its CPUs (taskset, cpusets) and leave out `chrt`; "
        "before kernel 6.12 `sysctl kernel.sched_rt_runtime_us=-1` lifts it",
    )


def _stopped() -> tuple[int, int] | None:
    """Return how long in which period real-time tasks are held; None when never."""
    places = [("/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us")]
    for line in (text("/proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if "cpu" in controllers.split(","):
            places += [
                (f"{base}{group}/cpu.rt_runtime_us", f"{base}{group}/cpu.rt_period_us")
                for base in CPU_CGROUPS
            ]
    pauses = []
    if _fair_server():
        pauses.append(FAIR_SERVER_US)
    for runtime_file, period_file in places:
        runtime, period = text(runtime_file), text(period_file)
        if runtime is not None and period is not None and 0 <= int(runtime) < int(period):
            pauses.append((int(period) - int(runtime), int(period)))
    return max(pauses, key=lambda one: one[0] / one[1], default=None)


def _fair_server() -> bool:
    """Tell whether ordinary tasks have a share that no setting of the real-time class takes away.

    Since 6.12 (Documentation/scheduler, `fair_server`); it is switched off for each CPU in debugfs.
    """
    release = re.match(r"(\d+)\.(\d+)", text("/proc/sys/kernel/osrelease") or "")
    if release is None or (int(release[1]), int(release[2])) < (6, 12):
        return False
    shares = [
        text(f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime") for cpu in os.sched_getaffinity(0)
    ]
    return not all(share == "0" for share in shares)


def no_ring() -> HostLimit | None:
    """Find out, by setting one up, that there is no io_uring here."""
    params = ctypes.create_string_buffer(RING_PARAMS_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(ctypes.c_long(IO_URING_SETUP), ctypes.c_uint(1), params)
    if ring >= 0:
        os.close(ring)
        return None
    number = ctypes.get_errno()
    why, remedy = _why_no_ring(number)
    finding = (
        f"io_uring cannot be used ({why}): jobs that ask for it run on libaio, at depth 1 on system calls"
    )
    return HostLimit("io_uring", finding, remedy)


def _why_no_ring(number: int) -> tuple[str, str]:
    switch = text("/proc/sys/kernel/io_uring_disabled")
    if number == errno.EPERM and switch == "2":
        return "kernel.io_uring_disabled is 2", "sysctl kernel.io_uring_disabled=0"
    if number == errno.EPERM and switch == "1":
        remedy = "run as root, in the group of kernel.io_uring_group, or sysctl kernel.io_uring_disabled=0"
        return "kernel.io_uring_disabled is 1", remedy
    if number in (errno.EPERM, errno.EACCES):
        return (
            "a seccomp filter or security module forbids it",
            "allow io_uring_setup in the container's profile",
        )
    if number == errno.ENOSYS:
        return (
            "the kernel has none",
            "use a kernel from 5.10 on, or allow io_uring_setup in the seccomp profile",
        )
    if number == errno.ENOMEM:
        limit = units.size(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
        return f"the limit on locked memory is {limit}", "ulimit -l unlimited, or memlock in limits.conf"
    return os.strerror(number), "see dmesg"


def of_run(*, rings: bool) -> list[HostLimit]:
    """Return what holds up a run here; `rings`: it asks for io_uring."""
    limits = [real_time(), no_ring() if rings else None]
    return [one for one in limits if one is not None]
