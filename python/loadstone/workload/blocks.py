"""Reads, writes and trims of blocks, whose size, direction and address are drawn apart. Knows no file."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel
from loadstone.workload.addresses import AddressRequests, ReadWriteMix
from loadstone.workload.block_sizes import SizeRequests, SizesByDirection


class BlockWork(FrozenModel):
    """I/Os to the targets, or within the files of a tree."""

    kind: Literal["blocks"] = "blocks"
    mix: ReadWriteMix = ReadWriteMix()
    sizes: SizeRequests
    addresses: AddressRequests = AddressRequests()

    @property
    def blocks(self) -> BlockWork:
        """It is reads, writes and trims of blocks."""
        return self

    @property
    def shares(self) -> tuple[int, int, int]:
        """Percent of reads, writes and trims."""
        rw = self.mix.rw.removeprefix("rand")
        if rw == "rw":
            return self.mix.read_percent, 100 - self.mix.read_percent, 0
        return {"read": (100, 0, 0), "write": (0, 100, 0), "trim": (0, 0, 100), "trimwrite": (0, 50, 50)}[rw]

    @property
    def is_random(self) -> bool:
        """Whether addresses are random, or some are."""
        return self.mix.rw.startswith("rand")

    @property
    def trims_then_writes(self) -> bool:
        """Whether each trim brings a write of the same place."""
        return self.mix.rw.endswith("trimwrite")

    @property
    def block_sizes(self) -> SizesByDirection:
        """Block sizes of reads, writes and trims."""
        return self.sizes.bs
