"""Simulated devices in the Plan.

Mirrors `crates/engine/src/plan/sim.rs`, as `model.py` mirrors the rest.
"""

from __future__ import annotations

from enum import StrEnum

from loadstone.plan.base import U32, U64, Part


class ServiceTime(StrEnum):
    """Distribution of simulated service times."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"


class SimFaults(Part):
    """How a simulated device damages data: shares of its writes or reads in parts per million."""

    lost_ppm: U32
    torn_ppm: U32
    misdirected_ppm: U32
    stale_ppm: U32
    flip_ppm: U32
    zero_ppm: U32
    foreign_ppm: U32


class SimDevice(Part):
    """A seeded model of a device on a virtual clock."""

    seed: U64
    servers: U32
    read_ns: U64
    write_ns: U64
    service: ServiceTime
    stall_every_ns: U64
    stall_ns: U64
    error_ppm: U32
    short_ppm: U32
    hang_ppm: U32
    faults: SimFaults | None = None
    """The device keeps what is written, and damages it; `None`: it touches no data."""
