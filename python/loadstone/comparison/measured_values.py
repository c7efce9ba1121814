"""What was measured, as values with errors: of a phase, and of each job and operation in it.

Knows how estimates of a run, and figures of another tool, become samples. Compares nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis import estimate
from loadstone.analysis.histogram import BUCKETS, MIN_BEYOND, Histogram, values_of
from loadstone.analysis.statistics import significance as statistics
from loadstone.analysis.statistics.significance import Sample
from loadstone.bundle.layout import OPS
from loadstone.comparison.metric import (
    AT_PERCENT,
    BANDWIDTH,
    CLAT_AT_PERCENT,
    FAILED,
    IOPS,
    MEAN,
    METRICS,
    PERCENTILES,
    Metric,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.latency import Latency
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import OpTotals, Total
    from loadstone.audit.case import Case, Figure, OpMeasurement, RateSpread

MOVING: Final = ("read", "write", "trim")
BINARY: Final = (1, 1 << 10, 1 << 20, 1 << 30)
SAME_WINDOW: Final = 0.02
"""A tool's mean and that of its intervals are this near each other where both are of one time."""

SAMPLES_AS_ONE: Final = 10.0
"""Of samples of which only the deviation is known: how they follow each other is not (`lab.comparisons`)."""
LEAST_SAMPLES: Final = 2 * SAMPLES_AS_ONE
CLOSED: Final = 0.1
"""Rate times mean latency is this near the depth where all I/Os were outstanding at all times."""


@dataclass(frozen=True, slots=True)
class TailSample(Sample):
    """A percentile of one run, with the histogram it was read from: without the buckets that are empty."""

    percent: float = 0.0
    counted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = field(
        default=None, compare=False, repr=False
    )


def of_all_ios(samples: Sequence[Sample]) -> float | None:
    """Return the percentile of all I/Os of several runs together; None where not all have a histogram."""
    tails = [one for one in samples if isinstance(one, TailSample)]
    counted = [one.counted for one in tails if one.counted is not None]
    if len(counted) < max(2, len(samples)):
        return None
    buckets, counts = (np.concatenate(part) for part in zip(*counted, strict=True))
    return Histogram.of(buckets, counts).percentile(tails[0].percent)


def rounding_error(values: Sequence[float], metric: Metric | None) -> float:
    """Return the standard error that printed figures have by the digits that they were printed with.

    A figure lies anywhere within a unit of its last digit: that of the one printed most finely, and no more
    than its second digit, as a figure may end with zeros. Bandwidth may be printed in KiB, MiB or GiB.
    Percentiles that a tool printed are limits of its buckets, as ours are.
    """
    units = BINARY if metric is not None and metric.quantity == "bytes_per_s" else (1,)
    last = max(unit * min(_last_digit(value / unit) for value in values) for unit in units)
    by_digits = last / math.sqrt(12)
    if metric is None or metric in (*AT_PERCENT.values(), *CLAT_AT_PERCENT.values()):
        return max(by_digits, statistics.BUCKET_ERROR * sum(values) / len(values))
    return by_digits


def _last_digit(value: float) -> float:
    """Return the unit of the last digit of a figure that was printed."""
    exponent = Decimal(f"{value:.10g}").normalize().as_tuple().exponent
    second = math.floor(math.log10(abs(value))) - 1 if value else 0
    return float(10.0 ** min(int(exponent), second))


Value = Sample | tuple[int, int]
"""Of failures (failed, all), of everything else the sample."""
OfJob = tuple[str, str, Metric]
Tails = dict[tuple[int, str], dict[float, float]]
"""By line and operation: the relative error of each percentile."""


def of_stage(total: Total, tails: Mapping[int, Mapping[float, float]]) -> dict[Metric, Value]:
    """Return what all jobs of a stage did together."""
    stats = total.data
    if stats is None or not stats.operations + stats.errors:
        return {}
    lat = stats.latencies.get("lat")
    values: dict[Metric, Value | None] = {
        IOPS: sample(stats.iops),
        BANDWIDTH: sample(stats.bandwidth) if stats.bytes else None,
        MEAN: sample(lat.mean if lat is not None else None),
        **_percentiles(lat, tails.get(total.line.key, {})),
        **_clat_percentiles(stats.latencies.get("clat")),
        FAILED: (stats.errors, stats.operations + stats.errors),
    }
    return {metric: value for metric, value in values.items() if value is not None}


def of_jobs(summary: Summary, total: Total, tails: Tails) -> dict[OfJob, Value]:
    """Return the values of each operation of a job."""
    values: dict[OfJob, Value] = {}
    for op, stats in total.ops.items():
        for metric, value in zip(METRICS, _values(summary, total, op, stats, tails), strict=True):
            if value is not None:
                values[total.line.name, op, metric] = value
    return values


