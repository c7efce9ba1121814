"""The knee of a latency curve: the load beyond which latency is bought dearer than throughput.

Defined as the load of largest power, throughput over mean latency (Kleinrock, Power and
Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications, ICC 1979):
there one per cent more load costs one per cent more latency, before it less and beyond it more.
Unlike a largest distance from a chord it depends on neither axis' unit or end.
For one server and constant service times (M/D/1) that is at 2 - sqrt(2) = 59 % of capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from loadstone.analysis.statistics.interpolation import monotone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MIN_POINTS: Final = 4
DRAWS: Final = 200
GRID: Final = 1000
SEED: Final = 1


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point of the curve: a load, a latency there, and one standard error of each; 0: not known."""

    load: float
    latency_ns: float
    load_error: float
    latency_error_ns: float


@dataclass(frozen=True, slots=True)
class Knee:
    """`load` in I/Os per second, latency there, and the 95 % range of the load.

    The range holds what the errors of the points leave open, and what the curve does between
    them: it is found again with each point left out.
    """

    load: float
    latency_ns: float
    low: float
    high: float


def knee(places: Sequence[CurvePoint]) -> Knee | None:
    """Return the knee of points in the order of the load asked for.

    None where the points do not show one: fewer than four, or a power that is largest at the
    first or last of them. Points past saturation, where the load itself turns back, come after
    any knee and are left out.
    """
    rising = _rising(places)
    if len(rising) < MIN_POINTS:
        return None
    columns = np.array([(p.load, p.latency_ns, p.load_error, p.latency_error_ns) for p in rising], np.float64)
    load, latency, load_error, latency_error = columns.T
    best = _best(load, latency)
    if best is None:
        return None
    chance = np.random.default_rng(SEED)
    drawn = []
    for _ in range(DRAWS):
        order = load + load_error * chance.standard_normal(len(load))
        drawn_latency = latency * np.exp(latency_error / latency * chance.standard_normal(len(load)))
        rises = np.concatenate([[True], np.diff(np.maximum.accumulate(order)) > 0])
        place = _best(order[rises], drawn_latency[rises]) if rises.sum() >= MIN_POINTS else None
        drawn.append(best[0] if place is None else place[0])
    low, high = (float(edge) for edge in np.percentile(drawn, (2.5, 97.5)))
    for left_out in range(1, len(load) - 1):
        place = _best(np.delete(load, left_out), np.delete(latency, left_out))
        if place is not None:
            low, high = min(low, place[0]), max(high, place[0])
    return Knee(best[0], best[1], low, high)


def _rising(places: Sequence[CurvePoint]) -> list[CurvePoint]:
    points: list[CurvePoint] = []
    for place in places:
        if points and place.load <= points[-1].load:
            break
        points.append(place)
    return points


def _best(load: NDArray[np.float64], latency: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return where power is largest, between the points, too; None at either end.

    Latency is interpolated in its logarithm, monotone between points (Fritsch and Carlson 1980),
    so that nothing is invented that the points do not show.
    """
    if len(load) < MIN_POINTS - 1:
        return None
    grid = np.linspace(load[0], load[-1], GRID)
    between = np.exp(monotone(load, np.log(latency), grid))
    at = int(np.argmax(grid / between))
    return None if at in (0, GRID - 1) else (float(grid[at]), float(between[at]))
