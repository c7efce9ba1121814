"""What rotating media can do: positioning, transfer, and the writes that mirrors and parity add.

Knows one spindle and how many there are said to be. Judges nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from loadstone.audit.case import Case

POSITIONING_PER_S: Final = 300.0
"""Random I/Os a second of one spindle: 15000 rpm turn in 4 ms, and a sorted queue saves half of it."""
NARROW_PER_S: Final = 1000.0
"""In a band of a few tracks, several I/Os fall into one turn."""
TRANSFER_BYTES_PER_S: Final = 280e6
"""Outer tracks of the fastest spindles."""


@dataclass(frozen=True, slots=True)
class Spindles:
    """What one spindle can do of what was asked, and how many would be needed."""

    plausible_iops: float
    narrow_iops: float
    needed: int


def rotational(case: Case) -> bool | None:
    """Whether the medium rotates, None when nobody knows."""
    if case.declared is not None and case.declared.rotational is not None:
        return case.declared.rotational
    flags = [target.rotational for target in case.targets]
    return flags[0] if flags and len(set(flags)) == 1 else None


def random_percent(case: Case) -> float | None:
    """Return the share of random I/Os when it is the same in all jobs."""
    percents = {job.random_percent for job in case.jobs}
    return percents.pop() if len(percents) == 1 else None


def spindles(case: Case) -> Spindles | None:
    """Return what one spindle does of this load; None when rate or size are not known."""
    sizes = {size for job in case.jobs for size in job.block_bytes}
    if case.total.iops is None or len(sizes) != 1:
        return None
    transfer_s = sizes.pop() / TRANSFER_BYTES_PER_S
    penalty = _writes_per_write(case) if set(case.ops) == {"write"} else 1.0
    plausible = 1 / (1 / POSITIONING_PER_S + transfer_s) / penalty
    narrow = 1 / (1 / NARROW_PER_S + transfer_s) / penalty
    return Spindles(plausible, narrow, math.ceil(case.total.iops.value / narrow))


def _writes_per_write(case: Case) -> float:
    value = case.setup.drive_writes_per_write
    return float(value) if value else 1.0
