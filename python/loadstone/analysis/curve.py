"""Latency against load: the runs of a ladder as points of a curve, its knee and a limit on it.

Knows how runs at one rate become one point with its errors, and where a limit holds. Points are
in the order of the rate asked for and keep the load they achieved: past saturation that may
turn back, and the curve with it. Decides no run and draws nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scipy import stats

from loadstone.analysis.estimate import Estimate
from loadstone.analysis.knee import Knee, Place, knee
from loadstone.analysis.point import PERCENTILES
from loadstone.analysis.slo import decide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.point import Measured, Run
    from loadstone.analysis.slo import Slo

RATE: Final = "rate_percent"
"""The factor that makes a run a point of a curve: percent of the maximum, None for the maximum."""
REPEAT: Final = "repeat"
PURPOSE: Final = "purpose"
"""Why a run was done: `ladder`, `bend`, `noise`, `search`."""


@dataclass(frozen=True, slots=True)
class Load:
    """A point of a curve: all runs at one rate together. `percent` None: the closed loop's maximum.

    Errors are what the runs show among themselves or what they say of themselves, whichever is
    larger. Percentiles are of all I/Os of all runs. `keeps`: whether the limit holds here, None
    where it is undecided or there is none.
    """

    percent: float | None
    asked_iops: float | None
    order: int
    """Of its first run in the study."""
    runs: int
    iops: Estimate
    bandwidth: Estimate
    mean_ns: Estimate
    percentiles_ns: dict[float, int | None]
    intervals_ns: dict[float, tuple[int, int] | None]
    large_blocks: bool
    held: bool | None
    keeps: bool | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest load at which a limit surely holds, and the lowest above it that surely breaks it.

    Either is None when no such load was found. `undecided`: how many lie between, where the
    measurement decides neither.
    """

    slo: Slo
    holds: Load | None
    breaks: Load | None
    undecided: int


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve. `loads` are in the order of the rate asked for."""

    name: str
    maximum: Load | None
    loads: tuple[Load, ...]
    knee: Knee | None
    limit: Limit | None

    @property
    def large_blocks(self) -> bool:
        """Whether its load is better told as bandwidth."""
        points = [*self.loads, *([self.maximum] if self.maximum else [])]
        return bool(points) and all(load.large_blocks for load in points)


def curves(runs: Sequence[Run], slo: Slo | None = None) -> list[Curve]:
    """Return the curves among runs, by what else differs between them; runs without a rate are left out."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if RATE in run.point.factors:
            groups.setdefault(name_of(run), []).append(run)
    return [curve(group, name, slo) for name, group in groups.items()]


def name_of(run: Run) -> str:
    """Return the name of the curve a run belongs to: what else differs between the runs."""
    others = {k: v for k, v in run.point.factors.items() if k not in (RATE, REPEAT, PURPOSE)}
    return ", ".join(str(value) for value in others.values())


def curve(runs: Sequence[Run], name: str = "", slo: Slo | None = None) -> Curve:
    """Return the curve of runs that differ in their rate only."""
    found = loads(runs, slo)
    rungs = tuple(load for load in found if load.percent is not None)
    places = [
        Place(load.iops.value, load.mean_ns.value, load.iops.error or 0.0, load.mean_ns.error or 0.0)
        for load in rungs
    ]
    return Curve(
        name=name,
        maximum=next((load for load in found if load.percent is None), None),
        loads=rungs,
        knee=knee(places),
        limit=None if slo is None else limit(rungs, slo),
    )


def loads(runs: Sequence[Run], slo: Slo | None = None) -> list[Load]:
    """Return a point per rate, in the order of the rate asked for, the maximum first."""
    groups: dict[float | None, list[tuple[int, Run, Measured]]] = {}
    for order, run in enumerate(runs):
        if run.whole is not None and run.whole.iops is not None and run.whole.mean_ns is not None:
            groups.setdefault(percent_of(run), []).append((order, run, run.whole))
    made = [_load(percent, group, slo) for percent, group in groups.items()]
    return sorted(made, key=lambda load: -1.0 if load.percent is None else load.percent)


