"""The course of a load read closely: stalls, periods, changes of level, several modes.

Knows samples of how many operations ended (10 ms each, as the engine counts them) and histograms of
latency. Each answer is a test against the load's own noise; what a chance makes of steady loads is
simulated in `tests/analysis/test_time_structure.py`. Knows no rule and no words.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from loadstone.analysis.histogram import values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from loadstone.analysis.histogram import Histogram

    Floats = NDArray[np.float64]

CHANCE: Final = 0.001
"""Each test answers falsely for at most this share of steady loads, whatever it looks for."""
SHORTEST_STALL_NS: Final = 50e6
LONGER_THAN_USUAL: Final = 5.0
"""A stall is longer than this many times the 90th percentile: slow I/Os alone are none."""
REGULAR: Final = 0.2
"""Deviation of the distances between periodic stalls, for each mean distance."""
LEAST_REGULAR: Final = 4
LEAST_CHANGE: Final = 0.1
"""A change of level by less is not worth a word."""
BRIDGE_P001: Final = 1.95
"""The largest value of a Brownian bridge is below this in all but 0.1 % of cases (Kolmogorov)."""
LEAST_BINS: Final = 40
MOST_SEGMENTS: Final = 12


@dataclass(frozen=True, slots=True)
class FineRates:
    """How many operations ended in each of a row of short samples; times since the run's origin."""

    ends_ns: Floats
    lengths_ns: Floats
    ops: Floats

    def within(self, begin_ns: float, end_ns: float) -> FineRates:
        """Return the samples that lie in a span as a whole."""
        inside = (self.ends_ns - self.lengths_ns >= begin_ns) & (self.ends_ns <= end_ns)
        return FineRates(self.ends_ns[inside], self.lengths_ns[inside], self.ops[inside])

    @property
    def seconds(self) -> float:
        """All samples together."""
        return float(self.lengths_ns.sum()) / 1e9

    def peak_over_mean(self, span_s: float) -> float:
        """Return how many times the usual operations ended in the busiest span of so many seconds."""
        count = max(1, math.ceil(span_s * 1e9 / float(np.median(self.lengths_ns))))
        sums = np.convolve(self.ops, np.ones(min(count, len(self.ops))), "valid")
        mean = float(self.ops.mean()) * min(count, len(self.ops))
        return float(sums.max()) / mean if mean else 1.0


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing, or hardly anything, ended in this time."""

    begin_ns: float
    end_ns: float

    @property
    def length_ns(self) -> float:
        """How long it was."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class Stalls:
    """All stalls of a load. `period_ns` is None where they come at no regular distance."""

    every: tuple[Stall, ...]
    period_ns: float | None
    share: float
    """Part of the time spent in them."""

    @property
    def longest_ns(self) -> float:
        """The longest."""
        return max(one.length_ns for one in self.every)

    @property
    def median_ns(self) -> float:
        """Half of them are shorter."""
        return float(np.median([one.length_ns for one in self.every]))


def stalls(rates: FineRates, p90_ns: float, depth: float) -> Stalls | None:
    """Find times in which nothing ended for longer than this load's own gaps explain.

    Were its ends independent of each other, a gap of length L would come with probability
    exp(-rate L) after each of them; and no gap of a load is a stall that its slow I/Os make.
    """
    if rates.ops.sum() < 20 or rates.seconds < 1:
        return None
    busy = rates.ops > 0
    per_ns = float(np.median(rates.ops[busy] / rates.lengths_ns[busy])) if busy.any() else 0.0
    # Of few operations the median of busy samples is too high: the mean bounds it.
    per_ns = min(per_ns, 3 * float(rates.ops.sum() / rates.lengths_ns.sum()))
    chance_ns = math.log(max(rates.ops.sum(), 2) / CHANCE) / per_ns
    least_ns = max(SHORTEST_STALL_NS, LONGER_THAN_USUAL * p90_ns / max(1.0, min(depth, 2.0)), chance_ns)
    long_gaps: list[Stall] = []
    begin: float | None = None
    starts = rates.ends_ns - rates.lengths_ns
    # What still ends in the first moments of a stall was on its way: a tenth of the rate is none.
    idle = rates.ops <= 0.1 * per_ns * rates.lengths_ns * (per_ns * rates.lengths_ns >= 10)
    last = len(idle) - 1
    for index, still in enumerate(idle):
        if still and begin is None:
            begin = float(starts[index])
        # What lies between samples was left out: nobody knows that nothing ended in it.
        over = index == last or starts[index + 1] > rates.ends_ns[index] + 1e6
        if begin is not None and (not still or over):
            end = float(rates.ends_ns[index] if still else starts[index])
            if end - begin >= least_ns:
                long_gaps.append(Stall(begin, end))
            begin = None
    if not long_gaps:
        return None
    return Stalls(
        tuple(long_gaps),
        _period(long_gaps),
        sum(one.length_ns for one in long_gaps) / float(rates.lengths_ns.sum()),
    )


