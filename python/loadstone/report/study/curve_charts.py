"""The charts of latency curves, each as a Vega-Lite specification.

Knows what is drawn and how: latency upwards, the load achieved to the right, IOPS for small
blocks and bandwidth for large ones, valid points joined in the order of the rate asked for, and the
others as crosses that nothing joins. Knows no page.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from loadstone.messages import say
from loadstone.report.pictures.charts import (
    COUNT_LABEL,
    TIME_LABEL,
    Spec,
    axis_from_zero,
    bandwidth_unit,
    base,
    inked,
    latency_axis,
    without_legend,
)
from loadstone.report.study.charts import bounds, reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.study.curve import Curve, LoadPoint
    from loadstone.analysis.study.slo import Slo

WIDE_SPREAD: Final = 20.0
"""A latency so many times the middle one that is valid leaves no room for the others on a linear axis."""
SERIES: Final = ("mean", "p50", "p99", "p99.9")
RULE: Final[Spec] = {"type": "rule", "opacity": 0.55, "clip": True}
CROSS: Final[Spec] = {
    "type": "point", "shape": "M-1,-1L1,1M-1,1L1,-1", "size": 45, "strokeWidth": 1.6, "clip": True,
}  # fmt: skip
KNEE: Final[Spec] = {
    "type": "point", "shape": "diamond", "size": 130, "color": "#222", "strokeWidth": 2, "clip": True,
}  # fmt: skip


def latency_of_curves(curves: Sequence[Curve], series: str, slo: Slo | None = None) -> Spec | None:
    """Return one latency of every curve against the load achieved, as hockey sticks are drawn.

    Several curves are told apart at low loads, too: their axis of latency is logarithmic.
    """
    x = _LoadAxis(curves)
    rows = [row for curve in curves for row in _rows(curve, x, {"line": curve.name}, (series,))]
    title = (
        say("report.chart.mean_latency")
        if series == "mean"
        else say("report.chart.latency_percentile", percentile=series)
    )
    limit, knees = _limit(slo, (series,)), _knees(curves, x, series)
    title = f"{title} against {x.title}{_marked(rows, knees)}"
    every = list(dict.fromkeys(curve.name for curve in curves))
    spec = _curves(
        title, rows, x, field="line", limit=limit, knees=knees, logarithmic=len(curves) > 1, every=every
    )
    absent = [name for name in every if not any(row["line"] == name for row in rows)]
    if spec is None or not absent:
        return spec
    below = say("report.chart.no_percentile", names=", ".join(absent))
    return spec | {"title": {"text": title, "subtitle": below, "subtitleColor": "#555"}}


def percentiles_of_curve(curve: Curve, slo: Slo | None = None) -> Spec | None:
    """Return mean and percentiles of one curve against the load achieved."""
    x = _LoadAxis([curve])
    rows = _rows(curve, x, {}, SERIES)
    title = say("report.chart.latency_against", load=x.title) + (f": {curve.name}" if curve.name else "")
    title += _marked(rows, [])
    return _curves(title, rows, x, field="series", limit=_limit(slo, SERIES), knees=[])


def _marked(rows: Sequence[Spec], knees: Sequence[Spec]) -> str:
    """Say what the marks beside the lines are; a single knee has its word in the chart."""
    marks = [say("report.chart.diamond_knee")] if len(knees) > 1 else []
    marks += [say("report.chart.cross_not_valid")] if not all(row["valid"] for row in rows) else []
    return f" ({', '.join(marks)})" if marks else ""


class _LoadAxis:
    """What a load is told in: IOPS for small blocks, bandwidth for large ones."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        self.large = bool(curves) and all(curve.large_blocks for curve in curves)
        values = [load.bandwidth.value for curve in curves for load in curve.loads]
        self.size, unit = bandwidth_unit(max(values, default=1.0)) if self.large else (1.0, "IOPS")
        self.title = say("report.axis.bandwidth", unit=unit) if self.large else "IOPS"

    def of(self, load: LoadPoint) -> Estimate:
        return load.bandwidth if self.large else load.iops

    def at(self, curve: Curve, iops: float) -> float:
        """Return the place of a load of so many I/Os per second, between those that were measured."""
        return curve.bytes_per_s(iops) / self.size if self.large else iops

    def channel(self, field: str) -> Spec:
        return axis_from_zero(field, self.title, label=None if self.large else COUNT_LABEL, ticks=6)


