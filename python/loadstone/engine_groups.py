"""The control groups that an engine is in: those of this process, or groups made for the load alone.

Knows /proc/self/cgroup, and how a program is started inside other groups. What Loadstone itself needs (it
plans, watches and judges) stays outside: a small share of a CPU would be used up by that, and the load got
what was left. Makes no group and sets no limit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadstone import cpu_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROC: Final = Path("/proc")
_JOIN: Final = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done; shift; exec "$@"'
"""A shell that goes there and becomes the program: it is inside before it allocates or runs anything."""
_JOINED: Final[dict[str, Path]] = {}


def join(groups: Mapping[str, Path]) -> None:
    """Have every engine from now on in these: directory by controller, `""` for all of version 2."""
    _JOINED.update(groups)


def leave(name: str) -> None:
    """Have no engine from now on in groups of this name."""
    for controller in [one for one, directory in _JOINED.items() if directory.name == name]:
        del _JOINED[controller]


def inside(argv: Sequence[str]) -> list[str]:
    """Return a command that runs in the groups of an engine; the same one where these are ours."""
    if not _JOINED:
        return list(argv)
    directories = dict.fromkeys(map(str, _JOINED.values()))
    return ["/bin/sh", "-c", _JOIN, "sh", *directories, "--", *argv]


def lines(proc: Path = PROC) -> list[str]:
    """Return the lines of /proc/PID/cgroup as an engine will have them."""
    try:
        own = (proc / "self" / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [_of_engine(line) for line in own]


def cpus() -> set[int]:
    """Return the CPUs that an engine may use."""
    own = os.sched_getaffinity(0)
    group = _JOINED.get("cpuset", _JOINED.get(""))
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
        try:
            listed = (group / name).read_text().strip() if group is not None else ""
        except OSError:
            continue
        if listed:
            return own & {*cpu_list.numbers(listed)} or own
    return own


def _of_engine(line: str) -> str:
    number, controllers, _ = line.split(":", 2)
    for controller, directory in _JOINED.items():
        if controller in controllers.split(","):
            return f"{number}:{controllers}:/{directory.name}"
    return line
