"""A grid of numbers as bars or as a surface, seen from above one corner.

Knows the projection and what hides what: faces are drawn from the back to the front. Knows no
study. Heights are logarithmic when the numbers span more than `LOG_FROM` times, and begin at a
whole power of ten then; else they begin at zero. The projection is isometric (Carlbom and
Paciorek, Planar geometric projections, ACM Computing Surveys 10, 1978).
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from loadstone.report.pictures.charts import COLOURS, Spec, base

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOG_FROM: Final = 30.0
TICKS: Final = 5
UNIT: Final = 30.0
"""Pixels of one place of the grid along its axis."""
TALL: Final = 170.0
GAP: Final = 0.14
"""Part of a place that a bar leaves free on each side."""
_COS, _SIN = math.cos(math.pi / 6), math.sin(math.pi / 6)
_LIGHT: Final = {"top": 1.0, "right": 0.72, "left": 0.86}
_LOW, _HIGH = (222, 235, 247), (8, 69, 148)
"""Colours of the lowest and the highest part of a surface."""
_WALL, _LINE = "#f6f6f6", "#d5d5d5"

Point = tuple[float, float, float]
"""Across, towards the viewer, up; the first two in places of the grid, the last in parts of the height."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers above 0 by row and column, None where there is none, with the names of both."""

    title: str
    across: str
    """What differs between columns."""
    columns: Sequence[str]
    down: str
    rows: Sequence[str]
    values: Sequence[Sequence[float | None]]
    write: Callable[[float], str]
    """A number as it stands at the axis."""


def drawn(grid: Grid, form: Literal["bars", "surface"]) -> Spec | None:
    """Return the drawing; None for less than two rows or columns, or without a number."""
    present = [value for row in grid.values for value in row if value]
    if min(len(grid.rows), len(grid.columns)) < 2 or not present:
        return None
    height = _Height.of(present)
    faces = [*_walls(grid, height)]
    faces += _bars(grid, height) if form == "bars" else _surface(grid, height)
    return _spec(grid, faces, _labels(grid, height))