def _rows(curve: Curve, x: _LoadAxis, common: Spec, series: Sequence[str]) -> list[Spec]:
    """Return a row per point and series, in the order of the rate asked for."""
    rows: list[Spec] = []
    for name in series:
        for at, load in enumerate(curve.loads):
            estimate = _value(load, name)
            if estimate is None:
                continue
            value, interval = estimate
            low, high = interval or (value, value)
            across = bounds(x.of(load)) or (x.of(load).value, x.of(load).value)
            rows.append(
                {
                    "x": x.of(load).value / x.size,
                    "x_low": across[0] / x.size,
                    "x_high": across[1] / x.size,
                    "v": value,
                    "low": max(low, value / 100),
                    "high": high,
                    "at": at,
                    "valid": load.valid,
                    "series": name,
                    **common,
                }
            )
    return rows


def _value(load: LoadPoint, name: str) -> tuple[float, tuple[float, float] | None] | None:
    if name == "mean":
        return load.mean_ns.value, bounds(load.mean_ns)
    percent = float(name.removeprefix("p"))
    value = load.percentiles_ns[percent]
    return None if value is None else (float(value), load.intervals_ns[percent])


def _curves(
    title: str,
    rows: list[Spec],
    x: _LoadAxis,
    *,
    field: str,
    limit: Spec | None,
    knees: list[Spec],
    logarithmic: bool = False,
    every: Sequence[str] = (),
) -> Spec | None:
    if not rows:
        return None
    values, shown = [row["v"] for row in rows], [*reach(rows), *([limit["v"]] if limit else [])]
    sound_values = [row["v"] for row in rows if row["valid"]]
    y = latency_axis("v", [*values, *shown]) if logarithmic else _latency_y(values, shown, sound_values)
    names = list(dict.fromkeys(row[field] for row in rows))
    ink = inked(field, names, every)
    if len(names) == 1 and len(every) < 2:
        ink = without_legend(ink)
    who = ink["color"]
    places = {"x": x.channel("x"), "y": y}
    line: Spec = {"type": "line", "strokeWidth": 1.8, "clip": True, "point": {"size": 34}}
    # In the order of the rate asked for, so that a load that turns back is drawn as it was.
    order = {"field": "at", "type": "quantitative"}
    vertical = {"x": x.channel("x"), "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": who}
    across = {"x": x.channel("x_low"), "x2": {"field": "x_high"}, "y": y, "color": who}
    sound = {"transform": [{"filter": "datum.valid"}]}
    layers: list[Spec] = [
        sound | {"mark": RULE, "encoding": vertical},
        sound | {"mark": RULE, "encoding": across},
        sound | {"mark": line, "encoding": places | ink | {"order": order}},
    ]
    if not all(row["valid"] for row in rows):
        layers.append(
            {"transform": [{"filter": "!datum.valid"}], "mark": CROSS, "encoding": places | {"color": who}}
        )
    if limit is not None:
        layers += _level(limit, y)
    if knees:
        at = {"data": {"values": knees}}
        word = {"type": "text", "dy": -13, "color": "#222", "clip": True}
        layers.append(at | {"mark": KNEE, "encoding": places})
        # One word has room; those of several curves would lie on each other, so the title has it.
        if len(knees) == 1:
            layers.append(
                at | {"mark": word, "encoding": places | {"text": {"value": say("report.column.knee")}}}
            )
    return base(title, rows) | {"layer": layers}


def _level(limit: Spec, y: Spec) -> list[Spec]:
    """Return the line of a limit with its words at the left, where curves are low."""
    at = {"data": {"values": [limit]}}
    mark = {"type": "rule", "color": "#888", "strokeDash": [5, 4], "clip": True}
    word = {"type": "text", "align": "left", "dy": -7, "dx": 4, "color": "#555", "clip": True}
    return [
        at | {"mark": mark, "encoding": {"y": y}},
        at | {"mark": word, "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "text"}}},
    ]


def _latency_y(values: Sequence[float], shown: Sequence[float], sound: Sequence[float]) -> Spec:
    """Return a linear axis from zero, as readers of such curves know it, or a logarithmic one.

    `sound`: those of valid loads, which crosses far above them shall not press onto the axis.
    """
    if max(values) > WIDE_SPREAD * statistics.median(sound or values):
        return latency_axis("v", [*values, *shown])
    top = min(max(shown), 1.3 * max(values))
    return {
        "field": "v",
        "type": "quantitative",
        "scale": {"domain": [0, top], "nice": True},
        "axis": {"title": None, "labelExpr": TIME_LABEL, "tickCount": 6},
    }


def _limit(slo: Slo | None, series: Sequence[str]) -> Spec | None:
    if slo is None:
        return None
    name = "mean" if slo.percent is None else f"p{slo.percent:g}"
    return {"v": float(slo.limit_ns), "text": slo.text} if name in series else None


def _knees(curves: Sequence[Curve], x: _LoadAxis, series: str) -> list[Spec]:
    if series != "mean":
        return []
    return [
        {"x": x.at(curve, curve.knee.load), "v": curve.knee.latency_ns}
        for curve in curves
        if curve.knee is not None
    ]
