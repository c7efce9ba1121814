"""What measuring cost, and how near the load generator was to its own limit.

Knows the calibration and the monitors' account in a run's events. A stage that does more than
half of what the engine does without any device measures the engine, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from loadstone.analysis.measurement import Measurement
    from loadstone.analysis.totals import Total

NEAR: Final = 0.5
"""Share of the ceiling from which on a result is also one of the generator."""


@dataclass(frozen=True, slots=True)
class StageHeadroom:
    """I/Os per second of a stage, without a device and as measured."""

    stage: int
    ceiling_iops: float
    iops: float | None

    @property
    def share(self) -> float | None:
        """Part of the ceiling that was reached."""
        return None if self.iops is None else self.iops / self.ceiling_iops


@dataclass(frozen=True, slots=True)
class ToolCost:
    """The tool's own cost. Times are per I/O of the calibration; `None` is not known."""

    stages: list[StageHeadroom]
    user_ns_per_io_null: float | None
    system_ns_per_io_null: float | None
    monitor_cpu_share: float | None
    monitors: dict[str, float]
    """Share of one CPU that each of them took for reading, dearest first."""
    skipped: str | None

    @property
    def nearest(self) -> StageHeadroom | None:
        """The stage that came nearest to its ceiling."""
        known = [stage for stage in self.stages if stage.share is not None]
        return max(known, key=lambda stage: stage.share or 0.0, default=None)


def tool(measurement: Measurement, stages: list[Total]) -> ToolCost:
    """Return the cost of a run; `stages` are its totals by stage."""
    calibration: dict[str, Any] = measurement.bundle.event("calibration") or {"skipped": "none was made"}
    ops = int(calibration.get("ops") or 0)
    reached = {int(total.line.name.removeprefix("stage ")): total for total in stages}
    headrooms = [
        StageHeadroom(int(one["stage"]), float(one["ceiling_iops"]), _iops(reached.get(int(one["stage"]))))
        for one in calibration.get("stages", ())
    ]
    disturbed = [stage for stage in headrooms if (stage.share or 0.0) > 1]
    skipped = calibration.get("skipped") or (
        "other work disturbed it: the run did more" if disturbed else None
    )
    return ToolCost(
        stages=[stage for stage in headrooms if stage not in disturbed],
        user_ns_per_io_null=calibration["cpu_user_ns"] / ops if ops else None,
        system_ns_per_io_null=calibration["cpu_system_ns"] / ops if ops else None,
        monitor_cpu_share=_monitors(measurement),
        monitors=_by_monitor(measurement),
        skipped=skipped,
    )


def _iops(total: Total | None) -> float | None:
    if total is None or total.data is None or total.data.iops is None:
        return None
    return total.data.iops.value


def _monitors(measurement: Measurement) -> float | None:
    cost = measurement.bundle.event("monitor_cost")
    if cost is None or not measurement.ended_ns:
        return None
    return float(cost["cpu_ns"]) / measurement.ended_ns


def _by_monitor(measurement: Measurement) -> dict[str, float]:
    cost = measurement.bundle.event("monitor_cost") or {}
    by_collector: dict[str, int] = cost.get("by_collector", {}) if measurement.ended_ns else {}
    shares = {name: cpu_ns / measurement.ended_ns for name, cpu_ns in by_collector.items()}
    return dict(sorted(shares.items(), key=lambda one: -one[1]))
