"""Is this host fit to generate load: one check per function, each with its remedy.

Knows what on a host spoils a measurement or stops a run. Measures nothing and changes
nothing. What cannot be found out is `unknown`, never `ok`.
"""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from loadstone import environment, host_limits, units
from loadstone.control import change_journal, changes
from loadstone.control.changes import DAMAGE_REMEDY
from loadstone.engine import binary, plan_check, process
from loadstone.errors import EngineError, LoadstoneError
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

State = Literal["ok", "warn", "fail", "unknown"]

MEMLOCK_WANTED_BYTES: Final = 64 << 20
FILES_WANTED: Final = 4096
DISK_WANTED_BYTES: Final = 1 << 30
MEMORY_WANTED_BYTES: Final = 512 << 20
CAP_IPC_LOCK: Final = 14
GOOD_CLOCKS: Final = frozenset({"tsc", "arch_sys_counter"})
GUEST_CLOCKS: Final = frozenset({"kvm-clock", "hyperv_clocksource_tsc_page", "xen"})


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `remedy` is empty when there is nothing to do."""

    name: str
    state: State
    found: str
    remedy: str = ""

    def document(self) -> dict[str, str]:
        """As a JSON object."""
        return {"name": self.name, "state": self.state, "found": self.found, "remedy": self.remedy}


def examine(directory: Path) -> list[Check]:
    """Run every check; `directory` is where bundles will be written."""
    host = environment.host()
    checks: list[Callable[[], list[Check]]] = [
        _engine,
        _io_uring_switch,
        _permissions,
        _memlock,
        _open_files,
        _kernel_aio,
        _real_time,
        lambda: _governor(host["cpu"]),
        lambda: _clock(host.get("clock", {})),
        lambda: _load(host),
        lambda: _swap(host["memory"]),
        lambda: _memory(host["memory"]),
        lambda: _throttles(host.get("cgroup", {})),
        lambda: _guest(host["virtualisation"]),
        lambda: _disk(directory),
        _left_changed,
    ]
    return [finding for check in checks for finding in check()]


def _left_changed() -> list[Check]:
    """Tell of settings that a run that was killed has not put back."""
    name = "settings left changed"
    try:
        records = change_journal.waiting(change_journal.folder())
    except LoadstoneError as error:
        return [Check(name, "unknown", error.message, error.hint or "")]
    damaged = [one for record in records for one in changes.damage_of(record)]
    checks = [Check(name, "warn", one.what, DAMAGE_REMEDY) for one in damaged]
    settings = [str(change.setting) for record in records for change in record.open_changes()]
    if settings:
        finding = say("doctor.left_changed.killed", settings=", ".join(settings))
        checks.append(Check(name, "warn", finding, say("doctor.left_changed.killed_hint")))
    return checks


def _engine() -> list[Check]:
    try:
        program = binary.find()
        engine_facts = process.probe(program=program)
    except EngineError as error:
        return [Check("engine", "fail", error.message, error.hint or say("doctor.engine.not_found_hint"))]
    version = str(engine_facts.get("engine_version") or "")
    if not plan_check.reads_these_plans(program):
        finding = say("doctor.engine.other_version", engine=program, version=version)
        return [Check("engine", "fail", finding, binary.rebuild_hint())]
    return [Check("engine", "ok", f"{program} {version}".strip()), *_io_uring(engine_facts)]


def _io_uring(facts: Mapping[str, Any]) -> list[Check]:
    """Tell what the engine found when it set up a ring of its own."""
    ring = facts.get("io_uring")
    if not isinstance(ring, dict):
        return [Check("io_uring", "unknown", say("doctor.io_uring.not_said"))]
    if ring.get("available"):
        return [Check("io_uring", "ok", say("doctor.io_uring.works"))]
    # Asked once more, from here: the same host, and it tells the reasons apart.
    limit = host_limits.no_ring()
    if limit is not None:
        return [Check("io_uring", "warn", limit.found, limit.remedy)]
    finding = str(ring.get("error") or say("doctor.io_uring.fails"))
    return [Check("io_uring", "warn", finding, say("doctor.kernel_log.look_hint"))]


def _io_uring_switch() -> list[Check]:
    state = environment.text("/proc/sys/kernel/io_uring_disabled")
    if state in {None, "0"}:
        return []
    finding = say("doctor.io_uring.off" if state == "2" else "doctor.io_uring.off_for_most")
    return [Check("io_uring switch", "warn", finding, say("doctor.io_uring.off_hint"))]


def _permissions() -> list[Check]:
    if os.geteuid() == 0:
        return [Check("permissions", "ok", say("doctor.permissions.root"))]
    finding = say("doctor.permissions.not_root")
    return [Check("permissions", "warn", finding, say("doctor.permissions.not_root_hint"))]


def _memlock() -> list[Check]:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY or _capable(CAP_IPC_LOCK):
        return [Check("locked memory", "ok", say("doctor.memlock.unlimited"))]
    if soft >= MEMLOCK_WANTED_BYTES:
        return [Check("locked memory", "ok", units.size(soft))]
    finding = say("doctor.memlock.low", limit_bytes=soft)
    return [Check("locked memory", "warn", finding, say("doctor.memlock.low_hint"))]


def _open_files() -> list[Check]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= FILES_WANTED:
        return [Check("open files", "ok", str(soft))]
    if hard >= FILES_WANTED:
        finding = say("doctor.open_files.may_rise", soft=soft, hard=hard)
        return [Check("open files", "warn", finding, say("doctor.open_files.may_rise_hint", hard=hard))]
    return [Check("open files", "warn", f"{soft}", say("doctor.open_files.low_hint"))]


def _kernel_aio() -> list[Check]:
    used, limit = environment.text("/proc/sys/fs/aio-nr"), environment.text("/proc/sys/fs/aio-max-nr")
    if used is None or limit is None:
        return [Check("kernel AIO", "unknown", say("doctor.kernel_aio.none"))]
    left = int(limit) - int(used)
    finding = say("doctor.kernel_aio.free", left=left, limit=limit)
    if left >= 16384:
        return [Check("kernel AIO", "ok", finding)]
    return [Check("kernel AIO", "warn", finding, say("doctor.kernel_aio.low_hint"))]


def _real_time() -> list[Check]:
    """Find the class this was started with: an engine inherits it."""
    limit = host_limits.real_time()
    if limit is not None:
        return [Check(limit.name, "warn", limit.found, limit.remedy)]
    return []


def _governor(cpu: Mapping[str, Any]) -> list[Check]:
    governors = cpu.get("governors")
    if not governors:
        return [Check("CPU governor", "unknown", say("doctor.governor.not_shown"))]
    if governors == ["performance"]:
        return [Check("CPU governor", "ok", "performance")]
    finding = say("doctor.governor.slow", governors=", ".join(governors))
    return [Check("CPU governor", "warn", finding, say("doctor.governor.slow_hint"))]


def _clock(clock: Mapping[str, Any]) -> list[Check]:
    source = clock.get("source")
    if source is None:
        return [Check("clock", "unknown", say("doctor.clock.unknown"))]
    if source in GOOD_CLOCKS:
        return [Check("clock", "ok", source)]
    if source in GUEST_CLOCKS:
        return [Check("clock", "ok", say("doctor.clock.guest", source=source))]
    finding = say("doctor.clock.slow", source=source)
    return [Check("clock", "fail", finding, say("doctor.clock.slow_hint"))]


def _load(host: Mapping[str, Any]) -> list[Check]:
    average = host.get("load_average")
    if not average:
        return [Check("other load", "unknown", say("doctor.load.unknown"))]
    one, cpus = float(average.split()[0]), host["cpu"]["usable"]
    if one < cpus / 2:
        return [Check("other load", "ok", say("doctor.load.idle", average=str(one), cpus=cpus))]
    finding = say("doctor.load.busy", average=str(one), cpus=cpus)
    return [Check("other load", "warn", finding, say("doctor.load.busy_hint"))]


def _swap(memory: Mapping[str, Any]) -> list[Check]:
    swap_bytes = memory.get("swap_bytes")
    if swap_bytes is None:
        return [Check("swap", "unknown", say("doctor.memory.unknown"))]
    if swap_bytes == 0:
        return [Check("swap", "ok", "none")]
    return [Check("swap", "warn", say("doctor.memory.swap"), say("doctor.memory.swap_hint"))]


def _memory(memory: Mapping[str, Any]) -> list[Check]:
    available = memory.get("available_bytes")
    if available is None:
        return [Check("memory", "unknown", say("doctor.memory.unknown"))]
    finding = say("doctor.memory.available", available_bytes=available)
    if available >= MEMORY_WANTED_BYTES:
        return [Check("memory", "ok", finding)]
    return [Check("memory", "warn", finding, say("doctor.memory.low_hint"))]


def _throttles(cgroup: Mapping[str, str]) -> list[Check]:
    """Find quotas on CPU or I/O: they are the device you then measure; sets and periods are not."""
    watched = ("cpu.max", "cfs_quota_us", "io.max", "throttle", "memory.max", "memory.high", "limit_in_bytes")
    limits = [f"{name} = {value}" for name, value in cgroup.items() if any(key in name for key in watched)]
    if not limits:
        return [Check("cgroup limits", "ok", say("doctor.cgroup.unlimited"))]
    return [Check("cgroup limits", "warn", "; ".join(limits), say("doctor.cgroup.limited_hint"))]


def _guest(virtualisation: Mapping[str, Any]) -> list[Check]:
    if not virtualisation.get("hypervisor"):
        return [Check("virtualisation", "ok", say("doctor.guest.none"))]
    finding = say("doctor.guest.virtual")
    return [Check("virtualisation", "warn", finding, say("doctor.guest.virtual_hint"))]


def _disk(directory: Path) -> list[Check]:
    free = shutil.disk_usage(directory).free
    finding = say("doctor.space.free", free_bytes=free, directory=directory)
    if free >= DISK_WANTED_BYTES:
        return [Check("space for bundles", "ok", finding)]
    return [Check("space for bundles", "warn", finding, say("doctor.space.low_hint"))]


def _capable(number: int) -> bool:
    status = environment.text("/proc/self/status") or ""
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False
