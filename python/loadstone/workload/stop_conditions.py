"""What is measured while a job runs and decides how it goes on. Measures nothing."""

from __future__ import annotations

from typing import Literal

from loadstone.frozen_model import FrozenModel


class SteadyRule(FrozenModel):
    """What has to be steady, and how much."""

    metric: Literal["iops", "bw", "lat"]
    slope: bool
    limit: float
    """Percent of the mean, or I/Os or bytes per second, or nanoseconds."""
    percent: bool


class DepthTarget(FrozenModel):
    """A latency to keep by searching for the depth."""

    latency_target_ns: int | None = None
    latency_window_ns: int | None = None
    latency_percentile: float | None = None
    latency_run: bool | None = None


class SteadyRequest(FrozenModel):
    """A state that ends the job when it is reached."""

    rule: SteadyRule | None = None
    duration_ns: int | None = None
    ramp_ns: int | None = None
    interval_ns: int | None = None
