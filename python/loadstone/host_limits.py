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

from loadstone import engine_groups
from loadstone.environment import text
from loadstone.messages import say

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
        say(
            "doctor.real_time.throttled",
            policy=name,
            off=f"{off_us / 1000:g}",
            period=f"{period_us / 1000:g}",
        ),
        say("doctor.real_time.throttled_hint"),
    )


def _stopped() -> tuple[int, int] | None:
    """Return how long in which period real-time tasks are held; None when never."""
    places = [("/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us")]
    for line in engine_groups.lines():
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
    shares = [text(f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime") for cpu in engine_groups.cpus()]
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
    finding = say("doctor.io_uring.not_usable", reason=why)
    return HostLimit("io_uring", finding, remedy)


def _why_no_ring(number: int) -> tuple[str, str]:
    switch = text("/proc/sys/kernel/io_uring_disabled")
    disabled = say("doctor.io_uring.disabled", switch=switch)
    if number == errno.EPERM and switch == "2":
        return disabled, say("doctor.io_uring.off_hint")
    if number == errno.EPERM and switch == "1":
        return disabled, say("doctor.io_uring.group_hint")
    if number in (errno.EPERM, errno.EACCES):
        return say("doctor.io_uring.forbidden"), say("doctor.io_uring.forbidden_hint")
    if number == errno.ENOSYS:
        return say("doctor.io_uring.none"), say("doctor.io_uring.none_hint")
    if number == errno.ENOMEM:
        limit_bytes = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        return say("doctor.io_uring.memlock", limit_bytes=limit_bytes), say("doctor.memlock.low_hint")
    return os.strerror(number), say("doctor.kernel_log.look_hint")


def of_run(*, rings: bool) -> list[HostLimit]:
    """Return what holds up a run here; `rings`: it asks for io_uring."""
    limits = [real_time(), no_ring() if rings else None]
    return [one for one in limits if one is not None]
