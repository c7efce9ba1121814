"""Latency curves beside each other: maximum, knee, latency at equal load, load at equal latency.

Knows where a curve is read between its points. A curve is never compared at the rates it was
asked for: the maximum they are shares of is what differs. Only valid loads are used.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone import units
from loadstone.analysis.statistics import significance as statistics
from loadstone.analysis.statistics.interpolation import monotone
from loadstone.analysis.statistics.significance import Sample
from loadstone.analysis.study.curve import RATE, Curve, curves
from loadstone.analysis.study.run_figures import run as figures_of
from loadstone.comparison.matrix import Effect, SideValue
from loadstone.comparison.metric import Metric
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from loadstone.analysis.study.curve import LoadPoint
    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.comparison.side import Side

EQUAL_LOAD: Final = 0.7
"""Latency is read at this share of the smallest maximum, or else in the middle of what all sides reach."""
EQUAL_LATENCY: Final = 2.0
"""Load is read at this multiple of the largest of the sides' lowest latencies, or else in the middle."""
Z_95: Final = 1.959964
FREEDOM: Final = 30.0
"""Of a value read between points, each of many intervals."""


@dataclass(frozen=True, slots=True)
class Curves:
    """One thing's curve on each side, None where a side has none."""

    name: str
    each: tuple[Curve | None, ...]


def of_sides(sides: Sequence[Side]) -> list[Curves]:
    """Pair the curves of the sides by their names; two that are alone are a pair whatever they are called."""
    every = [_curves(side) for side in sides]
    if not every[0]:
        return []
    if all(len(by_name) <= 1 for by_name in every):
        name = next(iter(every[0]))
        return [Curves(name, tuple(next(iter(by_name.values()), None) for by_name in every))]
    return [Curves(name, tuple(by_name.get(name) for by_name in every)) for name in every[0]]


def left_out(side: Side) -> Iterator[str]:
    """Say which curves of a side have the name of another one, and are compared with nothing."""
    names = Counter(one.name for one in _every_curve(side))
    for name, count in names.items():
        if count > 1:
            yield say("comparison.sides.curves", curves=count, name=f"curve {name}".strip())


def _curves(side: Side) -> dict[str, Curve]:
    by_name: dict[str, Curve] = {}
    for one in _every_curve(side):
        by_name.setdefault(one.name, one)
    return by_name


def _every_curve(side: Side) -> Iterator[Curve]:
    studies: dict[Path | None, list[RunFigures]] = {}
    for run in side.runs:
        if run.point is not None and RATE in run.point.factors:
            studies.setdefault(run.study, []).append(figures_of(run.point, run.summary))
    for runs in studies.values():
        # A load is the mean of its runs: one that is not valid must not be among them.
        yield from curves([one for one in runs if one.valid] or runs)


def effects(curves: Sequence[Curves], first_row: int) -> Iterator[Effect]:
    """Return what differs between curves, not judged yet."""
    for at, one in enumerate(curves):
        base, *others = one.each
        known = [curve for curve in one.each if curve is not None and sound(curve)]
        # The levels hold for every side, or else a row would have another meaning for each.
        load, latency = (_equal_load(known), _equal_latency(known)) if known else (None, None)
        for side, curve in enumerate(others, 1):
            if base is not None and curve is not None:
                yield from _pair(one.name, first_row + at, side, (base, curve), load=load, latency=latency)


def _pair(
    name: str,
    row: int,
    side: int,
    pair: tuple[Curve, Curve],
    *,
    load: float | None,
    latency: float | None,
) -> Iterator[Effect]:
    large = all(curve.large_blocks for curve in pair)
    quantity, word = ("bytes_per_s", "bandwidth") if large else ("count", "IOPS")
    rate = Metric(f"maximum {word}", quantity, more_is_better=True)  # type: ignore[arg-type] # one of two
    metrics = [(rate, tuple(_maximum(curve, large=large) for curve in pair))]
    knee = Metric("knee, IOPS", "count", more_is_better=True)
    metrics.append((knee, tuple(_knee(curve) for curve in pair)))
    if load is not None:
        metric = Metric(f"latency at {units.count(load)} IOPS", "ns", more_is_better=False)
        metrics.append((metric, tuple(_latency_at(curve, load) for curve in pair)))
    if latency is not None:
        metric = Metric(f"IOPS at {units.duration(latency)}", "count", more_is_better=True)
        metrics.append((metric, tuple(_load_at(curve, latency) for curve in pair)))
    pattern = f"curve {name}".strip()
    for metric, (before, after) in metrics:
        if before is None or after is None:
            continue
        contrast = statistics.contrast(before, after)
        yield Effect(
            pattern, metric, side, SideValue(before, before.runs), SideValue(after, after.runs),
            contrast, contrast.p if contrast else None, "unknown", metric is rate, row,
        )  # fmt: skip


