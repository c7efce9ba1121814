"""Totals of a run's lines: operations, rates and latencies over the measured time.

Knows sums, rates and their errors. The measured time of a line is the time in which at least
one of its streams ran and was past its ramp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.estimate import Estimate, ratio
from loadstone.bundle.layout import LATENCIES, OPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.analysis.histogram import Histogram
    from loadstone.analysis.measurement import By, Line, Measurement

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
DATA: Final = 255
"""Stands in the `op` column for reads, writes and trims together. Syncs move no data and are apart."""
SYNC: Final = OPS.index("sync")


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
    """One line: reads, writes and trims together, and each operation that happened, by name."""

    line: Line
    measured_ns: int
    data: Stats | None
    ops: dict[str, Stats]


def totals(measurement: Measurement, by: By) -> list[Total]:
    """Return the totals of every line of a grouping, in the Plan's order.

    A line without a single measured interval has `data` `None` and no `ops`.
    """
    rows = measurement.rows(by).filter(~pl.col("ramp"))
    intervals = _per_interval(rows)
    histograms = {latency: _histograms(measurement, by, latency) for latency in LATENCIES}
    parts = {
        (int(str(key[0])), int(str(key[1]))): part
        for key, part in intervals.partition_by("key", "op", as_dict=True, maintain_order=True).items()
    }
    made: list[Total] = []
    for line in measurement.lines(by):
        found: dict[int, Stats] = {}
        for op in (DATA, *range(len(OPS))):
            part = parts.get((line.key, op))
            if part is not None and (op == DATA or int((part["ops"] + part["errors"]).sum())):
                mine = {kind: counts.get((line.key, op)) for kind, counts in histograms.items()}
                found[op] = _stats(measurement, line, part, mine)
        ops = {OPS[op]: stats for op, stats in found.items() if op != DATA}
        made.append(Total(line, measurement.measured_ns(line), found.get(DATA), ops))
    return made


def _per_interval(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per (key, op, interval), and per (key, `DATA`, interval); sums and extremes."""
    sums = ["ops", "bytes", "errors", "shorts"]
    for latency in LATENCIES:
        sums += [f"{latency}_sum_ns", f"{latency}_sumsq_ns2"]
    extremes = [
        extreme
        for latency in LATENCIES
        for extreme in (
            # Not every I/O has every latency: only those of paced streams have waited.
            pl.col(f"{latency}_count").list.sum().cast(pl.Int64).sum().alias(f"{latency}_samples"),
            pl.col(f"{latency}_min_ns").filter(pl.col(f"{latency}_count").list.len() > 0).min(),
            pl.col(f"{latency}_max_ns").max(),
        )
    ]
    both = pl.concat(
        [rows, rows.filter(pl.col("op") != SYNC).with_columns(pl.lit(DATA, pl.UInt8).alias("op"))]
    )
    return (
        both.group_by("key", "op", "interval")
        .agg(
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pl.col("stage").min(),
            pl.col(sums).sum(),
            *extremes,
        )
        .sort("key", "op", "interval")
    )


def _histograms(measurement: Measurement, by: By, latency: str) -> dict[tuple[int, int], Histogram]:
    """Histogram of each (key, op), and of (key, `DATA`); without entry when there are no samples."""
    key_of = {cell: line.key for line in measurement.lines(by) for cell in line.cells}
    found: dict[tuple[int, int], Histogram] = {}
    for (cell, op), histogram in measurement.histograms(latency).items():
        if cell not in key_of:
            continue
        for kind in (op,) if op == SYNC else (op, DATA):
            before = found.get((key_of[cell], kind))
            found[key_of[cell], kind] = histogram if before is None else before + histogram
    return found


def _stats(
    measurement: Measurement, line: Line, part: pl.DataFrame, histograms: dict[str, Histogram | None]
) -> Stats:
    starts, ends, strata = (
        part[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns", "stage")
    )
    seconds = measurement.covered_ns(line, starts, ends) / 1e9
    ops, moved = (part[name].to_numpy().astype(np.float64) for name in ("ops", "bytes"))
    latencies: dict[str, Latency] = {}
    for kind, histogram in histograms.items():
        if histogram is not None:
            latencies[kind] = _latency(part, kind, histogram, strata)
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
) -> Latency:
    count = histogram.count
    sums, samples = part[f"{kind}_sum_ns"].to_numpy(), part[f"{kind}_samples"].to_numpy().astype(np.float64)
    mean = ratio(sums, samples, strata, "ns") or Estimate(0.0, None, 0, "ns")
    squares = float(part[f"{kind}_sumsq_ns2"].sum())
    variance = max(0.0, squares - count * mean.value**2) / max(1, count - 1)
    low, high = part[f"{kind}_min_ns"].min(), part[f"{kind}_max_ns"].max()
    return Latency(
        count=count,
        mean=mean,
        stddev=float(np.sqrt(variance)),
        min_ns=int(low) if isinstance(low, int) else 0,
        max_ns=int(high) if isinstance(high, int) else 0,
        histogram=histogram,
    )