def _period(found: Sequence[Stall]) -> float | None:
    """Return the distance of stalls from begin to begin, None where it is not regular.

    Four random distances are this regular in one of some hundred cases, more are never.
    """
    if len(found) < LEAST_REGULAR:
        return None
    apart = np.diff([one.begin_ns for one in found])
    mean = float(np.mean(apart))
    return mean if float(np.std(apart)) <= REGULAR * mean else None


@dataclass(frozen=True, slots=True)
class Comb:
    """The load goes and stops with a period too short for stalls of their own."""

    period_ns: float
    p: float


def comb(rates: FineRates) -> Comb | None:
    """Find a period in the samples: Fisher's test on a spectrum made flat by its own neighbourhood."""
    count = len(rates.ops)
    if count < 200 or rates.ops.mean() < 1:
        return None
    values = rates.ops / rates.lengths_ns
    power = np.abs(np.fft.rfft(values - values.mean()))[1:-1] ** 2
    width = max(15, len(power) // 20)
    window = 2 * width + 1
    flat = pl.Series(np.pad(power, width, mode="reflect")).rolling_median(window).to_numpy()[window - 1 :]
    ratio = power / np.maximum(flat, 1e-300) * math.log(2)  # of an exponential, median to mean
    at = int(np.argmax(ratio))
    # Fisher 1929: of n powers the largest exceeds x times their mean with at most n exp(-x). The
    # median of a neighbourhood is known to some percent only, so the demand is higher.
    p = min(1.0, len(ratio) * math.exp(-0.6 * float(ratio[at])))
    # The depth of it: a ripple in counts that is no on and off is of no interest.
    swing = 2 * math.sqrt(power[at]) / count / float(values.mean())
    span_ns = float(rates.lengths_ns.sum())
    period = span_ns / (at + 1)
    return Comb(period, p) if p < CHANCE and swing > 0.3 and period < span_ns / 8 else None


@dataclass(frozen=True, slots=True)
class Level:
    """A part of the load with one rate."""

    begin_ns: float
    end_ns: float
    per_s: float


@dataclass(frozen=True, slots=True)
class Levels:
    """The parts of a load with rates of their own; `shape` says what they make together."""

    every: tuple[Level, ...]
    shape: str
    """`step down`, `step up`, `falling`, `rising`, `saw-tooth` or `levels`."""


def levels(rates: FineRates) -> Levels | None:
    """Find changes of level: binary segmentation by the largest cumulative deviation.

    The deviation of a sum is taken from blocks, so that noise that hangs together counts as that;
    each half is searched again until nothing is found.
    """
    bins = _binned(rates)
    if bins is None:
        return None
    starts, ends, values = bins
    # A slow decay is no noise of its own: within blocks a line is taken out first.
    sigma = _long_run_deviation(values)
    if sigma <= 0 or values.mean() <= 0:
        return None
    cuts = sorted(_cuts(values, sigma, 0, len(values), MOST_SEGMENTS))
    if not cuts:
        return None
    edges = [0, *cuts, len(values)]
    every = tuple(
        Level(float(starts[first]), float(ends[last - 1]), float(values[first:last].mean()) * 1e9)
        for first, last in itertools.pairwise(edges)
    )
    level_rates = [one.per_s for one in every]
    if max(level_rates) - min(level_rates) < LEAST_CHANGE * float(np.mean(values)) * 1e9:
        return None
    return Levels(every, _shape(every, values))


def _binned(rates: FineRates) -> tuple[Floats, Floats, Floats] | None:
    """Return begin, end and rate of some hundred bins with enough operations each."""
    count = len(rates.ops)
    mean = rates.ops.sum() / max(1, count)
    each = max(1, math.ceil(count / 240), math.ceil(20 / max(mean, 1e-9)))
    whole = count // each
    if whole < LEAST_BINS:
        each = max(1, count // LEAST_BINS)
        whole = count // each
        if whole < LEAST_BINS or mean * each < 4:
            return None
    cut = whole * each
    ops = rates.ops[:cut].reshape(whole, each).sum(axis=1)
    lengths = rates.lengths_ns[:cut].reshape(whole, each).sum(axis=1)
    ends = rates.ends_ns[:cut].reshape(whole, each)[:, -1]
    return ends - lengths, ends, ops / lengths


def _long_run_deviation(values: Floats) -> float:
    """Return the deviation of a bin that its sums have: from differences of neighbouring blocks.

    Differences do not see a slow change of level; the largest of several block lengths is taken,
    because noise that hangs together over time has a larger one in longer blocks.
    """
    deviations = []
    for length in (1, 2, 4, 8):
        count = len(values) // length
        if count < 10:
            break
        blocks = values[: count * length].reshape(count, length).mean(axis=1)
        apart = np.abs(np.diff(blocks))
        # The median of the differences of normal values, to their deviation; steps are few.
        deviations.append(float(np.median(apart)) / 0.6745 / math.sqrt(2) * math.sqrt(length))
    return max(deviations, default=0.0)


def _cuts(values: Floats, sigma: float, begin: int, end: int, left: int) -> list[int]:
    part = values[begin:end]
    if len(part) < 8 or left <= 0:
        return []
    bridge = np.cumsum(part - part.mean())[:-1] / (sigma * math.sqrt(len(part)))
    at = int(np.argmax(np.abs(bridge)))
    # Medians make sigma uncertain by some percent, and parts are searched again: demand more.
    if abs(bridge[at]) < 1.35 * BRIDGE_P001 or not 2 <= at + 1 <= len(part) - 2:
        return []
    cut = begin + at + 1
    before, after = values[begin:cut].mean(), values[cut:end].mean()
    if abs(before - after) < LEAST_CHANGE * max(before, after):
        return []
    more = (left - 1) // 2 if left > 1 else 0
    return [*_cuts(values, sigma, begin, cut, more), cut, *_cuts(values, sigma, cut, end, more)]


def _shape(every: tuple[Level, ...], values: Floats) -> str:
    rates = [one.per_s for one in every]
    if len(rates) == 2:
        return "step down" if rates[1] < rates[0] else "step up"
    steps = np.diff(rates)
    line = np.polyval(np.polyfit(np.arange(len(values)), values, 1), np.arange(len(values)))
    straight = 1 - float(((values - line) ** 2).sum() / max(1e-300, ((values - values.mean()) ** 2).sum()))
    if (steps < 0).all() or (straight > 0.5 and line[-1] < line[0]):
        return "falling"
    if (steps > 0).all() or (straight > 0.5 and line[-1] > line[0]):
        return "rising"
    turns = int((np.diff(np.sign(steps)) != 0).sum())
    return "saw-tooth" if turns >= 3 else "levels"


@dataclass(frozen=True, slots=True)
class Mode:
    """A kind of I/O by its latency, and its part of all."""

    latency_ns: float
    share: float


def modes(histogram: Histogram, *, least_share: float = 0.05, least_ratio: float = 3.0) -> tuple[Mode, ...]:
    """Return the modes of a latency, fewer than two where it has one.

    Peaks of the smoothed histogram over log latency, apart by a factor, with a valley between them
    that a chance does not make (five standard errors of the smaller peak's count).
    """
    used = np.flatnonzero(histogram.counts)
    whole = int(histogram.counts.sum())
    if whole < 500 or not len(used):
        return ()
    logs = np.log(np.maximum(values_of(used), 1).astype(np.float64))
    edges = np.arange(math.floor(logs.min() * 10) / 10 - 0.2, logs.max() + 0.4, 0.1)
    counts, _ = np.histogram(logs, edges, weights=histogram.counts[used])
    smooth = np.convolve(counts, [0.25, 0.5, 0.25], mode="same")
    centres = (edges[:-1] + edges[1:]) / 2
    parts = _valleys(smooth, least_share * whole, math.log(least_ratio), centres)
    peaks = []
    for first, last in parts:
        mass = float(counts[first:last].sum())
        mean = float((counts[first:last] * centres[first:last]).sum() / max(mass, 1))
        peaks.append(Mode(math.exp(mean), mass / whole))
    return tuple(peaks) if len(peaks) > 1 else ()


def _valleys(smooth: Floats, least: float, apart: float, centres: Floats) -> list[tuple[int, int]]:
    """Cut at the deepest valley that is one, and look at both sides again."""
    best: tuple[float, int] | None = None
    for at in range(1, len(smooth) - 1):
        left, right = float(smooth[:at].max()), float(smooth[at + 1 :].max())
        low = min(left, right)
        peaks = centres[at + 1 + int(smooth[at + 1 :].argmax())] - centres[int(smooth[:at].argmax())]
        masses = smooth[:at].sum() >= least and smooth[at:].sum() >= least
        deep = smooth[at] < 0.3 * low and low - smooth[at] > 5 * math.sqrt(max(low, 1))
        if masses and deep and peaks >= apart and (best is None or smooth[at] < best[0]):
            best = (float(smooth[at]), at)
    if best is None:
        return [(0, len(smooth))]
    cut = best[1]
    left_parts = _valleys(smooth[:cut], least, apart, centres[:cut])
    right_parts = _valleys(smooth[cut:], least, apart, centres[cut:])
    return [*left_parts, *((first + cut, last + cut) for first, last in right_parts)]
