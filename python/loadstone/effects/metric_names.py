"""How metrics and their values are written.

Knows the unit at the end of a metric's name. Knows no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS: Final = {
    "iops": "IOPS",
    "bandwidth_bytes_per_s": "bandwidth",
    "lat_mean_ns": "latency mean",
    "lat_p50_ns": "latency p50",
    "lat_p99_ns": "latency p99",
    "lat_p999_ns": "latency p99.9",
    "cpu_ns_per_io": "CPU per I/O",
}


def name_of(metric: str) -> str:
    """Write a metric's name."""
    return METRICS.get(metric, metric)


def value(number: float | None, metric: str) -> str:
    """Write a value in the unit of its metric."""
    if number is None:
        return units.NONE
    rates: dict[str, Callable[[float], str]] = {
        "iops": units.count,
        "bandwidth_bytes_per_s": units.bandwidth,
    }
    return rates.get(metric, units.duration)(number)
