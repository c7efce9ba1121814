"""Whether a process does anything, as the kernel tells it.

Knows procfs; does not know what the process is for. Nothing here waits for it but `killed_ends`.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from pathlib import Path
from typing import Final, NamedTuple

WANTS_CPU: Final = "R"
IN_THE_KERNEL: Final = "D"
"""Waits for something that no signal interrupts."""


class _Calls(NamedTuple):
    """System calls that open, look at, list and read, by number."""

    paths: dict[int, int]
    """Which argument is a path."""
    files: frozenset[int]
    """These begin with a descriptor."""


_GENERIC: Final = _Calls({48: 1, 56: 1, 78: 1, 79: 1, 291: 1, 439: 1}, frozenset({61, 63, 67}))
"""Linux include/uapi/asm-generic/unistd.h."""
_X86_64: Final = _Calls(
    {2: 0, 4: 0, 6: 0, 21: 0, 89: 0, 257: 1, 262: 1, 267: 1, 269: 1, 332: 1, 439: 1},
    frozenset({0, 5, 17, 217}),
)
"""Linux arch/x86/entry/syscalls/syscall_64.tbl."""
_CALLS: Final = {"x86_64": _X86_64, "aarch64": _GENERIC, "riscv64": _GENERIC}
_NAME_BYTES: Final = 4096
_MOMENT_S: Final = 0.1
"""A killed process may wait in the kernel so long for what does come back."""
_NO_CPU_S: Final = 10.0
_LOOK_S: Final = 0.005


def killed_ends(pid: int) -> bool:
    """Wait for a child that was killed; False where it waits in the kernel, and is left behind.

    On a host with too much to do it ends once it has a CPU: ten seconds are given for that.
    """
    began_s = time.monotonic()
    while True:
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return True
        waited_s = time.monotonic() - began_s
        if ended:
            return True
        if waited_s >= _NO_CPU_S or (waited_s >= _MOMENT_S and waits_in_the_kernel(pid)):
            return False
        time.sleep(_LOOK_S)


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


def forks(pid: int) -> list[int]:
    """Return the children of a process that run the same program: it does what may hang in such ones."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        program = Path(f"/proc/{pid}/exe").readlink()
        for listing in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, listing.read_text().split()):
                with contextlib.suppress(OSError):
                    children += [child] if Path(f"/proc/{child}/exe").readlink() == program else []
    return children


def waited_for(pid: int) -> str:
    """Name the file or directory that a thread of a process waits for in a system call; empty: none.

    A file by descriptor only where it has a name: waiting for a pipe or a socket is nothing unusual.
    """
    known = _CALLS.get(platform.machine())
    with contextlib.suppress(OSError):
        for call_file in Path(f"/proc/{pid}/task").glob("*/syscall"):
            number, *words = call_file.read_text().split()
            if known is None or not number.isdecimal():
                continue
            arguments = [int(word, 16) for word in words]
            if int(number) in known.paths:
                return _text_at(pid, arguments[known.paths[int(number)]])
            if int(number) in known.files:
                name = str(Path(f"/proc/{pid}/fd/{arguments[0]}").readlink())
                if name.startswith("/") and not name.startswith("/dev/"):
                    return name
    return ""


def _text_at(pid: int, address: int) -> str:
    """Return a name in the memory of a process; the kernel reads on over the end of a page."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        content = memory.read(_NAME_BYTES)
    return content.partition(b"\0")[0].decode(errors="replace")


def _fields(stat: Path) -> list[str]:
    """Return what stands behind the name, which may hold anything."""
    with contextlib.suppress(OSError):
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    return []
