"""What one arm measured: its rate with an error, its latencies, how even it was.

Knows the samples of a run and adds up one stage of it. Compares nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from loadstone.analysis.aggregate import added_up
from loadstone.analysis.estimate import ratio
from loadstone.analysis.latency import summed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from loadstone.analysis.latency import Latency
    from loadstone.plan.model import Plan

    Floats: TypeAlias = NDArray[np.float64]

MOVES: Final = 3
"""The first three operations move data: reads, writes, trims."""
COLUMNS: Final = (
    *("interval", "start_ns", "end_ns", "stage", "op", "ramp", "ops", "bytes", "errors", "shorts"),
    *("lat_sum_ns", "lat_sumsq_ns2", "lat_min_ns", "lat_max_ns"),
)
LEAST_OPS: Final = 5
MILLISECOND_NS: Final = 1_000_000
DIP_OPS: Final = 50
LEAST_MOMENTS: Final = 20
MOMENTS: Final = 40
"""A step is looked for among so many."""
LEAST_OF_LEVEL: Final = 3
"""Moments on each side of it."""
EXPLAINS: Final = 0.85
"""So much of what moments differ by is the step. Of noise alone the best split stayed below 0.79 in 4,000
draws of 20 moments, even and exponential. A straight ramp is 0.75."""
FALL: Final = 0.75
"""A smaller step is not one that a cache or an allowance leaves."""
LEAST_ERROR: Final = 0.005


@dataclass(frozen=True, slots=True)
class Fall:
    """One step down: the rates before and after it, and their errors as logarithms."""

    before: float
    after: float
    error_before: float
    error_after: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One stage. `rate` in I/Os per second with the error of its logarithm; latencies from the start."""

    rate: float
    log_error: float
    bytes_per_s: float
    latency: Latency
    seconds: float
    window_cv: float | None
    """Deviation of the rate of short windows over their mean; None: too few windows."""
    window_count: float
    """I/Os in such a window."""
    correlation: float
    """Of the rates of neighbouring windows."""
    quarters: tuple[float, float]
    """Rate in the first and the last quarter of the time."""
    fell: Fall | None
    """Where one step down is what its windows differ by."""
    written_bytes: int
    dips: float | None
    """Share of moments of at least 50 I/Os in which it did less than half of the usual; None: too few."""

    @property
    def count(self) -> int:
        """How many I/Os."""
        return self.latency.count or 0

    @property
    def mean_ns(self) -> float:
        """The mean of the latency."""
        return self.latency.mean_ns or 0.0

    @property
    def cv(self) -> float:
        """Deviation of the latency over its mean."""
        return self.latency.cv

    @property
    def max_ns(self) -> float:
        """The longest latency."""
        return float(self.latency.max_ns or 0)


def issuing_ns(plan: Plan, stage: int) -> int | None:
    """Return for how long a stage begins I/Os; None where the work ends it."""
    every = [one.limits for one in plan.streams if plan.workers[one.worker].stage == stage]
    if any(not one.runtime_ns for one in every):
        return None
    return max((one.start_delay_ns + one.ramp_ns + one.runtime_ns for one in every), default=None)


def of_stage(samples: pl.DataFrame, stage: int, begins_ns: int | None = None) -> Figures | None:
    """Add up one stage of a run; None when hardly anything completed."""
    return of_stages(samples, {stage: begins_ns}).get(stage)


def of_stages(samples: pl.DataFrame, begins_ns: Mapping[int, int | None]) -> dict[int, Figures]:
    """Add up stages of a run; those in which hardly anything completed are not there.

    `begins_ns`: for how long each began I/Os. Behind that it waited for what was in flight: of a deep queue
    that is a time of its own, in which less and less was done.
    """
    of_stage, began = pl.col("stage"), pl.col("start_ns").min().over("stage")
    until = {stage: None if ns is None else ns + MILLISECOND_NS for stage, ns in begins_ns.items()}
    until_ns = began + of_stage.replace_strict(until, return_dtype=pl.UInt64)
    moved = samples.lazy().filter(of_stage.is_in(list(begins_ns)) & (pl.col("op") < MOVES))
    counted = moved.with_columns(in_time=(pl.col("end_ns") <= until_ns).fill_null(value=True))
    counted = counted.filter(~pl.col("ramp"))
    little = pl.col("ops").filter("in_time").sum().over("stage") < LEAST_OPS
    rows = counted.filter(pl.col("in_time") | little).collect()
    windows = added_up(rows, ("stage",), over="interval")
    with_written = rows.with_columns(written=pl.col("bytes") * (pl.col("op") == 1))
    whole = added_up(with_written, ("stage",), ("lat",), "ops", more={"written": "sum"})
    lengths, ops = (windows[name].to_numpy().astype(np.float64) for name in ("length_ns", "ops"))
    stages = windows["stage"].to_numpy()
    stage_figures = {
        int(row["stage"]): _figures(row, ops[in_stage], lengths[in_stage] / 1e9)
        for row in whole.iter_rows(named=True)
        for in_stage in (stages == row["stage"],)
    }
    return {stage: figures for stage, figures in stage_figures.items() if figures is not None}


