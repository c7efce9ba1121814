"""The charts of sweeps, repeats and lists, each as a Vega-Lite specification.

Knows what is drawn, in which units. Every chart gets numbers the analysis has made. Knows no
page; curves are drawn in `study_curve_charts`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from loadstone.analysis.study.rate_over_time import rate_over_time
from loadstone.analysis.study.sweep import named, shown
from loadstone.messages import say
from loadstone.report.pictures.charts import (
    SMALL_TIME,
    Spec,
    axis_from_zero,
    bandwidth_unit,
    base,
    colour,
    inked,
    latency_axis,
    shaped,
    without_legend,
)
from loadstone.report.study.sweep import TITLES, value, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.estimate import Estimate
    from loadstone.analysis.study.patterns import StudyPattern
    from loadstone.analysis.study.pooled import Pooled
    from loadstone.analysis.study.repeats import RepeatedLine
    from loadstone.analysis.study.run_figures import RunFigures
    from loadstone.analysis.study.sweep import Sweep
    from loadstone.bundle.study import Factor

Z_95: Final = 1.96
LEAST_SPAN: Final = 0.005
"""Each way from the mean: an axis of less would show nothing but rounding."""
SMALL: Final = (360, 220)
MAX_PASSES: Final = 8
LABEL_LIMIT: Final = 140
LETTER: Final = 7.0
"""Of a label, with room for a wider font than the one the chart is laid out with."""
WIDE: Final = 4.0
"""Intervals wider than this factor are cut at the edge of the chart."""
DARK: Final = 1.1
"""Beyond the middle of a scale by this much a colour is too dark for black letters."""
POINT: Final[Spec] = {"type": "point", "filled": True, "size": 45, "opacity": 1}
SHAPE: Final[Spec] = {"condition": {"test": "!datum.valid", "value": "cross"}, "value": "circle"}
INK: Final[Spec] = {"condition": {"test": "!datum.valid", "value": "#a33c00"}, "value": "#0072B2"}
"""A run that is not valid is shown for what it is."""


def map_of_sweep(sweep: Sweep, fixed: Sequence[Factor], what: str) -> Spec | None:
    """Return a heat map of the last two axes, with the values written in it.

    `what` is one of `study_sweep.TITLES`.
    """
    down, across = sweep.axes[-2:]
    rows = _rows_of_map(sweep, fixed, what)
    known = [row["v"] for row in rows if row["v"] is not None]
    if not known:
        return None
    # Half of the largest is light at least, so that what hardly differs is drawn as much alike.
    most, least = max(known), min(*known, max(known) / 2)
    for row in rows:
        row["dark"] = least > 0 and row["v"] is not None and row["v"] > DARK * (most * least) ** 0.5
    title = ", ".join([TITLES[what], *_fixed(sweep, fixed)])
    places: Spec = {
        "x": _ordinal("x", across.name, [shown(across.name, value) for value in across.values]),
        "y": _ordinal("y", down.name, [shown(down.name, value) for value in down.values]),
    }
    scheme = "oranges" if what == "p99" else "blues"
    ink = {"condition": {"test": "datum.dark", "value": "white"}, "value": "#222"}
    return base(title, rows) | {
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "white"},
                "encoding": places
                | {
                    "color": {
                        "field": "v",
                        "type": "quantitative",
                        "scale": {
                            "type": "log" if least > 0 else "linear",
                            "scheme": scheme,
                            "domain": [least, most],
                            "nice": False,
                        },
                        "legend": None,
                    }
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": places | {"text": {"field": "text"}, "color": ink},
            },
        ]
    }


def _rows_of_map(sweep: Sweep, fixed: Sequence[Factor], what: str) -> list[Spec]:
    """Return the cells of the last two axes that were measured, each with its value and text."""
    down, across = sweep.axes[-2:]
    rows: list[Spec] = []
    for line, column in itertools.product(down.values, across.values):
        cell = sweep.cell([*fixed, line, column])
        if cell is not None:
            place = {"x": shown(across.name, column), "y": shown(down.name, line)}
            rows.append({**place, "v": value(cell, what), "text": written(cell, what)})
    return rows


def lines_of_sweep(sweep: Sweep, fixed: Sequence[Factor], what: str) -> Spec | None:
    """Return one of `study_sweep.TITLES` over the last axis, a line per value of the one before it."""
    *others, last = sweep.axes[len(fixed) :]
    rows: list[Spec] = []
    for line in itertools.product(*(axis.values for axis in others)):
        name = ", ".join(named(axis.name, one) for axis, one in zip(others, line, strict=True))
        for step in last.values:
            cell = sweep.cell([*fixed, *line, step])
            figure = None if cell is None else value(cell, what)
            if cell is not None and figure is not None:
                low, high = _within(cell, what) or (figure, figure)
                rows.append(
                    {"x": shown(last.name, step), "v": float(figure), "low": low, "high": high, "line": name}
                )
    if not rows:
        return None
    title = TITLES[what]
    if what == "p99":
        y = latency_axis("v", reach(rows))
    else:
        size, unit = bandwidth_unit(max(row["v"] for row in rows)) if what == "bandwidth" else (1.0, "")
        title = f"{title}, {unit}" if unit else title
        for row in rows:
            row.update({key: row[key] / size for key in ("v", "low", "high")})
        y = axis_from_zero("v")
    x = _ordinal("x", last.name, [shown(last.name, step) for step in last.values])
    lines = list(dict.fromkeys(row["line"] for row in rows))
    ink = inked("line", lines) if others else {}
    who = {name: channel for name, channel in ink.items() if name == "color"}
    rule = {"type": "rule", "opacity": 0.6, "clip": True}
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 34}, "clip": True}
    return base(", ".join([title, *_fixed(sweep, fixed)]), rows) | {
        "layer": [
            {"mark": rule, "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}} | who},
            {"mark": mark, "encoding": {"x": x, "y": y} | ink},
        ]
    }


def _within(pooled: Pooled, what: str) -> tuple[float, float] | None:
    if what == "p99":
        return pooled.intervals_ns[99.0]
    return bounds(pooled.iops if what == "iops" else pooled.bandwidth)


def rate_of_repeats(line: RepeatedLine) -> Spec | None:
    """Return each repeat's rate with its own error, over the 95 % interval of their mean."""
    rate = line.rate
    if rate is None:
        return None
    size, unit = bandwidth_unit(rate.high) if line.large_blocks else (1.0, "IOPS")
    rows: list[Spec] = [
        {"x": str(number), "v": value / size} for number, value in enumerate(rate.values, start=1)
    ]
    layers: list[Spec] = []
    reach = max(rate.half_width or 0.0, LEAST_SPAN * rate.mean.value)
    ends = [min(rate.low, rate.mean.value - reach), max(rate.high, rate.mean.value + reach)]
    domain = [max(0.0, end) / size for end in ends]
    y = axis_from_zero("v") | {"scale": {"domain": domain, "nice": True}}
    if rate.half_width is not None:
        band = {
            # Of a few runs that lie far apart it reaches below nothing; no rate does.
            "low": max(0.0, rate.mean.value - rate.half_width) / size,
            "high": (rate.mean.value + rate.half_width) / size,
            "v": rate.mean.value / size,
        }
        of_band = {"data": {"values": [band]}}
        layers += [
            of_band
            | {
                "mark": {"type": "rect", "color": "#56B4E9", "opacity": 0.22},
                "encoding": {"y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            of_band | {"mark": {"type": "rule", "color": "#0072B2"}, "encoding": {"y": y}},
        ]
    order = [row["x"] for row in rows]
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 70, "color": "#0072B2"},
            "encoding": {"x": _ordinal("x", "repeat", order), "y": y},
        }
    )
    name = "" if (line.job, line.op) == ("total", "all") else f": {line.job} {line.op}"
    title = say("report.chart.of_each_repeat", unit=unit, name=name)
    below = say("report.chart.repeat_lines")
    title_spec = {"text": title, "subtitle": below, "subtitleColor": "#555"}
    shown_as: Spec = {"title": title_spec} if rate.half_width is not None else {}
    return base(title, rows) | shown_as | {"layer": layers}


