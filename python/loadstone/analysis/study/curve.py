"""Latency against load: the runs of a ladder as points of a curve, its knee and a limit on it.

Knows how runs at one rate become one point with its errors, and where a limit holds. Points are
in the order of the rate asked for and keep the load they achieved: past saturation that may
turn back, and the curve with it. Decides no run and draws nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from loadstone.analysis.statistics.knee import CurvePoint, Knee, knee
from loadstone.analysis.study.pooled import Pooled, pooled
from loadstone.analysis.study.slo import decide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.analysis.study.slo import Slo

RATE: Final = "rate_percent"
"""The factor that makes a run a point of a curve: percent of the maximum, None for the maximum."""
REPEAT: Final = "repeat"
RATE_IOPS: Final = "rate_iops"
"""The same as a number, in languages that give one."""
PURPOSE: Final = "purpose"
"""Why a run was done: `ladder`, `bend`, `noise`, `search`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint(Pooled):
    """A point of a curve: all runs at one rate together. `percent` None: the closed loop's maximum.

    `order`: of its first run among those of the curve. `keeps`: whether the limit holds here, None
    where it is undecided or there is none. `beyond`: the share of I/Os that decided so, None where
    a mean did, or the rate alone.
    """

    percent: float | None
    order: int
    keeps: bool | None = None
    beyond: float | None = None
    valid: bool = True
    """Whether any of its runs is; knee and limit rest on those alone."""


@dataclass(frozen=True, slots=True)
class LatencyLimit:
    """The highest load at which a limit surely holds, and the lowest above it that surely breaks it.

    Either is None when no such load was found. `undecided`: how many lie between, where the
    measurement decides neither.
    """

    slo: Slo
    holds: LoadPoint | None
    breaks: LoadPoint | None
    undecided: int


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve. `loads` are in the order of the rate asked for."""

    name: str
    maximum: LoadPoint | None
    loads: tuple[LoadPoint, ...]
    knee: Knee | None
    limit: LatencyLimit | None
    """Both rest on valid runs alone."""

    @property
    def left_out(self) -> int:
        """How many loads have no valid run."""
        return sum(not load.valid for load in self.loads)

    @property
    def has_single_maximum(self) -> bool:
        """Whether one run alone tells its maximum, with an error from within that run."""
        return self.maximum is not None and self.maximum.valid and self.maximum.runs == 1

    @property
    def large_blocks(self) -> bool:
        """Whether its load is better told as bandwidth."""
        points = [*self.loads, *([self.maximum] if self.maximum else [])]
        return bool(points) and all(load.large_blocks for load in points)

    def bytes_per_s(self, iops: float) -> float:
        """Return the bandwidth of a load, whose blocks are those of the nearest load that did any I/O.

        For a curve with a knee: one of its loads did. Raises `ValueError` for one of which none did.
        """
        nearest = min(
            (one for one in self.loads if one.iops.value > 0), key=lambda one: abs(one.iops.value - iops)
        )
        return iops * nearest.bandwidth.value / nearest.iops.value


def curves(runs: Sequence[RunFigures], slo: Slo | None = None) -> list[Curve]:
    """Return the curves among runs, by what else differs between them; runs without a rate are left out."""
    groups: dict[str, list[RunFigures]] = {}
    for run in runs:
        if RATE in run.point.factors:
            groups.setdefault(name_of(run), []).append(run)
    return [curve(group, name, slo) for name, group in groups.items()]


def name_of(run: RunFigures) -> str:
    """Return the name of the curve a run belongs to: what else differs between the runs."""
    others = {k: v for k, v in run.point.factors.items() if k not in (RATE, RATE_IOPS, REPEAT, PURPOSE)}
    # A word names itself; a number needs to be told what it is of.
    return ", ".join(value if isinstance(value, str) else f"{name} {value}" for name, value in others.items())


def curve(runs: Sequence[RunFigures], name: str = "", slo: Slo | None = None) -> Curve:
    """Return the curve of runs that differ in their rate only."""
    points = loads(runs, slo)
    rungs = tuple(load for load in points if load.percent is not None)
    # What the audit calls not valid is shown and nothing is concluded from it.
    sound = [load for load in loads([run for run in runs if run.valid], slo) if load.percent is not None]
    places = [
        CurvePoint(load.iops.value, load.mean_ns.value, load.iops.error or 0.0, load.mean_ns.error or 0.0)
        for load in sound
    ]
    return Curve(
        name=name,
        maximum=next((load for load in points if load.percent is None), None),
        loads=rungs,
        knee=knee(places),
        limit=None if slo is None else limit(sound, slo),
    )


def loads(runs: Sequence[RunFigures], slo: Slo | None = None) -> list[LoadPoint]:
    """Return a point per rate, in the order of the rate asked for, the maximum first."""
    groups: dict[float | None, list[tuple[int, RunFigures]]] = {}
    for order, run in enumerate(runs):
        groups.setdefault(percent_of(run), []).append((order, run))
    points = [load for percent, group in groups.items() if (load := _load(percent, group, slo)) is not None]
    return sorted(points, key=lambda load: -1.0 if load.percent is None else load.percent)


def percent_of(run: RunFigures) -> float | None:
    """Return the rate of a run in percent of the maximum, None for the maximum itself."""
    value = run.point.factors.get(RATE)
    return float(value) if isinstance(value, int | float) else None


def limit(rungs: Sequence[LoadPoint], slo: Slo) -> LatencyLimit:
    """Return where a limit holds: below the first load that surely breaks it."""
    breaks = next((load for load in rungs if load.keeps is False), None)
    below = [load for load in rungs if breaks is None or _percent(load) < _percent(breaks)]
    holds = next((load for load in reversed(below) if load.keeps), None)
    between = [
        load for load in below if load.keeps is None and (holds is None or _percent(load) > _percent(holds))
    ]
    return LatencyLimit(slo, holds, breaks, len(between))


def _percent(load: LoadPoint) -> float:
    return load.percent or 0.0


def _load(
    percent: float | None, group: Sequence[tuple[int, RunFigures]], slo: Slo | None
) -> LoadPoint | None:
    measured = [(order, run, run.whole) for order, run in group if run.whole is not None]
    figures = pooled([whole for _, _, whole in measured])
    if figures is None:
        return None
    keeps = beyond = None
    if slo is not None and percent is not None:
        values = [None if run.summary is None else slo.value(run.summary) for _, run, _ in measured]
        keeps = decide(slo, values)
        if keeps and figures.held is False:
            # A rate that is not held is not a load the limit could hold at, however fast the rest was.
            keeps = False
        elif slo.percent is not None and keeps is not None:
            beyond = sum(value.value for value in values if value is not None) / len(values)
    alike = {field.name: getattr(figures, field.name) for field in fields(Pooled)}
    valid = any(run.valid for _, run, _ in measured)
    order = measured[0][0]
    return LoadPoint(**alike, percent=percent, order=order, keeps=keeps, beyond=beyond, valid=valid)
