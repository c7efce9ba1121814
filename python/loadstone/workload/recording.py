"""What is kept of a job's I/Os beside its histograms. Knows no file."""

from __future__ import annotations

from loadstone.frozen_model import FrozenModel


class Recording(FrozenModel):
    """How finely a job is recorded."""

    every_io: bool = False
    """One row for each I/O."""
    windows_msec: tuple[int, ...] = ()
    """Something averages over windows of so long: samples have to fit into them."""
