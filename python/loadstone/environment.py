"""The environment of a run: what somebody else would have to know to repeat it.

Knows /proc and /sys of this host. Judges nothing, and leaves out what it cannot find:
an absent key is 'not known', never a default.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import cpu_list, engine_groups
from loadstone.path import facts
from loadstone.path.block import BlockDevice
from loadstone.path.discover import discover
from loadstone.path.layers import DataPath
from loadstone.version import __version__

if TYPE_CHECKING:
    from loadstone.path.spec import Spec
    from loadstone.plan.model import Plan

CPU = Path("/sys/devices/system/cpu")
CLOCK = Path("/sys/devices/system/clocksource/clocksource0")
DMI = Path("/sys/class/dmi/id")
MAX_PATHS = 64
"""Many files are many times the same path; the first are told."""
CGROUP_FILES = (
    "cpu.max",
    "memory.max",
    "memory.high",
    "io.max",
    "cpuset.cpus.effective",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "memory.limit_in_bytes",
    "cpuset.cpus",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
)


def describe(plan: Plan, spec: Spec | None = None) -> dict[str, Any]:
    """Return `environment.json` for a Plan.

    `host`, `targets`, `devices` (by kernel name), `paths` (the layers under the first targets) and
    `spec` where the user gave a data sheet: it then ends each path.
    """
    real = [target.path for target in plan.targets if target.kind.value != "virtual"]
    targets = [facts.target(path) for path in real]
    names = dict.fromkeys(name for target in targets for name in target.get("devices", []))
    block_devices = {name: BlockDevice.of_name(name) for name in names}
    devices = {name: facts.device(device) for name, device in block_devices.items() if device is not None}
    paths = [_path(path) for path in real[:MAX_PATHS]]
    if len(real) > MAX_PATHS:
        more = (
            f"the layers under {len(real) - MAX_PATHS} more targets: only the first {MAX_PATHS} are followed"
        )
        paths[0] = paths[0].model_copy(update={"gaps": (*paths[0].gaps, more)})
    document = {"host": host(), "targets": targets, "devices": devices}
    if spec is not None:
        paths = [spec.under(path) for path in paths]
        document["spec"] = spec.model_dump(mode="json", exclude_none=True)
    return document | {"paths": [path.model_dump(mode="json", exclude_defaults=True) for path in paths]}


def _path(target: str) -> DataPath:
    try:
        return discover(target)
    except (OSError, ValueError, IndexError) as error:
        # What a kernel writes in a way nobody expected must not keep anybody from measuring.
        return DataPath(target=target, layers=(), gaps=(f"the layers under {target}: {error}",))


def host() -> dict[str, Any]:
    """Facts about this host that hold for any run on it."""
    uname = platform.uname()
    host_facts: dict[str, Any] = {
        "loadstone_version": __version__,
        "python_version": platform.python_version(),
        "host_name": uname.node,
        "operating_system": _os_name(),
        "kernel": uname.release,
        "kernel_build": uname.version,
        "kernel_command_line": text("/proc/cmdline"),
        "architecture": uname.machine,
        "uptime_s": _first_number("/proc/uptime"),
        "load_average": text("/proc/loadavg"),
        "cpu": cpu(),
        "memory": memory(),
        "clock": _known(
            source=text(CLOCK / "current_clocksource"), available=text(CLOCK / "available_clocksource")
        ),
        "virtualisation": virtualisation(),
        "cgroup": cgroup_limits(),
    }
    return {key: value for key, value in host_facts.items() if value not in (None, {}, [])}


def cpu() -> dict[str, Any]:
    """Model, counts, frequency policy and mitigations."""
    info = text("/proc/cpuinfo") or ""
    model = re.search(r"^(?:model name|Processor|cpu model)\s*:\s*(.+)$", info, re.MULTILINE)
    cpu_facts: dict[str, Any] = {
        "model": model.group(1) if model else None,
        "online": os.cpu_count(),
        "usable": len(engine_groups.cpus()),
        "threads_per_core": _threads_per_core(),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "governors": _distinct("cpufreq/scaling_governor"),
        "frequency_drivers": _distinct("cpufreq/scaling_driver"),
        "min_khz": _distinct("cpufreq/scaling_min_freq"),
        "max_khz": _distinct("cpufreq/scaling_max_freq"),
        "turbo": turbo(),
        "smt": text(CPU / "smt" / "control"),
        "idle_driver": text(CPU / "cpuidle" / "current_driver"),
        "mitigations": _mitigations(),
    }
    return {key: value for key, value in cpu_facts.items() if value not in (None, [], {})}


def turbo() -> bool | None:
    """Whether frequency boost is on; `None` when the kernel does not say."""
    no_turbo, boost = text(CPU / "intel_pstate" / "no_turbo"), text(CPU / "cpufreq" / "boost")
    if no_turbo is not None:
        return no_turbo == "0"
    return None if boost is None else boost == "1"


def memory() -> dict[str, Any]:
    """Sizes and the settings that change how I/O behaves."""
    sizes = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text("/proc/meminfo") or "", re.MULTILINE))
    size_names = {"MemTotal": "total_bytes", "MemAvailable": "available_bytes", "SwapTotal": "swap_bytes"}
    memory_facts: dict[str, Any] = {
        name: int(sizes[key]) * 1024 for key, name in size_names.items() if key in sizes
    }
    pages = re.search(r"^HugePages_Total:\s+(\d+)$", text("/proc/meminfo") or "", re.MULTILINE)
    memory_facts["huge_pages"] = int(pages.group(1)) if pages else None
    memory_facts["transparent_huge_pages"] = chosen(text("/sys/kernel/mm/transparent_hugepage/enabled"))
    for name in (
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_background_bytes",
        "swappiness",
    ):
        memory_facts[f"vm_{name}"] = text(f"/proc/sys/vm/{name}")
    return {key: value for key, value in memory_facts.items() if value is not None}


def virtualisation() -> dict[str, Any]:
    """Tell what the firmware and the CPU flags say about being a guest."""
    info = text("/proc/cpuinfo") or ""
    signs = {
        "hypervisor": "hypervisor" in info,
        "type": text("/sys/hypervisor/type"),
        "vendor": text(DMI / "sys_vendor"),
        "product": text(DMI / "product_name"),
        "container": Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    }
    return {key: value for key, value in signs.items() if value is not None}


def cgroup_limits() -> dict[str, str]:
    """Limits of an engine's control groups that are set, `<group>/<file>` to value."""
    limits: dict[str, str] = {}
    for line in engine_groups.lines():
        _, controllers, group = line.split(":", 2)
        base = Path("/sys/fs/cgroup") / (controllers or "")
        directory = base / group.lstrip("/")
        for name in CGROUP_FILES:
            value = text(directory / name)
            if value and not _unlimited(value):
                limits[f"{controllers}:{group}/{name}".lstrip(":")] = value
    return limits


