"""Ratios with their intervals on a logarithmic axis: what is better, what is worse, what is not told apart.

Knows how such a chart is drawn. Knows no comparison and no experiment.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.report.pictures.charts import Spec, base

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEPS: Final = (
    -95, -90, -80, -70, -60, -50, -40, -30, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50, 100, 200, 400, 900,
    1900, 4900, 9900,
)  # fmt: skip
"""Changes in percent that an axis may be labelled with."""
LABELS: Final = 6
NARROW: Final = 480
"""So narrow that its words can be read on a phone; the names stand above their rows for that."""
LABEL: Final = 440
WIDE: Final = 700
"""Of a page or a screen: the names stand beside their rows, and thrice as many rows have room."""
LEAST_PLOT: Final = 260
LETTER: Final = 7.2
"""The width of a letter of a name."""
BESIDE: Final = {
    "title": None,
    "domain": False,
    "ticks": False,
    "labelLimit": LABEL,
    "labelFontSize": 12,
    "labelColor": "#333",
    "grid": True,
    "gridColor": "#f0f0f0",
}
HALO: Final = {"stroke": "white", "strokeWidth": 5, "strokeJoin": "round"}
"""Behind a name, so that no line of the axis goes through it."""
ROW: Final = 36
ROW_BESIDE: Final = 17
LABEL_ABOVE: Final = -12
NEAR_END: Final = 24
"""Pixels: half of the longest label."""
WIDEST: Final = 100.0
"""Where two runs differ wildly the end of an interval is nought or without bounds, and no axis reaches it."""
MARGIN: Final = 0.05
"""Of the axis on either side, so that no mark lies on its end."""
LEGEND_COLUMNS: Final = 4


def forest(
    title: str, rows: Sequence[Spec], looks: Mapping[str, tuple[str, str]], *, narrow: bool = False
) -> Spec:
    """Return the chart, on whose axis halving is as far as doubling; names too long for it stand above rows.

    A row has `line`, `at`, `low`, `high` (ratios) and `kind`; `looks` has each kind's colour and shape.
    An interval is drawn as far as `WIDEST` from its middle and from no change, whichever is farther: so
    one that has no change within it is seen to have it.
    """
    rows = [_within_reach(row) for row in rows]
    ends = [row[end] for row in rows for end in ("low", "high", "at")]
    names = list(dict.fromkeys(row["line"] for row in rows))
    above = narrow or _label_width(names) > WIDE - LEAST_PLOT
    x = _axis(min(*ends, 0.995), max(*ends, 1.005))
    y = {
        "field": "line",
        "type": "nominal",
        "sort": names,
        # What draws the chart has no font to measure the names with, and would cut them.
        "axis": None if above else BESIDE | {"minExtent": _label_width(names)},
        "scale": {"type": "point", "padding": 0.7},
    }
    kinds = [kind for kind in looks if any(row["kind"] == kind for row in rows)]
    legend = {"columns": LEGEND_COLUMNS}
    colours = {"domain": kinds, "range": [looks[kind][0] for kind in kinds]}
    shapes = {"domain": kinds, "range": [looks[kind][1] for kind in kinds]}
    ink = {"field": "kind", "type": "nominal", "scale": colours, "legend": legend}
    form = {"field": "kind", "type": "nominal", "scale": shapes, "legend": legend}
    return base(title, rows) | {
        "width": NARROW if narrow else WIDE,
        "height": 90 + (ROW if above else ROW_BESIDE) * len(names),
        "layer": [
            {
                "data": {"values": [{"x": 1.0}]},
                "mark": {"type": "rule", "color": "#999", "strokeDash": [3, 3]},
                "encoding": {"x": x | {"field": "x"}},
            },
            *(_names(names, y) if above else []),
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y, "color": ink},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"x": x | {"field": "at"}, "y": y, "color": ink, "shape": form},
            },
        ],
    }


def _label_width(names: Sequence[str]) -> float:
    return LETTER * max(map(len, names))


def _within_reach(row: Spec) -> Spec:
    return {
        **row,
        "low": max(row["low"], min(row["at"], 1.0) / WIDEST),
        "high": min(row["high"], max(row["at"], 1.0) * WIDEST),
    }


def _axis(low: float, high: float) -> Spec:
    margin = (high / low) ** MARGIN
    low, high = low / margin, high * margin
    return {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {
            "title": say("report.column.change"),
            "values": _thinned(
                [1 + step / 100 for step in STEPS if low <= 1 + step / 100 <= high], low, high
            ),
            "labelExpr": "datum.value == 1 ? 'none' : format((datum.value - 1) * 100, '+,.3~r') + ' %'",
            "labelOverlap": True,
            # A label so near the end would reach over it, and be cut.
            "labelFlush": NEAR_END,
        },
    }


def _names(names: Sequence[str], y: Spec) -> list[Spec]:
    """Return the layers with the name of each row above it, and a halo below the name."""
    drawn = {
        "data": {"values": [{"line": name} for name in names]},
        "encoding": {"x": {"value": 2}, "y": y, "text": {"field": "line"}},
    }
    word = {
        "type": "text",
        "align": "left",
        "dy": LABEL_ABOVE,
        "limit": LABEL,
        "fontSize": 12,
        "color": "#333",
    }
    return [drawn | {"mark": word | HALO}, drawn | {"mark": word}]


def _thinned(values: Sequence[float], low: float, high: float) -> list[float]:
    """Keep labels that have room; none, 0 %, always stays."""
    if not values:
        return [1.0]
    room = (math.log(high) - math.log(low)) / LABELS

    def place(value: float) -> float:
        # A label near an end is moved inwards (`labelFlush`), towards its neighbour.
        return min(max(math.log(value), math.log(low) + room / 2), math.log(high) - room / 2)

    labels = [1.0]
    for value in sorted(values, key=lambda one: abs(math.log(one))):
        if all(abs(place(value) - place(one)) >= room * 0.9 for one in labels):
            labels.append(value)
    return sorted(labels)