def latency_of_runs(runs: Sequence[RunFigures]) -> Spec | None:
    """Return p50 and p99 of each run in the order run: the whole, or every job."""
    rows: list[Spec] = []
    order = [run.point.name for run in runs]
    for run in runs:
        for line in [run.whole] if run.whole is not None else run.lines:
            for percent in (50.0, 99.0):
                value = line.percentiles_ns[percent]
                if value is not None:
                    shown_as = {"series": f"p{percent:g}", "valid": line.valid}
                    rows.append({"x": run.point.name, "v": float(value), **shown_as})
    if not rows:
        return None
    y = latency_axis("v", [row["v"] for row in rows])
    series = ["p50", "p99"]
    place = {"x": _ordinal("x", None, order), "y": y, "color": colour("series", series)}
    return base(say("report.chart.latency_of_runs") + _left_out(rows), rows) | {
        "layer": [
            {
                "transform": [{"filter": "datum.valid"}],
                "mark": POINT,
                "encoding": place | {"shape": shaped("series", series)},
            },
            {
                "transform": [{"filter": "!datum.valid"}],
                "mark": POINT | {"shape": "cross"},
                "encoding": place,
            },
        ]
    }


def rate_of_runs(runs: Sequence[RunFigures]) -> Spec | None:
    """Return the rate of each run in the order run, with 95 % of its own error."""
    rows: list[Spec] = []
    for run in runs:
        for line in [run.whole] if run.whole is not None else run.lines:
            if line.iops is not None and line.op != "sync":
                within = bounds(line.iops) or (line.iops.value, line.iops.value)
                ends = {"low": within[0], "high": within[1], "valid": line.valid}
                rows.append({"x": run.point.name, "v": line.iops.value, **ends})
    if not rows:
        return None
    x = _ordinal("x", None, [run.point.name for run in runs])
    y = axis_from_zero("v")
    return base(say("report.chart.iops_of_runs") + _left_out(rows), rows) | {
        "layer": [
            {
                "mark": {"type": "rule", "color": "#0072B2"},
                "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": POINT,
                "encoding": {"x": x, "y": y, "shape": SHAPE, "color": INK},
            },
        ]
    }