def text(path: str | Path) -> str | None:
    """Content of a small file without its line end, `None` when it cannot be read."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None


def chosen(choices: str | None) -> str | None:
    """Return the bracketed one of the kernel's `a [b] c` choices."""
    match = re.search(r"\[([^\]]+)\]", choices or "")
    return match.group(1) if match else choices


def _known(**facts: Any) -> dict[str, Any]:
    """Leave out what could not be found."""
    return {name: value for name, value in facts.items() if value is not None}


def _unlimited(value: str) -> bool:
    """Know the kernel's ways of saying 'no limit'; cgroup v1 memory uses a number near 2^63."""
    return value.startswith("max") or value == "-1" or (value.isdecimal() and int(value) >= 1 << 62)


def _distinct(attribute: str) -> list[str]:
    values = {text(core / attribute) for core in CPU.glob("cpu[0-9]*")}
    return sorted(value for value in values if value is not None)


def _threads_per_core() -> int | None:
    siblings = text(CPU / "cpu0" / "topology" / "thread_siblings_list")
    return None if siblings is None else len(cpu_list.numbers(siblings))


def _mitigations() -> dict[str, str]:
    states = {entry.name: text(entry) or "" for entry in sorted((CPU / "vulnerabilities").glob("*"))}
    return {name: state for name, state in states.items() if state != "Not affected"}


def _os_name() -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', text("/etc/os-release") or "", re.MULTILINE)
    return match.group(1) if match else None


def _first_number(path: str) -> float | None:
    content = text(path)
    return float(content.split()[0]) if content else None
