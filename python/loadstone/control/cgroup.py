"""Limits of a control group: on CPU time, memory and a device's I/O.

Knows the files of both versions (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1) that hold
one value, or one line for each device. Makes no group and moves no process.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from loadstone.control.control_kind import Control
from loadstone.control.file_controls import in_bytes, put, text
from loadstone.errors import RefusedError
from loadstone.messages import make_error

WHOLE: Final = (
    "cpu.max",
    "cpu.weight",
    "cpuset.cpus",
    "cpuset.mems",
    "memory.max",
    "memory.high",
    "memory.limit_in_bytes",
    "cpu.cfs_quota_us",
    "cpu.shares",
    "io.weight",
)
BY_DEVICE: Final = (
    "io.max",
    *(f"blkio.throttle.{way}_{what}_device" for way in ("read", "write") for what in ("bps", "iops")),
)
NO_LIMIT: Final = {"io.max": "rbps=max wbps=max riops=max wiops=max"}


class CgroupLimit(Control):
    """One limit: of `/sys/fs/cgroup/GROUP/memory.max`, or `.../io.max MAJOR:MINOR` for a device's."""

    by_name = True
    name, title, source = "cgroup_limit", "control group limit", "Documentation/admin-guide/cgroup-v2.rst"

    def resolve(self, subject: str) -> list[str]:
        """Return the limit meant."""
        path, device = _parts(subject)
        known = BY_DEVICE if device else WHOLE
        inside = (
            path.is_absolute() and path.parts[:4] == ("/", "sys", "fs", "cgroup") and ".." not in path.parts
        )
        if not inside or path.name not in known:
            raise make_error(
                RefusedError,
                "control.cgroup.no_limit",
                asked=subject,
                files=", ".join(WHOLE),
                device_files=", ".join(BY_DEVICE),
            )
        if self.read(subject) is None:
            raise make_error(RefusedError, "control.cgroup.no_group", path=path)
        return [subject]

    def read(self, subject: str) -> str | None:
        """Return the value; of a device its line without the number, empty where it has no limit."""
        path, device = _parts(subject)
        value = text(path)
        if value is None or not device:
            return value
        lines = dict(line.split(" ", 1) for line in value.splitlines() if " " in line)
        return " ".join(lines.get(device, "").split())

    def write(self, subject: str, value: str) -> None:
        """Set it."""
        path, device = _parts(subject)
        put(path, f"{device} {value or NO_LIMIT.get(path.name, '0')}" if device else value)

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether every limit asked for is there; the kernel shows the others beside it."""
        if "=" in requested:
            return set(requested.split()) <= set(value.split())
        return in_bytes(requested) == value or (requested in ("", "0") and value in ("", "0"))

    def identity(self, subject: str) -> str:
        """Return the group's own number: a group made anew is another one."""
        path, _ = _parts(subject)
        try:
            return str(path.parent.stat().st_ino)
        except OSError:
            return ""


def _parts(subject: str) -> tuple[Path, str]:
    """Return the file and the device's number, if there is one."""
    if match := re.fullmatch(r"(.+) (\d+:\d+)", subject):
        return Path(match[1]), match[2]
    return Path(subject), ""
