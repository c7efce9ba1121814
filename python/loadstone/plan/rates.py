"""Time in the Plan: when I/Os and file operations should start.

Mirrors `crates/engine/src/plan/rate.rs`, as `model.py` mirrors the rest.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from loadstone.plan.base import F64, U32, U64, Part


class RateAmountOps(Part):
    """Operations per second."""

    unit: Literal["ops"] = "ops"
    per_second: F64


class RateAmountBytes(Part):
    """Bytes per second."""

    unit: Literal["bytes"] = "bytes"
    per_second: F64


RateAmount = Annotated[RateAmountOps | RateAmountBytes, Field(discriminator="unit")]


class RateProcess(StrEnum):
    """Spacing of arrivals."""

    LINEAR = "linear"
    POISSON = "poisson"
    UNIFORM = "uniform"
    """Gaps drawn evenly between nothing and twice their mean."""
    SPIKE = "spike"
    """All arrivals of a second at its beginning."""


class RatePoint(Part):
    """One point of a rate's profile: `share` of the amount at `at_ns` since the stream's start."""

    at_ns: U64
    share: F64


class Rate(Part):
    """An arrival rate."""

    amount: RateAmount
    process: RateProcess
    profile: tuple[RatePoint, ...]
    """Share of `amount` over time, straight lines between the points; empty: always all of it."""
    phase: F64
    """Part of a gap before the first of evenly spaced arrivals, so that clones take turns."""
    minimum: F64
    """Same unit as `amount`; 0: never checked."""
    min_window_ns: U64


class Think(Part):
    """Think time."""

    pause_ns: U64
    spin_ns: U64
    every_ios: U32
    count_issued: bool
    every_ns: U64 = 0
    """Pause after so long since the last pause; 0: after `every_ios`."""


class Pace(Part):
    """When I/Os should start."""

    read: Rate | None
    write: Rate | None
    trim: Rate | None
    think: Think | None
