"""What a layout is: how devices become volumes, and what is on those.

Knows names and what goes together. Knows no device's content and runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from loadstone.frozen_model import FrozenModel
from loadstone.messages import say
from loadstone.toml_repair import RuleMistake, located

if TYPE_CHECKING:
    from collections.abc import Iterator

Manager = Literal["none", "md", "lvm", "btrfs", "zfs", "mount"]
Raid = Literal["jbod", "0", "1", "10", "5", "6"]
LEAST_DEVICES: Final[dict[str, int]] = {"jbod": 1, "0": 1, "1": 2, "10": 4, "5": 3, "6": 4}
"""In each array; of md, LVM, btrfs and ZFS the least that all of them take."""


class LayoutDescription(FrozenModel):
    """A layout as a file has it."""

    manager: Manager = "none"
    """Who makes the array; `none`: each device is a volume of its own; `mount`: `source` as it is."""
    raid: Raid = "jbod"
    groups: Annotated[int, Field(ge=1)] = 1
    """So many arrays of equally many devices: each is a volume."""
    filesystem: Literal["ext4", "xfs", "btrfs", "none"] | None = None
    """On each volume; `none`: the volume itself is the target. btrfs and ZFS bring their own."""
    mkfs_options: tuple[str, ...] = ()
    mount_options: tuple[str, ...] = ()
    chunk_kib: Annotated[int, Field(ge=4)] | None = None
    """Of a stripe, of md and LVM."""
    thin: bool = False
    """LVM: a thin volume in a pool."""
    size_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """LVM: part of the group that the volume takes."""
    log: str | None = None
    """ZFS: a device for the intent log."""
    properties: dict[str, str] = Field(default_factory=dict)
    """ZFS: of the pool's file system, as `sync = "always"`."""
    source: str | None = None
    """Of a mount: a device or `server:/export`."""
    filesystem_type: str | None = None
    """Of a mount: what mount(8) is told as its type, as `nfs4`."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        located(RuleMistake(text, ()) for text in self._misfits())
        return self

    def _misfits(self) -> Iterator[str]:
        for key, managers in _ONLY.items():
            setting = getattr(self, key)
            default = type(self).model_fields[key].get_default(call_default_factory=True)
            if setting != default and self.manager not in managers:
                yield say("control.layout.no_effect", option=key, manager=repr(self.manager))
        if self.manager in ("none", "mount") and self.raid != "jbod":
            yield say("control.layout.no_manager", raid=self.raid)
        if self.manager == "md" and self.raid == "jbod":
            yield say("control.layout.no_jbod")
        if self.manager == "mount" and self.source is None:
            yield say("control.layout.no_source")
        if self.filesystem is not None and self.manager in ("btrfs", "zfs", "mount"):
            yield say("control.layout.own_filesystem", manager=self.manager)

    @property
    def on_volume(self) -> str:
        """Return the file system on each volume; `none`: there is none."""
        if self.manager in ("btrfs", "zfs", "mount"):
            return self.manager
        return self.filesystem or "ext4"


_ONLY: Final[dict[str, tuple[str, ...]]] = {
    "chunk_kib": ("md", "lvm"),
    "thin": ("lvm",),
    "size_percent": ("lvm",),
    "log": ("zfs",),
    "properties": ("zfs",),
    "source": ("mount",),
    "filesystem_type": ("mount",),
    "groups": ("md", "lvm", "btrfs", "zfs"),
    "mkfs_options": ("none", "md", "lvm", "btrfs"),
    "mount_options": ("none", "md", "lvm", "btrfs", "mount"),
}


class LayoutOrder(FrozenModel):
    """A layout that is to be built: all that is needed to build it, and to take it down later."""

    label: Annotated[str, Field(pattern=r"^ls[0-9a-f]{8}$")]
    """Of file systems, arrays, groups and pools: how they are known to be ours."""
    name: str
    """The level's."""
    devices: tuple[str, ...]
    identities: tuple[str, ...]
    """`build.identity_of` each device, and the log after them."""
    description: LayoutDescription
    base: str
    """Directory of the mount points."""

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Return the devices of each volume."""
        if self.description.manager == "mount":
            return [()]
        if self.description.manager == "none":
            return [(device,) for device in self.devices]
        each = len(self.devices) // self.description.groups
        return [tuple(self.devices[at : at + each]) for at in range(0, each * self.description.groups, each)]

    @property
    def used(self) -> tuple[str, ...]:
        """Return every device that is written, that of the log at the end."""
        log = self.description.log
        devices = () if self.description.manager == "mount" else self.devices
        return (*devices, log) if log else devices

    @property
    def on_arrays(self) -> list[str]:
        """Return every device that an array makes and a file system is on; it goes with its array."""
        if self.description.manager not in ("md", "lvm") or self.description.on_volume == "none":
            return []
        return [self.block_device(number) for number in range(len(self.groups))]

    def volume(self, number: int) -> str:
        """Return where a volume's files are, or the volume itself where it has no file system."""
        if self.description.on_volume == "none":
            return self.block_device(number)
        return f"{self.base}/{number}"

    @property
    def volumes(self) -> list[str]:
        """Return all volumes."""
        return [self.volume(number) for number in range(len(self.groups))]

    def group_name(self, number: int) -> str:
        """Return the name of an array, group or pool."""
        return f"{self.label}n{number}"

    def block_device(self, number: int) -> str:
        """Return the device that a volume is."""
        match self.description.manager:
            case "md":
                return f"/dev/md/{self.group_name(number)}"
            case "lvm":
                return f"/dev/{self.group_name(number)}/volume"
            case "mount":
                return self.description.source or ""
            case _:
                return self.groups[number][0]
