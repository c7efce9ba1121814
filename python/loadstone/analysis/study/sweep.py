"""A sweep: one load at every combination of one to three factors, and where to operate.

Knows how runs become cells and which depth is recommended: the one beyond which throughput
gains less per doubling than a stated share, while latency goes on growing. Decides no run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadstone.analysis.study.pooled import Pooled, pooled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.analysis.study.run_figures import LineFigures, RunFigures
    from loadstone.bundle.study import Factor

REPEAT: Final = "repeat"
STAGE: Final = "stage"
"""The factor of jobs that run one after the other."""
CONCURRENCY: Final = ("iodepth", "numjobs")
"""Factors along which an operating point makes sense, the one to prefer first."""
Z_95: Final = 1.959964


@dataclass(frozen=True, slots=True)
class Axis:
    """A factor and its values, in the order they were asked for."""

    name: str
    values: tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One combination: values in the order of the axes. `found` is None when nothing was measured."""

    values: tuple[Factor, ...]
    found: Pooled | None
    sound: Pooled | None
    """The same of the valid runs alone, which is what is recommended by."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """An operating point along one axis, for fixed values of the others.

    `value` is None when throughput still gains more than asked at the last value. `gain_beyond` is
    the largest gain per doubling beyond the point (up to the last value where `value` is None), and
    `certain` whether it stays on its side of the asked share by more than its 95 % error.
    """

    axis: str
    others: tuple[tuple[str, Factor], ...]
    value: Factor
    at: Pooled
    share_of_best: float
    gain_beyond: float
    certain: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """All of it."""

    axes: tuple[Axis, ...]
    cells: tuple[SweepCell, ...]
    advice: tuple[OperatingPoint, ...]

    @property
    def left_out(self) -> int:
        """How many combinations were measured and have no valid run."""
        return sum(cell.found is not None and cell.sound is None for cell in self.cells)

    @property
    def rates(self) -> tuple[str, ...]:
        """Which of `iops` and `bandwidth` say something: both where small and large blocks meet."""
        large = {cell.found.large_blocks for cell in self.cells if cell.found is not None}
        return tuple(name for name, kind in (("iops", False), ("bandwidth", True)) if kind in large)

    def cell(self, values: Sequence[Factor]) -> Pooled | None:
        """Return one combination, None when it was not measured."""
        return next((cell.found for cell in self.cells if cell.values == tuple(values)), None)


def shown(name: str, value: Factor) -> str:
    """Write a value of a factor as it is asked for: block sizes as 4k."""
    if name == "bs" and isinstance(value, int):
        for letter, size in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
            if value >= size and value % size == 0:
                return f"{value // size}{letter}"
    return f"{value}%" if name == "read" else str(value)


def named(name: str, value: Factor) -> str:
    """Write a factor with its value; a stage is its own name."""
    return str(value) if name == STAGE else f"{name} {shown(name, value)}"


def sweep(runs: Sequence[RunFigures], settings: Mapping[str, Any]) -> Sweep:
    """Return a sweep; `settings` as the study has them: `axes` in order and `gain_share`."""
    axes = tuple(Axis(name, tuple(values)) for name, values in settings["axes"])
    groups: dict[tuple[Factor, ...], list[tuple[LineFigures, bool]]] = {}
    for run in runs:
        values = tuple(run.point.factors.get(axis.name) for axis in axes)
        groups.setdefault(values, [])
        if run.whole is not None:
            groups[values].append((run.whole, run.valid))
    cells = tuple(
        SweepCell(
            values, pooled([one for one, _ in measured]), pooled([one for one, valid in measured if valid])
        )
        for values, measured in groups.items()
    )
    return Sweep(axes, cells, tuple(_advice(axes, cells, float(settings["gain_share"]))))


def _advice(axes: Sequence[Axis], cells: Sequence[SweepCell], gain_share: float) -> list[OperatingPoint]:
    name = next((name for name in CONCURRENCY if any(axis.name == name for axis in axes)), None)
    if name is None:
        return []
    along = next(index for index, axis in enumerate(axes) if axis.name == name)
    lines: dict[tuple[tuple[str, Factor], ...], list[tuple[float, Pooled]]] = {}
    for cell in cells:
        value = cell.values[along]
        if cell.sound is None or not isinstance(value, int | float):
            continue
        others = tuple((axis.name, cell.values[i]) for i, axis in enumerate(axes) if i != along)
        lines.setdefault(others, []).append((float(value), cell.sound))
    operating_points = [
        recommend(name, others, sorted(line, key=lambda one: one[0]), gain_share)
        for others, line in lines.items()
    ]
    return [one for one in operating_points if one is not None]


def recommend(
    axis: str,
    others: tuple[tuple[str, Factor], ...],
    line: Sequence[tuple[float, Pooled]],
    gain_share: float,
) -> OperatingPoint | None:
    """Return the operating point of one line, values ascending; None for fewer than two values.

    It is the first value beyond which no later one gains `gain_share` per doubling, so that a
    single dip does not end the search.
    """
    if len(line) < 2:
        return None
    best = max(figures.rate.value for _, figures in line)
    for index, (value, figures) in enumerate(line[:-1]):
        gains = [_gain((value, figures), later) for later in line[index + 1 :]]
        gain, error = max(gains, key=lambda one: one[0])
        if gain < gain_share:
            whole = int(value) if value.is_integer() else value
            share = figures.rate.value / best
            return OperatingPoint(axis, others, whole, figures, share, gain, gain + Z_95 * error < gain_share)
    gain, error = _gain(line[-2], line[-1])
    last = line[-1][1]
    return OperatingPoint(
        axis, others, None, last, last.rate.value / best, gain, gain - Z_95 * error > gain_share
    )


def _gain(low: tuple[float, Pooled], high: tuple[float, Pooled]) -> tuple[float, float]:
    """Return what throughput gains per doubling from one value to a higher one, and its error."""
    doublings = math.log2(high[0] / low[0])
    ratio = high[1].rate.value / low[1].rate.value
    # An error that is not known makes nothing certain: comparisons with NaN are false.
    relative = [
        math.nan if one.rate.error is None else one.rate.error / one.rate.value for _, one in (low, high)
    ]
    factor = ratio ** (1 / doublings)
    return factor - 1, factor / doublings * math.hypot(*relative)
