"""Latency curves beside each other: maximum, knee, latency at equal load, load at equal latency.

Knows where a curve is read between its points. A curve is never compared at the rates it was
asked for: the maximum they are shares of is what differs. Only valid loads are used.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone import units
from loadstone.analysis.statistics import significance as statistics
from loadstone.analysis.statistics.interpolation import monotone
from loadstone.analysis.statistics.significance import Sample
from loadstone.analysis.study.curve import RATE, Curve, curves, name_of
from loadstone.analysis.study.run_figures import run as figures_of
from loadstone.comparison import pairing
from loadstone.comparison.matrix import Effect, SideValue
from loadstone.comparison.metric import Metric
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.study.curve import LoadPoint
    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.comparison.metric import Quantity
    from loadstone.comparison.pairing import OtherLoad
    from loadstone.comparison.phase import ComparedPhase
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
    firsts: tuple[ComparedPhase | None, ...] = ()
    """A load of each that says what was done: its maximum where that is known."""

    @property
    def title(self) -> str:
        """What it is called; where the sides did other patterns under one name, with these."""
        patterns = list(dict.fromkeys(one.pattern for one in self.firsts if one is not None))
        return " ".join(["curve", *filter(None, [self.name, " → ".join(patterns) if patterns[1:] else ""])])

    @property
    def large(self) -> bool:
        """Whether loads are told as bandwidth."""
        return all(curve.large_blocks for curve in self.each if curve is not None)

    def has_other_blocks(self, side: int) -> bool:
        """Tell whether the I/Os of a side have another size than the first side's."""
        one, other = self._firsts(side)
        return one is not None and other is not None and one.has_other_blocks(other)

    def another_load(self, side: int) -> OtherLoad | None:
        """Return in what a side's was of another load than the first's; rates are shares of a maximum."""
        one, other = self._firsts(side)
        if one is None or other is None:
            return None
        return pairing.another_load(*(replace(phase, asked=(0.0, 0.0)) for phase in (one, other)))

    def _firsts(self, side: int) -> tuple[ComparedPhase | None, ComparedPhase | None]:
        return (self.firsts[0], self.firsts[side]) if self.firsts else (None, None)


@dataclass(frozen=True, slots=True)
class SideCurve:
    """A curve of a side, and the load of it that says what was done."""

    curve: Curve
    first: ComparedPhase | None

    @property
    def title(self) -> str:
        """What it is called."""
        return f"curve {self.curve.name}".strip()


def of_side(side: Side) -> tuple[SideCurve, ...]:
    """Return the curves of a side, study by study."""
    studies: dict[Path | None, list[tuple[Path, RunFigures]]] = {}
    for run in side.runs:
        if run.point is not None and RATE in run.point.factors:
            studies.setdefault(run.study, []).append((run.path, figures_of(run.point, run.summary)))
    every = []
    for runs in studies.values():
        # A load is the mean of its runs: one that is not valid must not be among them.
        for curve in curves([one for _, one in runs if one.valid] or [one for _, one in runs]):
            paths = {path for path, one in runs if name_of(one) == curve.name}
            loads = [phase for phase in side.phases if phase.path in paths]
            loads.sort(key=lambda phase: (not phase.is_a_maximum, not phase.valid))
            every.append(SideCurve(curve, loads[0] if loads else None))
    return tuple(every)


def paired(sides: Sequence[Sequence[SideCurve]]) -> list[Curves]:
    """Pair the curves of the sides by their names; two that are alone are a pair whatever they are called.

    As of single loads, what did other operations is no partner: reads say nothing of writes.
    """
    every = [_by_name(side) for side in sides]
    if not every[0]:
        return []
    if all(len(by_name) <= 1 for by_name in every):
        name = next(iter(every[0]))
        return [_pair_of(name, [next(iter(by_name.values()), None) for by_name in every])]
    return [_pair_of(name, [by_name.get(name) for by_name in every]) for name in every[0]]


def _pair_of(name: str, each: Sequence[SideCurve | None]) -> Curves:
    base = each[0].first if each[0] is not None else None
    partners = [one if one is not None and _may_be_held(base, one.first) else None for one in each]
    curves_of_sides = tuple(None if one is None else one.curve for one in partners)
    return Curves(name, curves_of_sides, tuple(None if one is None else one.first for one in partners))


def _may_be_held(base: ComparedPhase | None, one: ComparedPhase | None) -> bool:
    return base is None or one is None or pairing.may_be_held(base, one)


def left_out(side: Sequence[SideCurve]) -> Iterator[str]:
    """Say which curves of a side have the name of another one, and are compared with nothing."""
    for title, count in Counter(one.title for one in side).items():
        if count > 1:
            yield say("comparison.sides.curves", curves=count, name=title)


def alone(sides: Sequence[Sequence[SideCurve]], rows: Sequence[Curves]) -> list[list[str]]:
    """Return of each side the curves that are held against none; nothing where a side has no curve at all.

    That side's loads are then held against the maxima of the others' curves.
    """
    compared = {id(one) for row in rows for one in row.each if sum(each is not None for each in row.each) > 1}
    return [
        [one.title for one in _by_name(side).values() if id(one.curve) not in compared] if all(sides) else []
        for side in sides
    ]


def _by_name(side: Sequence[SideCurve]) -> dict[str, SideCurve]:
    by_name: dict[str, SideCurve] = {}
    for one in side:
        by_name.setdefault(one.curve.name, one)
    return by_name


def effects(rows: Sequence[Curves], first_row: int) -> Iterator[Effect]:
    """Return what differs between curves, not judged yet."""
    for at, row in enumerate(rows):
        base, *others = row.each
        known = [curve for curve in row.each if curve is not None and sound(curve)]
        # The levels hold for every side, or else a row would have another meaning for each.
        unit = _LOADS[row.large]
        levels = (_equal_load(known, unit), _equal_latency(known)) if known else (None, None)
        for side, curve in enumerate(others, 1):
            if base is not None and curve is not None:
                yield from _effects_of(row, first_row + at, side, (base, curve), levels)


