"""Sweeps beside each other by where each side would be operated: the depth beyond which little is gained.

Knows which of the sides' sweeps are of the same thing. Their combinations are compared one by one elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.analysis.study.run_figures import run as figures_of
from loadstone.analysis.study.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.sweep import OperatingPoint
    from loadstone.bundle.study import Factor
    from loadstone.comparison.side import Side


@dataclass(frozen=True, slots=True)
class OperatingRow:
    """One thing that was swept: along which factor, at which values of the others, and each side's point."""

    axis: str
    others: tuple[tuple[str, Factor], ...]
    each: tuple[OperatingPoint | None, ...]
    """None where a side has no sweep of it, or no valid runs at two values."""


def rows(sides: Sequence[Side]) -> list[OperatingRow]:
    """Return a row for each thing that two sides swept at least."""
    by_side = [_points(side) for side in sides]
    keys = dict.fromkeys(key for points in by_side for key in points)
    candidates = [
        OperatingRow(axis, of, tuple(points.get((axis, of)) for points in by_side)) for axis, of in keys
    ]
    return [row for row in candidates if sum(point is not None for point in row.each) > 1]


def _points(side: Side) -> dict[tuple[str, tuple[tuple[str, Factor], ...]], OperatingPoint]:
    """Return the points of a side; of several sweeps of the same thing the first one's."""
    known: dict[tuple[str, tuple[tuple[str, Factor], ...]], OperatingPoint] = {}
    for path, study in side.studies:
        if study.kind != "sweep":
            continue
        runs = [
            figures_of(one.point, one.summary)
            for one in side.runs
            if one.study == path and one.point is not None
        ]
        for point in sweep(runs, study.settings).advice:
            known.setdefault((point.axis, point.others), point)
    return known
