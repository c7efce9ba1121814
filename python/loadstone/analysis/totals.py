"""Totals of a run's lines: operations, rates and latencies over the measured time.

Knows sums, rates and their errors. The measured time of a line is the time in which at least
one of its streams ran and was past its ramp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from loadstone.analysis.aggregate import added_up, columns_added_up
from loadstone.analysis.estimate import ratios
from loadstone.analysis.latency import Latency, summed
from loadstone.analysis.requested_ops import MOVES_DATA, is_requested, requested
from loadstone.bundle.layout import LATENCIES, OPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.analysis.aggregate import Columns, Reduction
    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.histogram import Histogram
    from loadstone.analysis.measurement import By, MeasuredLine, Measurement
    from loadstone.plan.model import Plan

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
OF_LATENCIES: Final = tuple(f"{kind}_{name}" for kind in LATENCIES for name in ("sum_ns", "samples"))
OF_INTERVALS: Final[Mapping[str, Reduction]] = {"stage": "min"}


@dataclass(frozen=True, slots=True)
class OpTotals:
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

    `requested`: those of `ops` that are in `data`; syncs never are (`analysis.requested_ops`).
    """

    line: MeasuredLine
    measured_ns: int
    data: OpTotals | None
    ops: dict[str, OpTotals]
    requested: tuple[str, ...]


def totals(measurement: Measurement, by: By) -> list[Total]:
    """Return the totals of every line of a grouping, in the Plan's order.

    A line without a single measured interval has `data` `None` and no `ops`.
    """
    if not measurement.lines(by):
        return []
    rows = measurement.rows(by)
    if rows["ramp"].any():
        rows = rows.filter(~pl.col("ramp"))
    # An hour of many jobs has half a million rows: they are sorted once, and the rest is sums of sums.
    intervals = columns_added_up(rows, ("key", "op"), LATENCIES, more=OF_INTERVALS, over="interval")
    sums = added_up(intervals, ("key", "op"), LATENCIES)
    whole = {(row["key"], row["op"]): row for row in sums.iter_rows(named=True)}
    requested_rows = is_requested(measurement.plan)
    moved: dict[int, list[int]] = {}
    for key, op in _requested_pairs(measurement.plan, rows, list(whole)):
        moved.setdefault(key, []).append(op)
    histograms = {latency: _histograms(measurement, by, latency) for latency in LATENCIES}
    columns = _columns(intervals)
    parts: dict[int, dict[int, Columns]] = {}
    for (key, op), first, height in _runs(intervals):
        part = {name: column[first : first + height] for name, column in columns.items()}
        parts.setdefault(key, {})[op] = part
    all_totals: list[Total] = []
    for line in measurement.lines(by):
        op_intervals = parts.get(line.key, {})
        op_totals: dict[int, OpTotals] = {}
        for op, part in op_intervals.items():
            pair = (line.key, op)
            known = {kind: counts[pair] for kind, counts in histograms.items() if pair in counts}
            op_totals[op] = _stats(measurement, line, part, known, whole[pair])
        ops: dict[str, OpTotals] = {
            OPS[op]: stats for op, stats in op_totals.items() if stats.operations + stats.errors
        }
        moving = moved.get(line.key, [])
        alone = len(moving) == 1 and not measurement.plan.trees
        data = op_totals[moving[0]] if alone else None
        if moving and not alone:
            counted = rows.filter(requested_rows & (pl.col("key") == line.key))
            together = columns_added_up(counted, ("key",), LATENCIES, more=OF_INTERVALS, over="interval")
            wanted = requested(measurement.plan, line.cells)
            added = {kind: _added(measurement, kind, wanted) for kind in LATENCIES}
            known = {kind: histogram for kind, histogram in added.items() if histogram is not None}
            of_all = added_up(together, ("key",), LATENCIES).row(0, named=True)
            data = _stats(measurement, line, _columns(together), known, of_all)
        names = tuple(name for name in ops if OPS.index(name) in moving)
        all_totals.append(Total(line, measurement.measured_ns(line), data, ops, names))
    return all_totals


def _requested_pairs(plan: Plan, rows: pl.DataFrame, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return those (key, op) of some, ascending, of which a row counts."""
    if not plan.trees:
        return [(key, op) for key, op in pairs if op in MOVES_DATA]
    # Lazily: rows have many columns, and two are wanted.
    counted = rows.lazy().filter(is_requested(plan)).select("key", "op").unique().sort("key", "op")
    return list(counted.collect(engine="in-memory").iter_rows())


def _columns(intervals: Columns) -> Columns:
    """Return what the errors of means and rates are made of."""
    whole = ("start_ns", "end_ns", "stage")
    return {
        name: intervals[name].astype(np.int64 if name in whole else np.float64)
        for name in (*whole, "ops", "bytes", *OF_LATENCIES)
    }


def _runs(intervals: Columns) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Yield (key, op), the first row and the number of rows of each, of rows in their order."""
    keys, ops = (intervals[name].astype(np.int64) for name in ("key", "op"))
    if not len(keys):
        return
    begins = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]) | (ops[1:] != ops[:-1])])
    heights = np.diff(np.r_[begins, len(keys)])
    for first, height in zip(begins.tolist(), heights.tolist(), strict=True):
        yield (int(keys[first]), int(ops[first])), first, height


def _added(measurement: Measurement, latency: str, wanted: dict[int, frozenset[int]]) -> Histogram | None:
    """Return the latencies of what counts of some cells; None without samples."""
    counts = measurement.histograms(latency)
    known = [counts[cell, op] for cell, ops in wanted.items() for op in sorted(ops) if (cell, op) in counts]
    return sum(known[1:], known[0]) if known else None


def _histograms(measurement: Measurement, by: By, latency: str) -> dict[tuple[int, int], Histogram]:
    """Histogram of each (key, op); without entry when there are no samples."""
    key_of = {cell: line.key for line in measurement.lines(by) for cell in line.cells}
    histograms: dict[tuple[int, int], Histogram] = {}
    for (cell, op), histogram in measurement.histograms(latency).items():
        if cell in key_of:
            pair = (key_of[cell], op)
            histograms[pair] = histograms[pair] + histogram if pair in histograms else histogram
    return histograms


def _stats(
    measurement: Measurement,
    line: MeasuredLine,
    part: Columns,
    histograms: dict[str, Histogram],
    whole: dict[str, Any],
) -> OpTotals:
    seconds = measurement.covered_ns(line, part["start_ns"], part["end_ns"]) / 1e9
    means = [(part[f"{kind}_sum_ns"], part[f"{kind}_samples"], "ns") for kind in histograms]
    rates = [(part["ops"], seconds, "1/s"), (part["bytes"], seconds, "B/s")]
    iops, bandwidth, *mean_of = ratios([*rates, *means], part["stage"])
    return OpTotals(
        operations=int(whole["ops"]),
        bytes=int(whole["bytes"]),
        errors=int(whole["errors"]),
        shorts=int(whole["shorts"]),
        iops=iops,
        bandwidth=bandwidth,
        latencies={
            kind: summed(whole, kind, histogram, mean)
            for (kind, histogram), mean in zip(histograms.items(), mean_of, strict=True)
        },
    )
