"""CPU time per I/O of the load generator, from its own account of the whole process.

Knows the engine's `tick` and `end` events: user and system time since the run's origin, with
the kernel's workers for io_uring in it. Threads are shared between jobs, so what is known is
the time of a stage; jobs of one stage have the same figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.aggregate import COUNTS, columns_added_up
from loadstone.analysis.estimate import ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.measurement import Measurement


SPUN: Final = "engine.spun_ns"
OF_INTERVALS: Final = ("stage", "interval", "start_ns", "end_ns", *COUNTS)


@dataclass(frozen=True, slots=True)
class EngineCpu:
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


def of_stages(measurement: Measurement, stages: Iterable[int]) -> EngineCpu | None:
    """Return the engine's CPU time in these stages; `None` when it told none."""
    chosen = set(stages)
    cpu_times = _told(measurement)
    rows = measurement.samples
    if cpu_times is None or rows.height == 0:
        return None
    times, user, system = cpu_times
    everything = chosen >= set(rows["stage"].unique())
    rows = rows.filter(rows["stage"].is_in(chosen))
    if everything:
        spans = [(0.0, float(times[-1]))]
    else:
        parts = rows.partition_by("stage")
        spans = [(float(str(p["start_ns"].min())), float(str(p["end_ns"].max()))) for p in parts]
    used = [
        sum(float(np.interp(end, times, one) - np.interp(start, times, one)) for start, end in spans)
        for one in (user, system)
    ]
    return EngineCpu(round(used[0]), round(used[1]), int((rows["ops"] + rows["errors"]).sum()))


def per_interval(measurement: Measurement, stages: Sequence[int]) -> tuple[Estimate | None, Estimate | None]:
    """Return user and system time per I/O with their errors, of some stages.

    From the engine's account at each tick, against the I/Os of all jobs until then, ramps left out.
    """
    cpu_times = _told(measurement)
    rows = measurement.samples
    counted = np.isin(rows["stage"].to_numpy(), stages) & ~rows["ramp"].to_numpy()
    if cpu_times is None or not counted.any():
        return None, None
    times, user, system = cpu_times
    columns = {name: rows[name].to_numpy()[counted] for name in OF_INTERVALS}
    # Late rows of an interval come in a tick of their own: an interval is what its bounds say.
    sums = columns_added_up(columns, ("stage",), over="interval")
    starts, ends = (sums[name].astype(np.float64) for name in ("start_ns", "end_ns"))
    done = (sums["ops"] + sums["errors"]).astype(np.float64)
    strata = sums["stage"].astype(np.int64)
    used = [np.interp(ends, times, one) - np.interp(starts, times, one) for one in (user, system)]
    return ratio(used[0], done, strata, "ns"), ratio(used[1], done, strata, "ns")


def with_spun(measurement: Measurement, host: pl.DataFrame) -> pl.DataFrame:
    """Return the monitors' rows with `engine.spun_ns`: CPU time in which workers looked for completions.

    Of this time the kernel's counters cannot tell: a worker that looks is as busy as one with work.
    """
    known = sorted(
        (int(event["t_ns"]), int(event["spun_ns"]))
        for event in measurement.bundle.events
        if event.get("type") in {"tick", "end"} and {"t_ns", "spun_ns"} <= event.keys()
    )
    if not known or not known[-1][1] or host.height == 0:
        return host
    times, spun = (np.array([0, *column], np.float64) for column in zip(*known, strict=True))
    ends = host["t_ns"].to_numpy().astype(np.float64)
    starts = ends - host["dt_ns"].to_numpy().astype(np.float64)
    in_row = np.interp(ends, times, spun) - np.interp(starts, times, spun)
    return host.with_columns(pl.Series(SPUN, in_row))


def spun_ns(measurement: Measurement) -> int:
    """Return the CPU time in which all workers together looked for completions instead of sleeping."""
    return int((measurement.bundle.event("end") or {}).get("spun_ns", 0))


def _told(measurement: Measurement) -> tuple[NDArray[np.float64], ...] | None:
    """Return times, user and system time as the engine told them, from 0 on; None when it told none."""
    known = [
        (int(event["t_ns"]), int(event["cpu_user_ns"]), int(event["cpu_system_ns"]))
        for event in measurement.bundle.events
        if event.get("type") in {"tick", "end"} and {"t_ns", "cpu_user_ns", "cpu_system_ns"} <= event.keys()
    ]
    if not known:
        return None
    return tuple(np.array([0, *column], np.float64) for column in zip(*sorted(known), strict=True))