def _left_out(rows: Sequence[Spec]) -> str:
    return "" if all(row["valid"] for row in rows) else say("report.chart.some_not_valid")


def over_time(study_pattern: StudyPattern) -> Spec | None:
    """Return the rate of one pattern over time, a line for each pass; small, to be seen beside others."""
    large = study_pattern.measured is not None and study_pattern.measured.large_blocks
    rows: list[Spec] = []
    for number, run in enumerate(study_pattern.runs[:MAX_PASSES], start=1):
        for at, rate in rate_over_time(run, study_pattern.job, large=large):
            rows.append({"t": at, "v": rate, "line": f"pass {number}"})
    if not rows:
        return None
    size, unit = bandwidth_unit(max(row["v"] for row in rows)) if large else (1.0, "IOPS")
    for row in rows:
        row["v"] /= size
    names = list(dict.fromkeys(row["line"] for row in rows))
    ink = inked("line", names)
    if len(names) == 1:
        ink = without_legend(ink)
    spec = base(study_pattern.name + ("" if study_pattern.valid else say("report.chart.not_valid")), rows)
    mark = {"type": "line", "strokeWidth": 1.4}
    return spec | {
        "width": SMALL[0],
        "height": SMALL[1],
        "mark": mark,
        "encoding": {"x": SMALL_TIME, "y": axis_from_zero("v", unit, ticks=4), **ink},
    }


def bounds(estimate: Estimate) -> tuple[float, float] | None:
    """Return the 95 % interval of an estimate, None without an error."""
    if estimate.error is None:
        return None
    # Neither a rate nor a latency is below zero, however large its error.
    return max(0.0, estimate.value - Z_95 * estimate.error), estimate.value + Z_95 * estimate.error


def _fixed(sweep: Sweep, fixed: Sequence[Factor]) -> list[str]:
    return [named(axis.name, value) for axis, value in zip(sweep.axes, fixed, strict=False)]


def _ordinal(field: str, title: str | None, order: Sequence[str]) -> Spec:
    longest = max((len(text) for text in order), default=0)
    # Upright: a slanted name of the first run would begin left of the picture, and many would touch.
    room = min(LABEL_LIMIT, round(LETTER * longest))
    upright = {"labelAngle": -90, "labelLimit": LABEL_LIMIT, "labelOverlap": True}
    upright |= {"labelSeparation": 0, "minExtent": room}
    angle = upright if longest * len(order) > 64 else {"labelAngle": 0}
    return {
        "field": field,
        "type": "ordinal",
        "sort": None,
        "scale": {"domain": list(order)},
        "axis": {"title": title, "grid": False, **angle},
    }


def reach(rows: Sequence[Spec]) -> list[float]:
    """Return the latencies an axis must show: values, and intervals as far as they leave room for them."""
    bounds_ns = [
        min(max(row[key], row["v"] / WIDE), row["v"] * WIDE) for row in rows for key in ("low", "high")
    ]
    return [*(row["v"] for row in rows), *bounds_ns]