def _figures(whole: dict[str, Any], ops: Floats, lengths: Floats) -> Figures | None:
    """Return the figures of a stage from its sums, and its windows' operations and seconds."""
    latency = summed(whole, "lat")
    if (latency.count or 0) < LEAST_OPS:
        return None
    rate = ratio(ops, lengths, np.zeros(len(ops), np.int64), "1/s")
    seconds = float(lengths.sum())
    if rate is None or seconds <= 0:
        return None
    # A rate of few I/Os is known no better than their latencies let it be.
    least = max(latency.cv, 0.05) / math.sqrt(latency.count or 1)
    error = rate.error / rate.value if rate.error is not None and rate.value else least
    full = ops[lengths > 0.8 * lengths.max()]
    window_cv = float(full.std(ddof=1) / full.mean()) if len(full) >= 8 and full.mean() > 0 else None
    return Figures(
        rate=rate.value,
        log_error=max(error, 0.3 * least),
        bytes_per_s=whole["bytes"] / seconds,
        latency=latency,
        seconds=seconds,
        window_cv=window_cv,
        window_count=float(full.mean()) if len(full) else 0.0,
        correlation=_correlation(full),
        quarters=_quarters(ops, lengths),
        fell=fell(ops, lengths),
        written_bytes=int(whole["written"]),
        dips=dips(ops, lengths),
    )


def dips(ops: Floats, lengths: Floats) -> float | None:
    """Return the share of moments with less than half of the usual; `lengths` of samples in s."""
    if not ops.sum():
        return None
    rate = float(ops.sum() / lengths.sum())
    together = max(1, math.ceil(DIP_OPS / max(1e-9, rate * float(np.median(lengths)))))
    number = len(ops) // together
    if number < LEAST_MOMENTS:
        return None
    rates = ops[: number * together].reshape(number, together).sum(axis=1) / lengths[
        : number * together
    ].reshape(number, together).sum(axis=1)
    return (int((rates < np.median(rates) / 2).sum()) + 0.5) / number


def _correlation(rates: Floats) -> float:
    if len(rates) < 8 or rates.std() == 0:
        return 0.0
    return float(np.corrcoef(rates[:-1], rates[1:])[0, 1]) if rates[:-1].std() and rates[1:].std() else 0.0


def _quarters(ops: Floats, lengths: Floats) -> tuple[float, float]:
    part = max(1, len(ops) // 4)
    first = float(ops[:part].sum() / max(1e-9, lengths[:part].sum()))
    last = float(ops[-part:].sum() / max(1e-9, lengths[-part:].sum()))
    return first, last


def fell(ops: Floats, lengths: Floats) -> Fall | None:
    """Return the step down that explains nearly all of the differences; `lengths` of samples in s.

    In the spread of the whole it would hide itself: the error of a mean across it is as large as the step.
    """
    each = max(1, len(ops) // MOMENTS)
    number = len(ops) // each
    if number < LEAST_MOMENTS or not ops.sum():
        return None
    done, took = (one[: number * each].reshape(number, each).sum(axis=1) for one in (ops, lengths))
    rates = done / np.maximum(took, 1e-9)
    splits = range(LEAST_OF_LEVEL, number - LEAST_OF_LEVEL + 1)
    rests = [rates[:at].var() * at + rates[at:].var() * (number - at) for at in splits]
    at = splits[int(np.argmin(rests))]
    before, after = (float(done[part].sum() / took[part].sum()) for part in (slice(at), slice(at, None)))
    if min(rests) > (1 - EXPLAINS) * rates.var() * number or not 0 < after <= FALL * before:
        return None
    return Fall(before, after, _error(rates[:at]), _error(rates[at:]))


def _error(rates: Floats) -> float:
    """Return that of the logarithm of their mean."""
    return max(LEAST_ERROR, float(rates.std(ddof=1) / math.sqrt(len(rates)) / rates.mean()))


@dataclass(frozen=True, slots=True)
class Arm:
    """All turns of one arm together."""

    log_rate: float
    error: float
    count: int
    turns: tuple[Figures, ...]

    @property
    def mean_ns(self) -> float:
        """Mean latency."""
        return sum(one.mean_ns for one in self.turns) / len(self.turns)


def together(turns: Sequence[Figures], *, fills: bool = False) -> Arm:
    """Return an arm from its turns: their spread counts where it is larger than their own errors.

    `fills`: a turn begins with a queue that flushes do not fill yet. What it changed by from its beginning
    to its end tells how far it may still be from its rate.
    """
    logs = np.log([one.rate for one in turns])
    within = float(sum(one.log_error**2 for one in turns)) / len(turns) ** 2
    between = float(logs.var(ddof=1)) / len(turns) if len(turns) > 1 else 0.0
    error = math.sqrt(max(within, between))
    return Arm(
        log_rate=float(logs.mean()),
        error=math.hypot(error, unsettled(turns)) if fills else error,
        count=sum(one.count for one in turns),
        turns=tuple(turns),
    )


def unsettled(turns: Sequence[Figures]) -> float:
    """Return half of what turns changed by from their first quarter to their last, beyond chance."""
    known = [one for one in turns if min(one.quarters) > 0]
    if not known:
        return 0.0
    change = sum(math.log(one.quarters[1] / one.quarters[0]) for one in known) / len(known)
    # A quarter is known half as well as the whole.
    chance = math.sqrt(8 * sum(one.log_error**2 for one in known)) / len(known)
    return max(0.0, abs(change) - chance) / 2