def sound(curve: Curve) -> list[LoadPoint]:
    """Return the valid loads up to where the load itself turns back."""
    loads: list[LoadPoint] = []
    for load in curve.loads:
        if not load.valid:
            continue
        if loads and load.iops.value <= loads[-1].iops.value:
            break
        loads.append(load)
    return loads


def _maximum(curve: Curve, *, large: bool) -> Sample | None:
    loads = [*([curve.maximum] if curve.maximum is not None else []), *curve.loads]
    known = [load for load in loads if load.valid]
    if not known:
        return None

    def rate(load: LoadPoint) -> Sample:
        figure = load.bandwidth if large else load.iops
        return Sample(figure.value, figure.error, FREEDOM if figure.error else None, load.runs)

    if curve.maximum is not None and curve.maximum.valid:
        return rate(curve.maximum)
    return max((rate(load) for load in known), key=lambda one: one.value)


def _knee(curve: Curve) -> Sample | None:
    knee = curve.knee
    if knee is None:
        return None
    spread = math.log(max(knee.high, knee.load) / max(min(knee.low, knee.load), 1e-9)) / (2 * Z_95)
    return Sample(knee.load, max(spread, 1e-3) * knee.load, FREEDOM, _runs(sound(curve)))


def _equal_load(every: Sequence[Curve]) -> float | None:
    tops = [max((load.iops.value for load in sound(curve)), default=0.0) for curve in every]
    lows = [min((load.iops.value for load in sound(curve)), default=math.inf) for curve in every]
    return _within(EQUAL_LOAD * min(tops), max(lows), min(tops))


def _equal_latency(every: Sequence[Curve]) -> float | None:
    lows = [min((load.mean_ns.value for load in sound(curve)), default=math.inf) for curve in every]
    tops = [max((load.mean_ns.value for load in sound(curve)), default=0.0) for curve in every]
    return _within(EQUAL_LATENCY * max(lows), max(lows), min(tops))


def _within(wanted: float, low: float, high: float) -> float | None:
    """Return the level if all sides reach it, or one in the middle of what they do; None: there is none."""
    if not 0 < low < high < math.inf:
        return None
    for level in (_two_digits(wanted), _two_digits(math.sqrt(low * high))):
        if low <= level <= high:
            return level
    return None


def _two_digits(value: float) -> float:
    if value <= 0:
        return value
    power = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / power) * power


def _latency_at(curve: Curve, load: float) -> Sample | None:
    points = sound(curve)
    if len(points) < 2:
        return None
    x = np.array([point.iops.value for point in points])
    y = np.log([point.mean_ns.value for point in points])
    value = float(np.exp(monotone(x, y, np.array([load]))[0]))
    error = _error_near(points, load, lambda point: point.iops.value) * value
    return Sample(value, error, FREEDOM, _runs(points))


def _load_at(curve: Curve, latency_ns: float) -> Sample | None:
    rising: list[LoadPoint] = []
    for point in sound(curve):
        if not rising or point.mean_ns.value > rising[-1].mean_ns.value:
            rising.append(point)
    if len(rising) < 2 or not rising[0].mean_ns.value <= latency_ns <= rising[-1].mean_ns.value:
        return None
    x = np.log([point.mean_ns.value for point in rising])
    y = np.array([point.iops.value for point in rising])
    value = float(monotone(x, y, np.array([math.log(latency_ns)]))[0])
    # How much of an error in latency is one of load: by the slope there.
    near = float(monotone(x, y, np.array([min(math.log(latency_ns) + 1e-3, x[-1])]))[0])
    slope = abs(near - value) / 1e-3 / value if value else 0.0
    of_latency = _error_near(rising, latency_ns, lambda point: point.mean_ns.value)
    of_load = max((point.iops.error or 0.0) / point.iops.value for point in rising)
    error = max(math.hypot(slope * of_latency, of_load), 1e-4) * value
    return Sample(value, error, FREEDOM, _runs(rising))


def _runs(points: Sequence[LoadPoint]) -> int:
    """Return of how many runs a figure is that is read between points."""
    return min((point.runs for point in points), default=1)


def _error_near(points: Sequence[LoadPoint], at: float, of: Callable[[LoadPoint], float]) -> float:
    """Return the larger relative error of the two points around a place."""
    near = sorted(points, key=lambda point: abs(math.log(of(point) / at)))[:2]
    return max(1e-4, *((point.mean_ns.error or 0.0) / point.mean_ns.value for point in near))
