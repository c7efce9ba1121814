"""When the next I/O of a job is due. Knows no other job."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel
from loadstone.workload.addresses import NumbersByDirection


class PaceRequests(FrozenModel):
    """When the next I/O is due."""

    rate_bytes: NumbersByDirection = (None, None, None)
    rate_min_bytes: NumbersByDirection = (None, None, None)
    rate_iops: NumbersByDirection = (None, None, None)
    rate_iops_min: NumbersByDirection = (None, None, None)
    rate_process: Literal["linear", "poisson", "uniform", "spike"] | None = None
    rate_cycle_ns: int = 1_000_000_000
    """What a minimum is held over."""
    rate_profile: tuple[tuple[int, float], ...] = ()
    """Time since the clone's start in ns and share of its rate; straight lines between."""
    thinktime_ns: int | None = None
    thinktime_spin_ns: int | None = None
    thinktime_blocks: int | None = None
    thinktime_iotime_ns: int | None = None
    """Pause after so long, not after so many I/Os."""
    thinktime_blocks_type: Literal["complete", "issue"] | None = None
    flow: int | None = None
    flow_id: int | None = None
    flow_sleep_ns: int | None = None
    flow_ahead: int | None = None
    """I/Os it may be ahead of its share, at most 1/64 of its own; none: shares are exact."""
