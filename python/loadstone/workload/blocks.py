"""Reads, writes and trims of blocks, whose size, direction and address are drawn apart. Knows no file."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel
from loadstone.workload.addresses import AddressRequests, ReadWriteMix
from loadstone.workload.block_sizes import SizeRequests


class BlockWork(FrozenModel):
    """I/Os to the targets, or within the files of a tree."""

    kind: Literal["blocks"] = "blocks"
    mix: ReadWriteMix = ReadWriteMix()
    sizes: SizeRequests
    addresses: AddressRequests = AddressRequests()
