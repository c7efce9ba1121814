"""Totals of a run's lines: operations, rates and latencies over the measured time.

Knows sums, rates and their errors. The measured time of a line is the time in which at least
one of its streams ran and was past its ramp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.asked import asked, is_asked
from loadstone.analysis.estimate import Estimate, ratio
from loadstone.bundle.layout import LATENCIES, OPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.analysis.histogram import Histogram
    from loadstone.analysis.measurement import By, Line, Measurement

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True, slots=True)
class Latency:
    """One kind of latency of `count` I/Os, in nanoseconds. Minimum and maximum are exact."""

    count: int
    mean: Estimate
    stddev: float
    min_ns: int
    max_ns: int
    histogram: Histogram

    def percentile(self, percent: float) -> int | None:
        """Return the percentile, `None` with too few samples; never beyond the exact extremes."""
        value = self.histogram.percentile(percent)
        return None if value is None else min(max(value, self.min_ns), self.max_ns)


@dataclass(frozen=True, slots=True)
class Stats:
    """One operation (or reads, writes and trims together) of one line.

    `errors` are I/Os that failed and are not in `operations`; `shorts` are. `latencies` has
    the kinds that were measured. Rates are `None` when there was no measured time.
    """

    operations: int
    bytes: int
    errors: int
    shorts: int
    iops: Estimate | None
    bandwidth: Estimate | None
    latencies: dict[str, Latency]


@dataclass(frozen=True, slots=True)
class Total:
    """One line: what was asked for together, and each operation that happened, by name.

    `asked`: those of `ops` that are in `data`; syncs never are (`analysis.asked`).
    """

    line: Line
    measured_ns: int
    data: Stats | None
    ops: dict[str, Stats]
    asked: tuple[str, ...]


def totals(measurement: Measurement, by: By) -> list[Total]:
    """Return the totals of every line of a grouping, in the Plan's order.

    A line without a single measured interval has `data` `None` and no `ops`.
    """
    rows = measurement.rows(by)
    if rows["ramp"].any():
        rows = rows.filter(~pl.col("ramp"))
    intervals, extremes = _per_interval(rows), _extremes(rows)
    of_asked = rows.filter(is_asked(measurement.plan))
    asked_extremes = _extremes(of_asked) if measurement.plan.trees else extremes
    histograms = {latency: _histograms(measurement, by, latency) for latency in LATENCIES}
    parts: dict[int, dict[int, pl.DataFrame]] = {}
    for key, part in intervals.partition_by("key", "op", as_dict=True, maintain_order=True).items():
        parts.setdefault(int(str(key[0])), {})[int(str(key[1]))] = part
    made: list[Total] = []
    for line in measurement.lines(by):
        mine = parts.get(line.key, {})
        found: dict[int, Stats] = {}
        for op, part in mine.items():
            pair = (line.key, op)
            known = {kind: counts[pair] for kind, counts in histograms.items() if pair in counts}
            found[op] = _stats(measurement, line, part, known, extremes[pair])
        ops: dict[str, Stats] = {
            OPS[op]: stats for op, stats in found.items() if stats.operations + stats.errors
        }
        counted = of_asked.filter(pl.col("key") == line.key)
        moving = [int(op) for op in counted["op"].unique().sort()]
        alone = len(moving) == 1 and not measurement.plan.trees
        data = found[moving[0]] if alone else None
        if moving and not alone:
            together = _per_interval(counted, op=False)
            wanted = asked(measurement.plan, line.cells)
            added = {kind: _added(measurement, kind, wanted) for kind in LATENCIES}
            known = {kind: histogram for kind, histogram in added.items() if histogram is not None}
            of_all = _merged([asked_extremes[line.key, op] for op in moving])
            data = _stats(measurement, line, together, known, of_all)
        names = tuple(name for name in ops if OPS.index(name) in moving)
        made.append(Total(line, measurement.measured_ns(line), data, ops, names))
    return made


def _per_interval(rows: pl.DataFrame, *, op: bool = True) -> pl.DataFrame:
    """One row per (key, op, interval), or per (key, interval), in this order."""
    sums = ["ops", "bytes", "errors", "shorts"]
    for latency in LATENCIES:
        sums += [f"{latency}_sum_ns", f"{latency}_samples"]
    keys = ["key", "op", "interval"] if op else ["key", "interval"]
    kept = [pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("stage").min(), pl.col(sums).sum()]
    return rows.group_by(keys).agg(kept).sort(keys).with_columns(own_start(keys[:-1]))


def own_start(keys: list[str]) -> pl.Expr:
    """Return where an interval begins that no interval before it has counted.

    A row of a worker that a slow system call kept from its cut reaches back over cuts that other
    workers have made, and no second may count twice.
    """
    before = pl.col("end_ns").cum_max().shift(1).over(keys)
    return pl.min_horizontal(pl.max_horizontal("start_ns", before), "end_ns").alias("start_ns")


_Extremes = dict[str, tuple[float, int | None, int]]
"""By latency: sum of squares, minimum, maximum."""


def _extremes(rows: pl.DataFrame) -> dict[tuple[int, int], _Extremes]:
    wanted = [
        one
        for latency in LATENCIES
        for one in (
            pl.col(f"{latency}_sumsq_ns2").sum(),
            # Not every I/O has every latency: only those of paced streams have waited.
            pl.col(f"{latency}_min_ns").filter(pl.col(f"{latency}_samples") > 0).min(),
            pl.col(f"{latency}_max_ns").max(),
        )
    ]
    found: dict[tuple[int, int], _Extremes] = {}
    for key, op, *values in rows.group_by("key", "op").agg(wanted).iter_rows():
        found[key, op] = {latency: tuple(values[3 * at : 3 * at + 3]) for at, latency in enumerate(LATENCIES)}
    return found


def _merged(parts: list[_Extremes]) -> _Extremes:
    merged: _Extremes = {}
    for latency in LATENCIES:
        squares, lows, highs = zip(*(part[latency] for part in parts), strict=True)
        merged[latency] = (
            sum(squares),
            min((low for low in lows if low is not None), default=None),
            max(highs),
        )
    return merged


def _added(measurement: Measurement, latency: str, wanted: dict[int, frozenset[int]]) -> Histogram | None:
    """Return the latencies of what counts of some cells; None without samples."""
    counts = measurement.histograms(latency)
    known = [counts[cell, op] for cell, ops in wanted.items() for op in sorted(ops) if (cell, op) in counts]
    return sum(known[1:], known[0]) if known else None


def _histograms(measurement: Measurement, by: By, latency: str) -> dict[tuple[int, int], Histogram]:
    """Histogram of each (key, op); without entry when there are no samples."""
    key_of = {cell: line.key for line in measurement.lines(by) for cell in line.cells}
    found: dict[tuple[int, int], Histogram] = {}
    for (cell, op), histogram in measurement.histograms(latency).items():
        if cell in key_of:
            pair = (key_of[cell], op)
            found[pair] = found[pair] + histogram if pair in found else histogram
    return found


def _stats(
    measurement: Measurement,
    line: Line,
    part: pl.DataFrame,
    histograms: dict[str, Histogram],
    extremes: _Extremes,
) -> Stats:
    starts, ends, strata = (
        part[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns", "stage")
    )
    seconds = measurement.covered_ns(line, starts, ends) / 1e9
    ops, moved = (part[name].to_numpy().astype(np.float64) for name in ("ops", "bytes"))
    latencies = {
        kind: _latency(part, kind, histogram, strata, extremes[kind])
        for kind, histogram in histograms.items()
    }
    return Stats(
        operations=int(part["ops"].sum()),
        bytes=int(part["bytes"].sum()),
        errors=int(part["errors"].sum()),
        shorts=int(part["shorts"].sum()),
        iops=ratio(ops, seconds, strata, "1/s"),
        bandwidth=ratio(moved, seconds, strata, "B/s"),
        latencies=latencies,
    )


def _latency(
    part: pl.DataFrame,
    kind: str,
    histogram: Histogram,
    strata: NDArray[np.int64],
    extremes: tuple[float, int | None, int],
) -> Latency:
    count = histogram.count
    sums, samples = part[f"{kind}_sum_ns"].to_numpy(), part[f"{kind}_samples"].to_numpy().astype(np.float64)
    mean = ratio(sums, samples, strata, "ns") or Estimate(0.0, None, 0, "ns")
    squares, low, high = extremes
    variance = max(0.0, squares - count * mean.value**2) / max(1, count - 1)
    return Latency(
        count=count,
        mean=mean,
        stddev=float(np.sqrt(variance)),
        min_ns=low or 0,
        max_ns=high,
        histogram=histogram,
    )
