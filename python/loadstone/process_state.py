"""Whether a process does anything, as the kernel tells it.

Knows procfs; does not know what the process is for. Nothing here waits for it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

WANTS_CPU: Final = "R"
IN_THE_KERNEL: Final = "D"
"""Waits for something that no signal interrupts."""


def state(pid: int) -> str:
    """Return its state as `ps` writes it, that of its main thread; empty when it is gone."""
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return fields[0] if fields else ""


def waits_in_the_kernel(pid: int) -> bool:
    """Whether one of its threads waits for something that no signal interrupts."""
    with contextlib.suppress(OSError):
        stats = Path(f"/proc/{pid}/task").glob("*/stat")
        return any(_fields(one)[:1] == [IN_THE_KERNEL] for one in stats)
    return False


def progress(pid: int) -> tuple[str, ...]:
    """Return what changes with all that its main thread does: times, faults, and how often it waited."""
    thread = Path(f"/proc/{pid}/task/{pid}")
    fields = _fields(thread / "stat")
    with contextlib.suppress(OSError, IndexError):
        status = (thread / "status").read_text(errors="replace")
        waits = status.rpartition("voluntary_ctxt_switches:")[0].rpartition("voluntary_ctxt_switches:")[2]
        return (fields[7], fields[9], fields[11], fields[12], waits.split()[0])
    return ()


def _fields(stat: Path) -> list[str]:
    """Return what stands behind the name, which may hold anything."""
    with contextlib.suppress(OSError):
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    return []