def _values(summary: Summary, total: Total, op: str, stats: OpTotals, tails: Tails) -> list[Value | None]:
    lat = stats.latencies.get("lat")
    # Threads are shared by the operations of a job: their CPU is told once.
    first = next(iter(total.ops)) == op
    user, system = summary.cpu_per_interval(total.line) if first else (None, None)
    return [
        sample(stats.iops),
        sample(stats.bandwidth) if stats.bytes else None,
        sample(lat.mean if lat is not None else None),
        *_percentiles(lat, tails.get((total.line.key, op), {})).values(),
        *_clat_percentiles(stats.latencies.get("clat")).values(),
        sample(user),
        sample(system),
        (stats.errors, stats.operations + stats.errors),
    ]


def _percentiles(lat: Latency | None, errors: Mapping[float, float]) -> dict[Metric, Value | None]:
    values: dict[Metric, Value | None] = {}
    counted = None if lat is None else _counted(lat)
    mean = None if lat is None else sample(lat.mean)
    percentiles = {} if lat is None else lat.percentiles(AT_PERCENT)
    for percent, metric in AT_PERCENT.items():
        value, error = percentiles.get(percent), errors.get(percent)
        known = None if error is None or value is None else error * value
        values[metric] = None
        if lat is not None and value is not None and mean is not None:
            # The same intervals: what they hide of the mean's error they hide of this.
            values[metric] = TailSample(
                value, known, mean.freedom, widening=mean.widening, percent=percent, counted=counted
            )
    return values


def _counted(latency: Latency) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    used = np.flatnonzero(latency.histogram.counts)
    return used, latency.histogram.counts[used]


def _clat_percentiles(clat: Latency | None) -> dict[Metric, Value | None]:
    """Return them without errors: only repeats tell those."""
    known = {} if clat is None else clat.percentiles(PERCENTILES)
    counted = None if clat is None else _counted(clat)
    return {
        metric: None
        if (value := known.get(percent)) is None
        else TailSample(float(value), None, None, percent=percent, counted=counted)
        for percent, metric in CLAT_AT_PERCENT.items()
    }


def sample(one: Estimate | None) -> Sample | None:
    """Return an estimate as a sample."""
    if one is None:
        return None
    if one.error is None or one.caution is None:
        return Sample(one.value, one.error, None if one.error is None else one.count - 1)
    return Sample(one.value, one.error, one.caution.freedom, widening=one.caution.widening)


def tails(summary: Summary) -> tuple[dict[int, dict[float, float]], Tails]:
    """Return the relative errors of the percentiles of each stage, and of each job and operation.

    The histograms are gone through once: a stage's are its jobs' together.
    """
    measurement = summary.measurement
    stages = {
        job.key: stage.key
        for stage in measurement.lines("stage")
        for job in measurement.lines("job")
        if set(job.streams) <= set(stage.streams)
    }
    of_job: dict[tuple[int, str], list[np.ndarray]] = {}
    of_stage: dict[int, dict[int, np.ndarray]] = {}
    for (key, op, _, window), (buckets, counts) in measurement.windows(
        "job", "lat", measurement.window, ramp=False
    ).items():
        row = np.zeros(BUCKETS)
        row[buckets] = counts
        of_job.setdefault((key, OPS[op]), []).append(row)
        if OPS[op] in MOVING and key in stages:
            rows = of_stage.setdefault(stages[key], {})
            rows[window] = rows[window] + row if window in rows else row
    return (
        {key: _errors([rows[window] for window in sorted(rows)]) for key, rows in of_stage.items()},
        {line: _errors(windows) for line, windows in of_job.items()},
    )


def _errors(windows: list[np.ndarray]) -> dict[float, float]:
    table = np.array(windows)
    used = np.flatnonzero(table.any(axis=0))
    return statistics.percentile_errors(table[:, used], values_of(used).astype(np.float64), PERCENTILES)


def of_case(case: Case) -> dict[Metric, Value]:
    """Return what a phase of another tool's result comes to.

    Errors are those that the tool tells, or else those that its intervals have, as of a run of our own.
    """
    only = next(iter(case.ops.values())) if len(case.ops) == 1 else None
    values = {**(_of_measured(only) if only is not None else {}), **_of_measured(case.total)}
    rate, mean = values.get(IOPS), values.get(MEAN)
    if isinstance(rate, Sample) and isinstance(mean, Sample) and _closed(case, rate, mean):
        values[MEAN] = _varying(mean, case.total.spread)
    for metric, of_intervals in _intervals(case).items():
        figure = values.get(metric)
        if isinstance(figure, Sample) and figure.error is None and of_intervals.error is not None:
            ratio = figure.value / of_intervals.value
            if abs(ratio - 1) <= SAME_WINDOW:
                values[metric] = replace(of_intervals, value=figure.value, error=ratio * of_intervals.error)
    return values