def _effects_of(
    row: Curves, number: int, side: int, pair: tuple[Curve, Curve], levels: tuple[float | None, float | None]
) -> Iterator[Effect]:
    unit, (load, latency) = _LOADS[row.large], levels
    rate = unit.metric(f"maximum {unit.name}")
    metrics = [
        (rate, tuple(_maximum(curve, unit) for curve in pair)),
        (unit.metric(f"knee, {unit.name}"), tuple(_knee(curve, unit) for curve in pair)),
    ]
    if load is not None:
        metric = Metric(f"latency at {unit.written(load)}", "ns", more_is_better=False)
        metrics.append((metric, tuple(_latency_at(curve, load, unit) for curve in pair)))
    if latency is not None:
        metric = unit.metric(f"{unit.name} at {units.duration(latency)}")
        metrics.append((metric, tuple(_load_at(curve, latency, unit) for curve in pair)))
    # With I/Os of another size neither rate alone says which side is faster, and no latency does.
    says_nothing = row.has_other_blocks(side)
    for metric, (before, after) in metrics:
        if before is None or after is None:
            continue
        contrast = statistics.contrast(before, after)
        p = None if contrast is None or says_nothing else contrast.p
        yield Effect(
            row.title, metric, side, SideValue(before, before.runs), SideValue(after, after.runs),
            contrast, p, "unknown", metric is rate, number,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _LoadUnit:
    """What the loads of curves are told in."""

    name: str
    quantity: Quantity
    written: Callable[[float], str]
    of: Callable[[LoadPoint], Estimate]

    def metric(self, name: str) -> Metric:
        return Metric(name, self.quantity, more_is_better=True)


_LOADS: Final = {
    False: _LoadUnit("IOPS", "count", lambda load: f"{units.count(load)} IOPS", lambda point: point.iops),
    True: _LoadUnit("bandwidth", "bytes_per_s", units.bandwidth, lambda point: point.bandwidth),
}
"""By whether blocks are large."""


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


def _maximum(curve: Curve, unit: _LoadUnit) -> Sample | None:
    loads = [*([curve.maximum] if curve.maximum is not None else []), *curve.loads]
    known = [load for load in loads if load.valid]
    if not known:
        return None

    def rate(load: LoadPoint) -> Sample:
        figure = unit.of(load)
        return Sample(figure.value, figure.error, FREEDOM if figure.error else None, load.runs)

    if curve.maximum is not None and curve.maximum.valid:
        return rate(curve.maximum)
    return max((rate(load) for load in known), key=lambda one: one.value)


def _knee(curve: Curve, unit: _LoadUnit) -> Sample | None:
    knee = curve.knee
    if knee is None:
        return None
    spread = math.log(max(knee.high, knee.load) / max(min(knee.low, knee.load), 1e-9)) / (2 * Z_95)
    load = curve.bytes_per_s(knee.load) if unit is _LOADS[True] else knee.load
    return Sample(load, max(spread, 1e-3) * load, FREEDOM, _runs(sound(curve)))


def _equal_load(every: Sequence[Curve], unit: _LoadUnit) -> float | None:
    tops = [max((unit.of(load).value for load in sound(curve)), default=0.0) for curve in every]
    lows = [min((unit.of(load).value for load in sound(curve)), default=math.inf) for curve in every]
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


def _latency_at(curve: Curve, load: float, unit: _LoadUnit) -> Sample | None:
    points = sound(curve)
    if len(points) < 2:
        return None
    x = np.array([unit.of(point).value for point in points])
    y = np.log([point.mean_ns.value for point in points])
    value = float(np.exp(monotone(x, y, np.array([load]))[0]))
    error = _error_near(points, load, lambda point: unit.of(point).value) * value
    return Sample(value, error, FREEDOM, _runs(points))


def _load_at(curve: Curve, latency_ns: float, unit: _LoadUnit) -> Sample | None:
    rising: list[LoadPoint] = []
    for point in sound(curve):
        if not rising or point.mean_ns.value > rising[-1].mean_ns.value:
            rising.append(point)
    if len(rising) < 2 or not rising[0].mean_ns.value <= latency_ns <= rising[-1].mean_ns.value:
        return None
    x = np.log([point.mean_ns.value for point in rising])
    y = np.array([unit.of(point).value for point in rising])
    value = float(monotone(x, y, np.array([math.log(latency_ns)]))[0])
    # How much of an error in latency is one of load: by the slope there.
    near = float(monotone(x, y, np.array([min(math.log(latency_ns) + 1e-3, x[-1])]))[0])
    slope = abs(near - value) / 1e-3 / value if value else 0.0
    of_latency = _error_near(rising, latency_ns, lambda point: point.mean_ns.value)
    of_load = max((unit.of(point).error or 0.0) / unit.of(point).value for point in rising)
    error = max(math.hypot(slope * of_latency, of_load), 1e-4) * value
    return Sample(value, error, FREEDOM, _runs(rising))


def _runs(points: Sequence[LoadPoint]) -> int:
    """Return of how many runs a figure is that is read between points."""
    return min((point.runs for point in points), default=1)


def _error_near(points: Sequence[LoadPoint], at: float, of: Callable[[LoadPoint], float]) -> float:
    """Return the larger relative error of the two points around a place."""
    near = sorted(points, key=lambda point: abs(math.log(of(point) / at)))[:2]
    return max(1e-4, *((point.mean_ns.error or 0.0) / point.mean_ns.value for point in near))
