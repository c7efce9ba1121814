"""The course of a load over time: equal windows, levels, and the step between two of them.

Knows the series of a Case and numbers. Judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl

from loadstone.analysis import time_structure
from loadstone.analysis.filling import FILLED
from loadstone.audit import case_queries
from loadstone.verdict import BYTES_PER_S, Chart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadstone.analysis.time_structure import Stalls
    from loadstone.audit.case import Case, Op

Quantity = Literal["iops", "bytes_per_s"]
POINTS: Final = 60
"""Of a chart: more cannot be told apart in a small picture."""
LEAST_FLUSHES: Final = 10
"""Fewer, like one at the end, are no queue."""
EDGE: Final = 0.15
"""A step nearer to an end than this part of the whole is a start or an end, and no level of its own."""


@dataclass(frozen=True, slots=True)
class LoadTimeline:
    """Mean rates of windows of equal length, `seconds` each, from the start of the measured time."""

    values: NDArray[np.float64]
    seconds: float

    def points(self) -> tuple[tuple[float, float], ...]:
        """Return (middle of the window in s, rate)."""
        middles = (np.arange(len(self.values)) + 0.5) * self.seconds
        return tuple((round(float(t), 3), float(v)) for t, v in zip(middles, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class LevelStep:
    """Two levels, and when the second began. `explained`: the part of the variance they explain."""

    at_s: float
    before: float
    after: float
    explained: float
    line_explained: float
    """What a straight line explains: a drift is no step."""

    @property
    def ratio(self) -> float:
        """The level after for each one before."""
        return self.after / self.before if self.before else float("inf")


def stalls(case: Case) -> Stalls | None:
    """Return the times in which nothing ended and that the load's own latencies do not explain."""
    latency, rates = case.total.latency, case.fine
    if rates is None or latency is None or latency.mean_ns is None or case_queries.paced(case):
        return None
    usual_ns = latency.percentile(90.0)
    usual_ns = max(latency.mean_ns if usual_ns is None else usual_ns, case.commit_ns or 0.0)
    return time_structure.stalls(rates, usual_ns, case_queries.outstanding(case) or 1)


def filling_ns(case: Case) -> float:
    """Return for how long a load's queue fills: until its first I/Os have come back, and flushes queue up.

    Until then hardly any waits behind the others, as nearly all do afterwards: what the load does in this
    time is its own start, and no level.
    """
    flush = case.flush.latency if case.flush else None
    parts = (
        (case.total.latency, 1.0),
        (flush, FILLED if flush and (flush.count or 0) >= LEAST_FLUSHES else 1.0),
    )
    return max((one.mean_ns * times for one, times in parts if one and one.mean_ns is not None), default=0.0)


def load_timeline(
    case: Case,
    count: int,
    quantity: Quantity = "iops",
    op: Op | None = None,
    *,
    least_s: float = 0.0,
    skip_ns: float = 0.0,
) -> LoadTimeline | None:
    """Return the load in at most `count` windows, none shorter than `least_s`, all after `skip_ns`."""
    series = case.series
    if series is None or series.height == 0:
        return None
    series = series.filter(pl.col("op") == op) if op else series.filter(pl.col("op") != "sync")
    if series.height == 0:
        return None
    ends, starts = series["end_ns"].cast(pl.Int64), series["start_ns"].cast(pl.Int64)
    begin, end = float(np.min(starts.to_numpy())) + skip_ns, float(np.max(ends.to_numpy()))
    if case.seconds:
        end = min(end, begin - skip_ns + case.seconds * 1e9)
    if case.issued_until_ns is not None:
        # After its runtime a job waits for what is in flight: that is no part of its course.
        end = min(end, float(case.issued_until_ns))
    if least_s:
        count = min(count, int((end - begin) / 1e9 / least_s))
    if count < 1 or end <= begin:
        return None
    edges = np.linspace(begin, end, count + 1)
    amount = series["ops" if quantity == "iops" else "bytes"].to_numpy().astype(np.float64)
    upto = _upto(edges, starts.to_numpy().astype(float), ends.to_numpy().astype(float), amount)
    length_s = (end - begin) / count / 1e9
    return LoadTimeline(np.diff(upto) / length_s, length_s)


def _upto(
    edges: NDArray[np.float64],
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    amount: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what was done up to each edge; within a window it goes evenly."""
    lengths = np.maximum(ends - starts, 1)
    # One edge after the other: a day has a million windows, and memory for all edges at once no host.
    return np.array([float((np.clip((edge - starts) / lengths, 0, 1) * amount).sum()) for edge in edges])


def windows_of(case: Case) -> int:
    """Return how many windows the series itself has: finer ones would be made up."""
    if case.series is None:
        return 0
    starts = case.series["start_ns"]
    until_ns = case.issued_until_ns
    return (starts if until_ns is None else starts.filter(starts < until_ns)).n_unique()


def step(course: LoadTimeline) -> LevelStep | None:
    """Return the best single step of a course, None when it is too short for two levels.

    The split is the one with the smallest sum of squares around two means (Hawkins, Testing a
    Sequence of Observations for a Shift in Location, JASA 72, 1977).
    """
    values = course.values
    count = len(values)
    margin = max(2, round(EDGE * count))
    whole = float(((values - values.mean()) ** 2).sum())
    if count < 2 * margin + 1 or whole <= 0:
        return None
    splits = range(margin, count - margin + 1)
    left = [float(((values[:at] - values[:at].mean()) ** 2).sum()) for at in splits]
    right = [float(((values[at:] - values[at:].mean()) ** 2).sum()) for at in splits]
    best = int(np.argmin(np.add(left, right)))
    at = splits[best]
    times = np.arange(count) - (count - 1) / 2
    line = float(times @ values) ** 2 / float(times @ times)
    return LevelStep(
        at_s=at * course.seconds,
        before=float(values[:at].mean()),
        after=float(values[at:].mean()),
        explained=1 - (left[best] + right[best]) / whole,
        line_explained=line / whole,
    )


def chart(
    case: Case,
    title: str,
    quantity: Quantity = "iops",
    *,
    op: Op | None = None,
    level: float | None = None,
    level_name: str | None = None,
) -> Chart | None:
    """Return the load over time as a picture, None when it has no course."""
    load = load_timeline(case, min(POINTS, windows_of(case)), quantity, op)
    if load is None or len(load.values) < 3:
        return None
    return Chart(
        title=title,
        x="s since the measured time began",
        y="I/Os per s" if quantity == "iops" else BYTES_PER_S,
        points=load.points(),
        level=level,
        level_name=level_name,
    )