def percent_of(run: Run) -> float | None:
    """Return the rate of a run in percent of the maximum, None for the maximum itself."""
    value = run.point.factors.get(RATE)
    return float(value) if isinstance(value, int | float) else None


def limit(rungs: Sequence[Load], slo: Slo) -> Limit:
    """Return where a limit holds: below the first load that surely breaks it."""
    breaks = next((load for load in rungs if load.keeps is False), None)
    below = [load for load in rungs if breaks is None or _percent(load) < _percent(breaks)]
    holds = next((load for load in reversed(below) if load.keeps), None)
    between = [
        load for load in below if load.keeps is None and (holds is None or _percent(load) > _percent(holds))
    ]
    return Limit(slo, holds, breaks, len(between))


def _percent(load: Load) -> float:
    return load.percent or 0.0


def _load(percent: float | None, group: Sequence[tuple[int, Run, Measured]], slo: Slo | None) -> Load:
    found = [measured for _, _, measured in group]
    histogram = found[0].histogram
    for measured in found[1:]:
        if histogram is not None and measured.histogram is not None:
            histogram = histogram + measured.histogram
    percentiles = {p: histogram.percentile(p) if histogram is not None else None for p in PERCENTILES}
    helds = [measured.held for measured in found if measured.held is not None]
    held = all(helds) if helds else None
    keeps = None
    if slo is not None and percent is not None:
        # A rate that is not held is not a load the limit could hold at, however fast the rest was.
        values = [None if run.summary is None else slo.value(run.summary) for _, run, _ in group]
        keeps = False if held is False else decide(slo, values)
    return Load(
        percent=percent,
        asked_iops=found[0].asked_iops,
        order=group[0][0],
        runs=len(found),
        iops=_together([measured.iops for measured in found], "1/s"),
        bandwidth=_together([measured.bandwidth for measured in found], "B/s"),
        mean_ns=_together([measured.mean_ns for measured in found], "ns"),
        percentiles_ns=percentiles,
        intervals_ns={p: _interval(p, value, found) for p, value in percentiles.items()},
        large_blocks=all(measured.large_blocks for measured in found),
        held=held,
        keeps=keeps,
    )


def _together(estimates: Sequence[Estimate | None], unit: str) -> Estimate:
    known = [one for one in estimates if one is not None]
    count = len(known)
    mean = sum(one.value for one in known) / count
    errors = [one.error for one in known if one.error is not None]
    within = math.sqrt(sum(error**2 for error in errors)) / count if len(errors) == count else None
    between = (
        math.sqrt(sum((one.value - mean) ** 2 for one in known) / (count - 1) / count) if count > 1 else None
    )
    told = [error for error in (within, between) if error is not None]
    return Estimate(mean, max(told) if told else None, count, unit)


def _interval(percent: float, value: int | None, found: Sequence[Measured]) -> tuple[int, int] | None:
    """Return the 95 % interval of a percentile: the runs' own, narrower for several, or their spread."""
    if value is None:
        return None
    count = len(found)
    alone = [interval for one in found if (interval := one.intervals_ns.get(percent)) is not None]
    values = [one.percentiles_ns.get(percent) for one in found]
    known = [one for one in values if one is not None]
    below = above = spread = 0.0
    if len(alone) == count:
        middles = list(known) if len(known) == count else [value] * count
        below = sum(middle - low for middle, (low, _) in zip(middles, alone, strict=True)) / count**1.5
        above = sum(high - middle for middle, (_, high) in zip(middles, alone, strict=True)) / count**1.5
    elif count == 1:
        return None
    if len(known) == count > 1:
        mean = sum(known) / count
        deviation = math.sqrt(sum((one - mean) ** 2 for one in known) / (count - 1))
        spread = float(stats.t.ppf(0.975, count - 1)) * deviation / math.sqrt(count)
    return round(value - max(below, spread)), round(value + max(above, spread))
