"""The data path of a target, as layers from what the user named down to the medium.

Knows the shape of a path and of what limits a layer. How layers are found is in `discover`.
Units stand last in the names.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from loadstone.frozen_model import FrozenModel

LayerKind = Literal[
    "file",
    "file_system",
    "loop",
    "partition",
    "disk",
    "nvme",
    "zram",
    "lvm",
    "dm",
    "multipath",
    "md",
    "btrfs",
    "fuse",
    "network_file_system",
    "network_block",
    "adapter",
    "link",
    "cgroup",
    "array",
    "memory",
    "char",
]
IN_MEMORY: Final = ("tmpfs", "ramfs", "rootfs", "devtmpfs", "hugetlbfs")
"""File systems that are the page cache and have nothing under them."""


class Ceiling(FrozenModel):
    """The most a layer can carry.

    `each`: for reads and for writes on their own (a full-duplex link); `both`: for the sum.
    """

    quantity: Literal["bytes_per_s", "iops"]
    op: Literal["read", "write", "each", "both"]
    per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    kind: Literal["link", "limit", "specified", "physical"]
    source: str
    """In words: 'payload of 1 GbE at MTU 1500 with TCP time stamps', 'blkio throttle of this cgroup'."""
    multiple: int = 1
    """How many of it are counted in `per_s` (four ports of 16GFC)."""
    access: Literal["random", "sequential"] | None = None
    """The only kind of access it holds for; None: any."""
    block_bytes_at_most: int | None = None
    """The largest I/O it holds for; None: any size."""


class Layer(FrozenModel):
    """One layer. `below` names the layers under it; `name` is unique in a path."""

    name: str
    kind: LayerKind
    below: tuple[str, ...] = ()
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    ceilings: tuple[Ceiling, ...] = ()
    counters: str | None = None
    """Prefix of its columns in the monitors' table (`block.loop0`, `net.eth0`); None: nothing counts it."""


class DataPath(FrozenModel):
    """The layers of one target, nearest first; `gaps` says what could not be seen, and why."""

    target: str
    layers: tuple[Layer, ...]
    gaps: tuple[str, ...] = ()

    def layer(self, name: str) -> Layer | None:
        """Return a layer by name."""
        return next((layer for layer in self.layers if layer.name == name), None)
