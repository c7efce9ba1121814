"""All controls, a row each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.control import block, cpu, memory
from loadstone.control.cgroup import CgroupLimit
from loadstone.control.commands import CommandPair
from loadstone.control.control_kind import Setting
from loadstone.control.fill import FillLevel
from loadstone.control.layout.build import LayoutControl
from loadstone.control.mounts import MountOptions
from loadstone.control.nfs_server import NfsServerThreads
from loadstone.control.own_group import OwnGroup
from loadstone.control.remote import RemoteFile
from loadstone.control.sysctl import Sysctl
from loadstone.errors import InputError, LoadstoneError
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest

if TYPE_CHECKING:
    from loadstone.control.control_kind import Control


class Controls:
    """The controls of this host by name; a test gives it other roots."""

    def __init__(self, sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> None:
        every: list[Control] = [
            *(kind(sys) for kind in (*cpu.CONTROLS, *block.CONTROLS, *memory.IN_SYS)),
            *(kind(proc) for kind in (*memory.IN_PROC, Sysctl, NfsServerThreads)),
            MountOptions(),
            CgroupLimit(),
            OwnGroup(),
            FillLevel(),
            LayoutControl(),
            RemoteFile(),
            CommandPair(),
        ]
        self._by_name = {control.name: control for control in every}

    def every(self) -> list[Control]:
        """Return all of them in the order of their rooms."""
        return list(self._by_name.values())

    def replace(self, control: Control) -> None:
        """Put another in the place of the one of its name."""
        self._by_name[control.name] = control

    def __contains__(self, name: str) -> bool:
        """Tell whether there is one of this name."""
        return name in self._by_name

    def meant(self, control: str, subject: str) -> list[Setting]:
        """Return the settings that a control of a subject means here; none where there is no such thing."""
        try:
            return [Setting(control, name) for name in self.named(control).resolve(subject)]
        except LoadstoneError:
            return []

    def reset_by(self, control: str, subject: str) -> list[Setting]:
        """Return the settings that the kernel resets when this is set."""
        kind = self.named(control)
        return [item for one in self.meant(control, subject) for item in kind.companions(one.subject)]

    def named(self, name: str) -> Control:
        """Return one. Raises InputError with the nearest name where there is none."""
        if name not in self._by_name:
            hint = nearest(name, self._by_name, limit=len(self._by_name))
            raise make_error(InputError, "control.subject.no_control", hint=hint, name=repr(name))
        return self._by_name[name]
