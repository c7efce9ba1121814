"""Why a process ended: who killed it, or which limit did.

Knows the kernel's counts of processes killed for want of memory, and limits on CPU time.
Pure but for `Deaths`, which reads /proc and /sys. Does not know what the process was for.
"""

from __future__ import annotations

import resource
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadstone import engine_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Deaths:
    """How many processes the kernel has killed for want of memory so far; by whom it counts them."""

    counts: Mapping[str, int]
    at_limit: Mapping[str, int] = field(default_factory=dict)
    """How often control groups, ours and those it is in, were at their own limit; empty: not counted."""

    @classmethod
    def now(cls, proc: Path = PROC, cgroups: Path = CGROUPS) -> Deaths:
        """Read the counts of the host and of the control groups that an engine is in."""
        counts: dict[str, int] = {}
        for group, places in _groups(proc, cgroups):
            for place in places:
                count = _number(place, "oom_kill")
                if count is not None:
                    counts[group] = count
        count = _number(proc / "vmstat", "oom_kill")
        if count is not None:
            counts["host"] = count
        return cls(counts, _at_limit(proc, cgroups))

    def since(self, before: Deaths) -> str | None:
        """Return who had no memory left: `host`, or the control group that was at its limit.

        The host also counts what other groups lost: it is asked only where no group of ours is counted. A
        group also counts what it lost because the host had no memory left.
        """
        own = [name for name in self.counts if name != "host"]
        lost = next((name for name in _grown(self.counts, before.counts) if name in own or not own), None)
        if lost is None or not self.at_limit:
            return lost
        return next(iter(_grown(self.at_limit, before.at_limit)), "host")


def _grown(now: Mapping[str, int], before: Mapping[str, int]) -> list[str]:
    return [name for name, count in now.items() if count > before.get(name, count)]


def _at_limit(proc: Path, cgroups: Path) -> dict[str, int]:
    """Read what groups of version 2 count for themselves alone, the innermost first."""
    counts: dict[str, int] = {}
    for group, places in _groups(proc, cgroups):
        for place in places:
            inside = Path(group)
            directory = place.parent
            while inside != inside.parent:
                count = _number(directory / "memory.events.local", "oom")
                if count is not None:
                    counts[str(inside)] = count
                inside, directory = inside.parent, directory.parent
    return counts


def _groups(proc: Path, cgroups: Path) -> list[tuple[str, list[Path]]]:
    groups = []
    for line in engine_groups.lines(proc):
        _, controllers, group = line.split(":", 2)
        inside = group.lstrip("/")
        if not controllers:
            groups.append(
                (group, [cgroups / inside / "memory.events", cgroups / "unified" / inside / "memory.events"])
            )
        elif "memory" in controllers.split(","):
            groups.append((group, [cgroups / "memory" / inside / "memory.oom_control"]))
    return groups


def _number(path: Path, name: str) -> int | None:
    try:
        for line in path.read_text(errors="replace").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        return None
    return None


CPU_LIMIT_SHARE = 0.75
"""Of its limit an engine has used at least so much when the limit ended it (getrlimit(2)): 1.0 in
three runs beside six busy processes, less than 0.9 in one at a load of 13, for a reason not known."""


def of_exit(code: int, *, oom: str | None, cpu_s: float, cpu_limit_s: float | None) -> str:
    """Say how it ended, from its code as `subprocess` gives it: negative for a signal.

    `oom`: what `Deaths.since` said. `cpu_s`: CPU time it took; `cpu_limit_s`: its hard limit.
    """
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal_name(-code)
    if -code == signal.SIGKILL and oom is not None:
        where = (
            "the host has no memory left" if oom == "host" else f"control group {oom} is at its memory limit"
        )
        return f"was killed by the kernel's OOM killer (SIGKILL): {where}"
    over = cpu_limit_s is not None and cpu_s >= CPU_LIMIT_SHARE * cpu_limit_s
    if -code in (signal.SIGKILL, signal.SIGXCPU) and over:
        return f"was killed by {name}: it used the {cpu_limit_s:.0f} s of CPU time that ulimit -t allows"
    if -code == signal.SIGXFSZ:
        return f"was killed by {name}: a file grew beyond the limit on file sizes (ulimit -f)"
    return f"was killed by {name}"


def of_signal(event: Mapping[str, Any]) -> str:
    """Say who asked it to end, from the engine's event `signal`."""
    name, pid = event.get("signal"), event.get("sender_pid")
    if pid is None:
        limit = " (the limit on CPU time, ulimit -t)" if name == "SIGXCPU" else " from the kernel"
        return f"was ended by {name}{limit}"
    who = f" ({event['sender']})" if event.get("sender") else ""
    return f"was ended by {name} from process {pid}{who}, uid {event.get('sender_uid')}"


def cpu_limit_s() -> float | None:
    """Return the hard limit on CPU time of this process, which an engine inherits."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    return None if hard == resource.RLIM_INFINITY else float(hard)


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
