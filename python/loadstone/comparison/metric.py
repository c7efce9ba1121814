"""The quantities that results are compared by, and which way each is better.

Knows names and orientation. Knows no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Quantity = Literal["count", "bytes_per_s", "ns", "errors"]
Judgement = Literal["better", "worse", "same", "unrepeated", "unknown"]
"""*Unrepeated*: more than within the runs, but of single ones. Only repeats tell what those are worth."""

PERCENTILES: Final = (50.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity of a load. `more_is_better` is its orientation."""

    name: str
    quantity: Quantity
    more_is_better: bool


IOPS: Final = Metric("IOPS", "count", more_is_better=True)
BANDWIDTH: Final = Metric("bandwidth", "bytes_per_s", more_is_better=True)
MEAN: Final = Metric("latency mean", "ns", more_is_better=False)
AT_PERCENT: Final = {
    percent: Metric(f"latency p{percent:g}", "ns", more_is_better=False) for percent in PERCENTILES
}
P99: Final = AT_PERCENT[99.0]
CLAT_AT_PERCENT: Final = {
    percent: Metric(f"clat p{percent:g}", "ns", more_is_better=False) for percent in PERCENTILES
}
"""Of the time after submission alone, as fio prints them: a wait in submission is in `lat` only."""
LAT_OF_CLAT: Final = {CLAT_AT_PERCENT[percent]: AT_PERCENT[percent] for percent in PERCENTILES}
CLAT_P99: Final = CLAT_AT_PERCENT[99.0]
FAILED: Final = Metric("failed I/Os", "errors", more_is_better=False)

METRICS: Final = (
    IOPS,
    BANDWIDTH,
    MEAN,
    *AT_PERCENT.values(),
    *CLAT_AT_PERCENT.values(),
    Metric("CPU user per I/O", "ns", more_is_better=False),
    Metric("CPU system per I/O", "ns", more_is_better=False),
    FAILED,
)
"""Of a job and operation, in the order of the table."""