def _closed(case: Case, rate: Sample, mean: Sample) -> bool:
    """Tell whether all clones kept all their I/Os outstanding, so that latency varies as the rate does."""
    depths = [None if job.iodepth is None else job.iodepth * (job.clones or 1) for job in case.jobs]
    known = [depth for depth in depths if depth is not None]
    if not known or len(known) < len(depths):
        return False
    return abs(rate.value * mean.value / 1e9 / sum(known) - 1) <= CLOSED


def over_time(case: Case) -> pl.DataFrame | None:
    """Return what each interval counted, by operation where that is told; None where nobody kept it."""
    return case.series if case.series is not None else case.series_of_all


def _intervals(case: Case) -> dict[Metric, Sample]:
    """Return what the intervals that a tool printed come to; nothing of figures that were published."""
    table = over_time(case)
    if table is None or case.source == "published" or not {"ops", "bytes", "mean_ns"} <= set(table.columns):
        return {}
    intervals = (
        table.with_columns(latency_ns=pl.col("mean_ns") * pl.col("ops"))
        .group_by("start_ns")
        .agg(pl.col("ops", "bytes", "latency_ns").sum(), pl.col("seconds").first())
        .sort("start_ns")
    )
    ops, moved, latency, seconds = (
        intervals[name].to_numpy().astype(np.float64) for name in ("ops", "bytes", "latency_ns", "seconds")
    )
    one_stage = np.zeros(len(ops), np.int64)
    estimates = {
        IOPS: estimate.ratio(ops, seconds, one_stage, ""),
        BANDWIDTH: estimate.ratio(moved, seconds, one_stage, ""),
        MEAN: estimate.ratio(latency, ops, one_stage, ""),
    }
    samples = {metric: sample(one) for metric, one in estimates.items()}
    return {metric: one for metric, one in samples.items() if one is not None and one.value > 0}


def of_case_jobs(case: Case) -> dict[OfJob, Value]:
    """Return the same of each job and operation."""
    # With group_reporting one name stands for several jobs, and its figures are no job's.
    job_names = {job.job for job in case.jobs}
    named = {name: ops for name, ops in case.by_job.items() if not job_names or name in job_names}
    named = named or ({case.jobs[0].job: case.ops} if len(case.jobs) == 1 else {})
    return {
        (job, op, metric): value
        for job, ops in named.items()
        for op, measured in ops.items()
        for metric, value in _of_measured(measured).items()
    }


def _of_measured(measured: OpMeasurement) -> dict[Metric, Value]:
    latency = measured.latency
    values: dict[Metric, Value | None] = {
        IOPS: _figure(measured.iops, measured.spread),
        BANDWIDTH: _figure(measured.bandwidth, measured.spread),
        MEAN: None if latency is None or not latency.mean_ns else Sample(latency.mean_ns, None, None),
    }
    if measured.printed is not None:
        kind, latency = measured.printed
        metrics = CLAT_AT_PERCENT if kind == "clat" else AT_PERCENT
        least = MIN_BEYOND / measured.operations if measured.operations else 0.0
        values |= {
            metric: Sample(value, None, None)
            for percent, metric in metrics.items()
            if (value := latency.printed.get(percent)) and 1 - percent / 100 >= least
        }
    if measured.errors is not None and measured.operations:
        values[FAILED] = (measured.errors, measured.operations + measured.errors)
    return {metric: value for metric, value in values.items() if value is not None}


def _varying(figure: Sample, spread: RateSpread | None) -> Sample:
    """Return a figure with the error that its samples have; unchanged where too few of them tell one."""
    if figure.error is not None or spread is None or spread.samples < LEAST_SAMPLES:
        return figure
    independent = spread.samples / SAMPLES_AS_ONE
    return replace(
        figure,
        error=spread.share * figure.value / math.sqrt(independent),
        freedom=independent - 1,
        bound=True,
    )


def _figure(figure: Figure | None, spread: RateSpread | None) -> Sample | None:
    # A printed error has no count beside it: it is taken as of few intervals.
    if figure is None or not figure.value:
        return None
    sample = Sample(figure.value, figure.error, None if figure.error is None else 2.0)
    return _varying(sample, spread)
