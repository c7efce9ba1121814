"""A control group of ours with limits, which engines are in for a while.

Knows both versions of control groups. This process stays where it is: what it uses of a CPU or of memory
would be taken from the load. After a crash nobody is left in the group, and it is removed.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Final

from loadstone import engine_groups
from loadstone.control.control_kind import Control
from loadstone.control.file_controls import put, text
from loadstone.errors import RefusedError
from loadstone.messages import make_error, say
from loadstone.messages.suggest import nearest

ROOT: Final = Path("/sys/fs/cgroup")
NONE: Final = "as is"
VERSIONS: Final = (
    ("memory.max", "memory.limit_in_bytes"),
    ("memory.high", "memory.soft_limit_in_bytes"),
    ("cpu.max", "cpu.cfs_quota_us"),
    ("cpu.weight", "cpu.shares"),
    ("io.max", "blkio.throttle.write_bps_device"),
    ("io.weight", "blkio.bfq.weight"),
)
"""Limits of version 2, and what version 1 has for them."""
CONTROLLERS: Final = ("cpu", "memory", "cpuset", "io", "blkio", "pids")


def in_words(value: str) -> str:
    """Return the limits of a group as they stand in an experiment's file."""
    return (
        value
        if value == NONE
        else ", ".join(f"{file} = {limit}" for file, limit in json.loads(value).items())
    )


class OwnGroup(Control):
    """Limits of a group that is made for it: `{"memory.max": "256M"}`; `as is`: no group."""

    by_name = True
    name, title, source = "cgroup", "control group of a run", "Documentation/admin-guide/cgroup-v2.rst"

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def resolve(self, subject: str) -> list[str]:
        """Return the group's name."""
        if not subject or "/" in subject or subject.startswith("."):
            raise make_error(RefusedError, "control.own_group.name", asked=repr(subject))
        return [subject]

    def read(self, subject: str) -> str | None:
        """Return the limits of the group, or that there is none."""
        folders = [folder for folder in self._roots().values() if (folder / subject).is_dir()]
        if not folders:
            return NONE
        limits: dict[str, str] = {}
        for root in dict.fromkeys(folders):
            for file in sorted((root / subject).glob("*.*")):
                if file.name.partition(".")[0] in CONTROLLERS and (limit := text(file)) is not None:
                    limits[file.name] = limit
        return json.dumps(limits)

    def write(self, subject: str, value: str) -> None:
        """Make the group and have engines start there, or remove it."""
        if value == NONE:
            self._leave(subject)
        else:
            self._enter(subject, json.loads(value))

    def agrees(self, requested: str, value: str) -> bool:
        """Return whether there is none, as asked; limits were read one by one when they were set."""
        if NONE in (requested, value):
            return requested == value
        return set(json.loads(requested)) <= set(json.loads(value))

    def _roots(self) -> dict[str, Path]:
        """Return where each controller's groups are."""
        if (self._root / "cgroup.controllers").exists():
            return dict.fromkeys((text(self._root / "cgroup.controllers") or "").split(), self._root)
        return {name: self._root / name for name in CONTROLLERS if (self._root / name).is_dir()}

    def why_not(self, limits: dict[str, str]) -> str | None:
        """Return why these limits cannot be set here; None where they can."""
        roots = self._roots()
        for file in limits:
            controller = file.partition(".")[0]
            if controller not in roots:
                return say(
                    "control.own_group.no_controller",
                    controller=repr(controller),
                    controllers=", ".join(roots) or "none",
                )
            if not os.access(roots[controller], os.W_OK):
                return say("control.own_group.not_writable", path=roots[controller])
            known = _files(roots[controller], controller)
            if known and file not in known:
                return say(
                    "control.own_group.unknown",
                    file=file,
                    nearest=_of_other_version(file, known)
                    or nearest(file, known)
                    or f"look into {roots[controller]}",
                )
        return None

    def _enter(self, subject: str, limits: dict[str, str]) -> None:
        if why := self.why_not(limits):
            raise make_error(RefusedError, "control.own_group.failed", reason=why)
        roots = self._roots()
        used = {file.partition(".")[0]: roots[file.partition(".")[0]] for file in limits}
        for root in dict.fromkeys(used.values()):
            folder = root / subject
            folder.mkdir(exist_ok=True)
            if root == self._root:
                needed = {file.partition(".")[0] for file in limits}
                put(root / "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(needed)))
            if (root / "cpuset.cpus").exists():
                for name in ("cpuset.cpus", "cpuset.mems"):
                    put(folder / name, text(root / name) or "")
        for file, value in limits.items():
            path = roots[file.partition(".")[0]] / subject / file
            if not path.exists():
                raise make_error(RefusedError, "control.own_group.no_file", file=file)
            put(path, value)
        engine_groups.join(
            {"" if root == self._root else name: root / subject for name, root in used.items()}
        )

    def _leave(self, subject: str) -> None:
        engine_groups.leave(subject)
        for root in dict.fromkeys(self._roots().values()):
            folder = root / subject
            if folder.is_dir():
                for left in (text(folder / "cgroup.procs") or "").split():
                    # What we started and has not ended: it goes where it would have been without us.
                    put(root / "cgroup.procs", left)
                folder.rmdir()


def _of_other_version(file: str, known: set[str]) -> str | None:
    """Return the limit that stands for one of the other version of control groups."""
    pair = next((pair for pair in VERSIONS if file in pair), ())
    other = next((one for one in pair if one in known), None)
    return None if other is None else say("api.name.near", name=repr(other))


def _files(root: Path, controller: str) -> set[str]:
    """Return the limits that groups of a controller have here; none where no group shows any.

    What a group has its root need not have, and a group has nothing of a controller that is not for it.
    """
    folders = [root, *(entry for entry in sorted(root.iterdir()) if entry.is_dir())]
    groups = [
        {file.name for file in folder.glob(f"{controller}.*") if file.stat().st_mode & stat.S_IWUSR}
        for folder in folders
    ]
    return set().union(*groups) if any(groups[1:]) or root.name == controller else set()