@dataclass(frozen=True, slots=True)
class _Height:
    """Where on the way up a number is, 0 to 1."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float]) -> _Height:
        lowest, highest = min(values), max(values)
        if highest > LOG_FROM * lowest:
            return cls(10.0 ** math.floor(math.log10(lowest) - 1e-9), highest, log=True)
        return cls(0.0, highest, log=False)

    def at(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return value / self.high

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(round(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            every = -(-len(powers) // TICKS)
            return [10.0**power for power in powers][::every]
        step = 10.0 ** math.floor(math.log10(self.high / 2))
        step = next(step * k for k in (1, 2, 2.5, 5, 10) if self.high / (step * k) <= TICKS)
        return [step * k for k in range(int(self.high / step) + 1)]


def _flat(point: Point) -> tuple[float, float]:
    """Return where a point is on the paper: to the right, and up."""
    across, near, up = point
    return (across - near) * UNIT * _COS, up * TALL - (across + near) * UNIT * _SIN


_Face = tuple[list[Point], str, str]
"""Corners, colour, colour of the edge."""


def _walls(grid: Grid, height: _Height) -> list[_Face]:
    """Return the two walls behind the grid with lines at the ticks, and the floor."""
    wide, deep = float(len(grid.columns)), float(len(grid.rows))
    walls: list[_Face] = [
        ([(0, 0, 0), (0, deep, 0), (0, deep, 1), (0, 0, 1)], _WALL, _LINE),
        ([(0, 0, 0), (wide, 0, 0), (wide, 0, 1), (0, 0, 1)], _WALL, _LINE),
        ([(0, 0, 0), (wide, 0, 0), (wide, deep, 0), (0, deep, 0)], _WALL, _LINE),
    ]
    for tick in height.ticks():
        up = height.at(tick)
        walls.append(([(0, deep, up), (0, 0, up), (wide, 0, up), (0, 0, up)], "none", _LINE))
    return walls


def _bars(grid: Grid, height: _Height) -> list[_Face]:
    faces: list[_Face] = []
    for row, column in _back_to_front(len(grid.rows), len(grid.columns)):
        value = grid.values[row][column]
        if not value:
            continue
        up = height.at(value)
        x0, x1, y0, y1 = column + GAP, column + 1 - GAP, row + GAP, row + 1 - GAP
        colour = COLOURS[row % len(COLOURS)]
        sides: dict[str, list[Point]] = {
            "right": [(x1, y0, 0), (x1, y1, 0), (x1, y1, up), (x1, y0, up)],
            "left": [(x0, y1, 0), (x1, y1, 0), (x1, y1, up), (x0, y1, up)],
            "top": [(x0, y0, up), (x1, y0, up), (x1, y1, up), (x0, y1, up)],
        }
        faces += [(corners, _dimmed(colour, _LIGHT[side]), "white") for side, corners in sides.items()]
    return faces


def _surface(grid: Grid, height: _Height) -> list[_Face]:
    faces: list[_Face] = []
    for row, column in _back_to_front(len(grid.rows) - 1, len(grid.columns) - 1):
        places = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
        values = [grid.values[r][c] for r, c in places]
        ups = [height.at(value) for value in values if value]
        if len(ups) == len(places):
            corners: list[Point] = [(c + 0.5, r + 0.5, up) for (r, c), up in zip(places, ups, strict=True)]
            faces.append((corners, _between(sum(ups) / len(ups)), "white"))
    return faces


def _back_to_front(rows: int, columns: int) -> list[tuple[int, int]]:
    return sorted(itertools.product(range(rows), range(columns)), key=sum)


def _labels(grid: Grid, height: _Height) -> list[Spec]:
    wide, deep = len(grid.columns), len(grid.rows)
    labels = [
        _label((0, deep + 0.25, height.at(tick)), _short(grid.write(tick)), "right")
        for tick in height.ticks()
    ]
    labels += [
        _label((column + 0.5, deep + 0.35, 0), name, "right") for column, name in enumerate(grid.columns)
    ]
    labels += [_label((wide + 0.35, row + 0.5, 0), name, "left") for row, name in enumerate(grid.rows)]
    longest = max(map(len, grid.columns)) / 4 + 1.1
    labels.append(_label((wide / 2, deep + longest, 0), grid.across, "right", "#555"))
    longest = max(map(len, grid.rows)) / 4 + 1.1
    labels.append(_label((wide + longest, deep / 2, 0), grid.down, "left", "#555"))
    return labels


def _short(text: str) -> str:
    """Leave out zeros behind the point: a tick is a round number."""
    return re.sub(r"\.0+(?=\D|$)", "", text)


def _label(place: Point, text: str, align: str, colour: str = "#333") -> Spec:
    x, y = _flat(place)
    return {"x": x, "y": y, "text": text, "align": align, "ink": colour}


def _spec(grid: Grid, faces: Sequence[_Face], labels: Sequence[Spec]) -> Spec:
    corners = [
        {"x": x, "y": y, "face": number, "order": order, "fill": fill, "edge": edge}
        for number, (points, fill, edge) in enumerate(faces)
        for order, (x, y) in enumerate(map(_flat, points))
    ]
    wide, deep = len(grid.columns), len(grid.rows)
    room = 64.0
    left, right = -deep * UNIT * _COS - room, wide * UNIT * _COS + room
    bottom, top = -(wide + deep) * UNIT * _SIN - room / 2, TALL + 8
    place = {
        "x": {"field": "x", "type": "quantitative", "scale": {"domain": [left, right]}, "axis": None},
        "y": {"field": "y", "type": "quantitative", "scale": {"domain": [bottom, top]}, "axis": None},
    }
    as_it_is = {"type": "nominal", "scale": None, "legend": None}
    shapes = {
        "data": {"values": corners},
        "mark": {"type": "line", "filled": True, "strokeWidth": 0.7, "interpolate": "linear-closed"},
        "encoding": {
            **place,
            "detail": {"field": "face", "type": "ordinal"},
            "order": {"field": "order", "type": "quantitative"},
            "fill": {"field": "fill", **as_it_is},
            "stroke": {"field": "edge", **as_it_is},
        },
    }
    texts = [
        {
            "data": {"values": [label for label in labels if label["align"] == align]},
            "mark": {"type": "text", "align": align, "baseline": "middle", "fontSize": 11},
            "encoding": {**place, "text": {"field": "text"}, "color": {"field": "ink", **as_it_is}},
        }
        for align in ("left", "right")
    ]
    return base(grid.title, []) | {
        "width": right - left,
        "height": top - bottom,
        "layer": [shapes, *texts],
    }


def _dimmed(colour: str, light: float) -> str:
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part * light):02x}" for part in parts)


def _between(part: float) -> str:
    mixed = (round(low + (high - low) * part) for low, high in zip(_LOW, _HIGH, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)
