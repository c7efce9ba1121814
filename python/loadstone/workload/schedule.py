"""When a job runs, beside which others, and when it ends. Knows no clock."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel
from loadstone.workload.addresses import NumbersByDirection
from loadstone.workload.placement import Amount


class JobSchedule(FrozenModel):
    """How many clones, and when they run beside other jobs."""

    numjobs: int | None = None
    stonewall: bool | None = None
    new_group: bool | None = None
    group_reporting: bool | None = None
    exitall: bool | None = None
    exitall_on_error: bool | None = None
    exit_what: Literal["group", "stonewall", "all"] | None = None
    start_delay_ns: tuple[int, int] | None = None
    """Smallest and largest: one of them is drawn."""
    wait_for: str | None = None
    """Name of the job that has to end first."""
    thread_of: str | None = None
    """Jobs with the same name here are served by one thread, one I/O at a time in all."""


class JobLimits(FrozenModel):
    """What is left out at the start, and when it ends."""

    ramp_ns: int | None = None
    runtime_ns: int | None = None
    time_based: bool | None = None
    io_size: Amount | None = None
    number_ios: int | None = None
    loops: int | None = None
    max_latency_ns: NumbersByDirection = (None, None, None)
