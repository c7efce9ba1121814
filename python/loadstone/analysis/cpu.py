"""CPU time per I/O of the load generator, from its own account of the whole process.

Knows the engine's `tick` and `end` events: user and system time since the run's origin, with
the kernel's workers for io_uring in it. Threads are shared between jobs, so what is known is
the time of a stage; jobs of one stage have the same figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.analysis.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU time of the engine over some stages, ramps included, and the I/Os it did in them."""

    user_ns: int
    system_ns: int
    ios: int

    @property
    def user_ns_per_io(self) -> float | None:
        """User time per I/O, `None` without I/Os."""
        return self.user_ns / self.ios if self.ios else None

    @property
    def system_ns_per_io(self) -> float | None:
        """System time per I/O, `None` without I/Os."""
        return self.system_ns / self.ios if self.ios else None


def of_stages(measurement: Measurement, stages: Iterable[int]) -> Cpu | None:
    """Return the engine's CPU time in these stages; `None` when it told none."""
    chosen = set(stages)
    known = [
        (int(event["t_ns"]), int(event["cpu_user_ns"]), int(event["cpu_system_ns"]))
        for event in measurement.bundle.events
        if event.get("type") in {"tick", "end"} and "cpu_user_ns" in event and "t_ns" in event
    ]
    rows = measurement.samples
    if not known or rows.height == 0:
        return None
    times, user, system = (np.array([0, *column], np.float64) for column in zip(*sorted(known), strict=True))
    everything = chosen >= set(rows["stage"].unique())
    rows = rows.filter(rows["stage"].is_in(chosen))
    if everything:
        spans = [(0.0, float(times[-1]))]
    else:
        parts = rows.partition_by("stage")
        spans = [(float(str(p["start_ns"].min())), float(str(p["end_ns"].max()))) for p in parts]
    used = [
        sum(float(np.interp(end, times, told) - np.interp(start, times, told)) for start, end in spans)
        for told in (user, system)
    ]
    return Cpu(round(used[0]), round(used[1]), int((rows["ops"] + rows["errors"]).sum()))
