"""The charts of a report, each as a Vega-Lite specification.

Knows what is drawn, in which units and colours. Every chart gets data the analysis has
already reduced, and is `None` when there is nothing to draw. Knows no page.
Colours are Okabe and Ito's, which people with any colour vision can tell apart
(https://jfly.uni-koeln.de/color/).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from loadstone.analysis.heatmap import heatmap
from loadstone.analysis.requested_ops import added_up_names
from loadstone.analysis.series import percentile_column, series
from loadstone.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.latency import Latency
    from loadstone.analysis.measurement import By
    from loadstone.analysis.summary import Summary
    from loadstone.analysis.totals import Total

Spec = dict[str, Any]
WARNING: Final = "#b3261e"
SMALL_TIME: Final = {
    "field": "t",
    "type": "quantitative",
    "axis": {"title": say("report.axis.time_s"), "grid": False, "tickCount": 5},
}
"""The horizontal axis of a small chart over time."""
SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"

COLOURS: Final = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A6A00", "#000000",
)  # fmt: skip
MAX_LINES: Final = len(COLOURS)
DASHES: Final = (
    *([1, 0], [6, 3], [2, 2], [9, 3, 2, 3]),
    *([12, 3], [1, 4], [9, 3, 2, 3, 2, 3], [4, 8]),
)
"""Of operations in one chart. A copy in a tree has seven; a ninth would look like the first."""
STROKE: Final[Spec] = {"symbolType": "stroke", "symbolSize": 400}
"""How a legend shows lines: of a point it would show the outline in dashes."""
SHAPES: Final = ("circle", "square", "triangle-up", "diamond")
UNSURE: Final = 0.4
GAP: Final = 2.5
"""So many of a line's usual steps without a value are a gap."""
LEAST_WINDOW: Final = 0.5
"""Of a whole one. In a shorter one at the end all that was in flight completes: its rate is nobody's."""
MAX_MARKS: Final = 9
"""Of a logarithmic axis."""
PER_COLUMN: Final = 2
"""Windows in a column of a heat map, which has half as many, so that the histograms are read once."""
MAX_RAMPS: Final = 32
MOVES_NOTHING: Final = ("sync", "open", "close", "connection")
BANDWIDTHS: Final = ((1 << 30, "GiB/s"), (1 << 20, "MiB/s"), (1 << 10, "KiB/s"))
TOTAL: Final = "total"
TOTAL_COLOUR: Final = COLOURS[-1]
NOT_BLACK: Final = "#8a8a8a"
"""In place of the total's colour."""
TOTAL_WIDTH: Final = 2.6
WIDTH: Final = 500
HEIGHT: Final = 290
LABEL_LIMIT: Final = 380
FONT: Final = "Helvetica, Arial, sans-serif"
PERCENTILES: Final = (50.0, 99.0, 99.9)

TIME_LABEL: Final = (
    "datum.value == 0 ? '0' : datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s'"
    " : datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms'"
    " : datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' µs'"
    " : format(datum.value, '~g') + ' ns'"
)
COUNT_LABEL: Final = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + 'M'"
    " : datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + 'k' : format(datum.value, '~g')"
)


def config() -> Spec:
    """Return what all charts have in common."""
    return {
        "font": FONT,
        "background": "white",
        "view": {"stroke": None},
        "axis": {
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titleColor": "#555",
            "labelColor": "#333",
            "gridColor": "#e6e6e6",
            "domainColor": "#999",
            "tickColor": "#999",
        },
        # On paper the font is wider than the one that labels are measured with.
        "axisY": {"titlePadding": 12},
        # The last label, moved inwards, would stand on the one before it.
        "axisX": {"labelSeparation": 10, "labelFlush": False},
        "legend": {
            "orient": "top",
            "title": None,
            "labelFontSize": 12,
            "columnPadding": 22,
            "offset": 6,
            "symbolStrokeWidth": 3,
        },
        "title": {"anchor": "start", "fontSize": 13, "fontWeight": "bold", "color": "#222", "offset": 10},
    }


def together(specs: Sequence[Spec], doubt: str | None = None) -> Spec:
    """Return one chart of many, two in a row, each with its own scales; a doubt stands above them."""
    marked = {} if doubt is None else {"title": {"text": doubt, "anchor": "start", "color": WARNING}}
    inner = [{k: v for k, v in spec.items() if k not in {"$schema", "config", "autosize"}} for spec in specs]
    return {
        "$schema": SCHEMA,
        "config": config(),
        "padding": 16,
        "columns": 2,
        "spacing": {"row": 36, "column": 44},
        **marked,
        "concat": inner,
        "resolve": {"scale": dict.fromkeys(("color", "stroke", "strokeDash", "shape"), "independent")},
    }


def window_ns(summary: Summary) -> int:
    """Return the length of a window, of which a run has as many as a chart can show."""
    return summary.measurement.window * summary.measurement.plan.interval_ns


def iops(summary: Summary, *, total: bool = False) -> Spec | None:
    """Return IOPS over time, one line per job and operation; with `total` one of all together, too."""
    return _rates(summary, "iops", "IOPS", COUNT_LABEL, total=total)


def bandwidth_unit(top: float) -> tuple[float, str]:
    """Return the unit that fits, in bytes per second, and its name."""
    size, unit = next(((size, unit) for size, unit in BANDWIDTHS if top >= size), (1, "B/s"))
    return float(size), unit


def bandwidth(summary: Summary, *, total: bool = False) -> Spec | None:
    """Return bandwidth over time, one line per job and operation, in one fitting unit."""
    return _rates(
        summary, "bytes_per_s", say("report.chart.bandwidth"), "format(datum.value, ',~g')", total=total
    )


def latency(summary: Summary, by: By, key: int) -> Spec | None:
    """Return latency percentiles and the maximum over time of one line, its operations together."""
    table = _windows(summary, by, PERCENTILES)
    table = table.filter((pl.col("key") == key) & (pl.col("ops") > 0) & (pl.col("op") != "sync"))
    names = {percentile_column(p): f"p{p:g}" for p in PERCENTILES} | {"max_ns": "max"}
    rows = [
        {"t": _middle_s(row), "ns": row[column], "op": row["op"], "p": name}
        for row in table.iter_rows(named=True)
        for column, name in names.items()
    ]
    # A gap within a line stays a gap; a line with nothing at all is no line.
    known = {(row["op"], row["p"]) for row in rows if row["ns"]}
    if not known:
        return None
    shown = [name for name in names.values() if any(name == p for _, p in known)]
    ops = list(dict.fromkeys(row["op"] for row in rows))
    lines = {(op, p): f"{op} {p}" if len(ops) > 1 else p for op in ops for p in shown if (op, p) in known}
    rows = [row | {"line": lines[row["op"], row["p"]]} for row in rows if (row["op"], row["p"]) in known]
    spec = time_chart(
        summary,
        say("report.chart.latency_over_time"),
        rows,
        names=list(lines.values()),
        span_s=_span_s(summary, by, key),
    )
    encoding = spec["layer"][-1]["encoding"]
    encoding["y"] = latency_axis("ns", [row["ns"] for row in rows if row["ns"]])
    if len(ops) > 1:
        # A colour for each percentile and a dash for each operation.
        encoding["color"]["scale"]["range"] = [COLOURS[shown.index(p)] for _, p in lines]
        encoding["strokeDash"]["scale"]["range"] = [DASHES[ops.index(op) % len(DASHES)] for op, _ in lines]
    return spec


def latency_heatmap(summary: Summary, by: By, key: int) -> Spec | None:
    """Return how one line's latencies were spread over time: colour is the share of a window's I/Os."""
    cells = heatmap(summary.measurement, by, key, window_ns=PER_COLUMN * window_ns(summary))
    if cells.height == 0:
        return None
    rows = [
        {
            "t0": row["start_ns"] / 1e9,
            "t1": row["end_ns"] / 1e9,
            "low": max(1, row["low_ns"]),
            "high": row["high_ns"],
            "share": round(100 * row["share"], 4),
        }
        for row in cells.iter_rows(named=True)
    ]
    bounds = [row["low"] for row in rows] + [row["high"] for row in rows]
    least = min(*(row["share"] for row in rows), 10)
    colours = {"type": "log", "scheme": "viridis", "reverse": True, "domain": [least, 100]}
    return {
        **base(say("report.chart.heat_map"), rows),
        # Without anti-aliasing neighbours share an edge; a hairline of the same colour closes the gap.
        "mark": {"type": "rect", "strokeWidth": 0.5, "clip": True, "aria": False},
        "encoding": {
            "x": time_axis(_span_s(summary, by, key), "t0"),
            "x2": {"field": "t1"},
            "y": latency_axis("low", bounds),
            "y2": {"field": "high"},
            "stroke": {"field": "share", "type": "quantitative", "scale": colours, "legend": None},
            "color": {
                "field": "share",
                "type": "quantitative",
                "scale": colours,
                "legend": {
                    "title": say("report.axis.share_of_ios"),
                    "titleFontWeight": "normal",
                    "columns": 6,
                    "format": "~g",
                    "values": [v for v in (0.001, 0.01, 0.1, 1, 10, 100) if v >= least],
                },
            },
        },
    }


def distribution(summary: Summary) -> Spec | None:
    """Return latency against percentile, out to the slowest I/O, by job and operation.

    The horizontal axis is 1 / (1 - p), so that each nine has the same room. Pale: fewer than
    ten samples lie beyond.
    """
    named = _jobs_or_all(summary)
    rows: list[Spec] = []
    for name, total, op in named:
        lat = total.ops[op].latencies.get("lat")
        if lat is not None:
            rows += [{**point, "line": name} for point in _tail(lat)]
    if not rows:
        return None
    names = [name for name, _, _ in named if _any(rows, "line", name)]
    encoding = {
        "x": percentile_axis(max(row["x"] for row in rows)),
        "y": latency_axis("ns", [row["ns"] for row in rows]),
        **inked("line", names),
    }
    line = {"type": "line", "strokeWidth": 1.8, "interpolate": "step-before", "clip": True}
    return {
        **base(say("report.chart.distribution"), rows),
        "encoding": encoding,
        "layer": [
            {"mark": line, "transform": [{"filter": "datum.sure"}]},
            {"mark": line | {"opacity": UNSURE}, "transform": [{"filter": "!datum.sure"}]},
        ],
    }


def _jobs_or_all(summary: Summary) -> list[tuple[str, Total, str]]:
    """Return the lines of a chart: one for each job and operation, or for all jobs where those are many."""
    named = _lines(summary.totals("job"))
    return named if len(named) <= MAX_LINES else _lines(summary.totals("all"))


def _tail(lat: Latency) -> list[Spec]:
    """Return the points of a distribution: those that enough samples lie beyond, then the others."""
    count, longest_ns = lat.count or 0, int(lat.max_ns or 0)
    points = [(1.0, max(1, int(lat.min_ns or 0)), True)]
    for beyond, value in lat.histogram.tail():
        inverse = 1 / beyond if beyond > 0 else 2.0 * count
        if inverse < points[-1][0] * 1.02 and beyond > 0:
            continue
        points.append((inverse, min(max(value, 1), longest_ns), beyond * count >= 9.5))
    points[-1] = (points[-1][0], max(1, longest_ns), False)
    sure = [(x, y) for x, y, known in points if known]
    rest = sure[-1:] + [(x, y) for x, y, known in points if not known]
    return [{"x": x, "ns": y, "sure": part is sure} for part in (sure, rest) for x, y in part]


def percentile_axis(top: float) -> Spec:
    """Return the logarithmic axis of percentiles up to `top`, which is 1 / (1 - p)."""
    labels = [(1, "0"), (2, "50"), (10, "90"), (100, "99"), (1e3, "99.9"), (1e4, "99.99"), (1e5, "99.999")]
    labels += [(1e6, "99.9999"), (1e7, "99.99999")]
    # Over many decades 0 and 50 are too near to each other to be labelled both.
    labels = [label for label in labels if label[0] != 2 or top <= 1e5]
    shown = [(value, text) for value, text in labels if value <= top * 1.2]
    expression = " : ".join(f"datum.value == {value:g} ? '{text}'" for value, text in shown) + " : ''"
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [1, max(10, top)], "nice": False},
        "axis": {
            "title": say("report.axis.percentile"),
            "values": [value for value, _ in shown],
            "labelExpr": expression,
            "labelOverlap": True,
            "labelSeparation": 4,
        },
    }


def spread(summary: Summary) -> Spec | None:
    """Return p50, p99, p99.9 and the maximum of each job and operation, side by side on one axis."""
    named = _jobs_or_all(summary)
    rows: list[Spec] = []
    for name, total, op in named:
        lat = total.ops[op].latencies.get("lat")
        if lat is not None:
            values = lat.percentiles(PERCENTILES)
            known = {**{f"p{percent:g}": value for percent, value in values.items()}, "max": lat.max_ns}
            rows += [
                {"line": name, "ns": value, "p": percentile} for percentile, value in known.items() if value
            ]
    if not rows:
        return None
    names = [name for name, _, _ in named if _any(rows, "line", name)]
    # Room for a wider font than the one the chart is laid out with.
    room = min(150, 8 * max(len(name) for name in names))
    axis = {"title": None, "labelLimit": 150, "minExtent": room}
    y = {"field": "line", "type": "nominal", "sort": names, "axis": axis}
    x = latency_axis("ns", [row["ns"] for row in rows])
    ends = {"aggregate": "min", "field": "ns"}, {"aggregate": "max", "field": "ns"}
    shown = [
        percentile
        for percentile in (*(f"p{percent:g}" for percent in PERCENTILES), "max")
        if _any(rows, "p", percentile)
    ]
    return {
        **base(say("report.chart.at_a_glance"), rows),
        "layer": [
            {
                "mark": {"type": "rule", "color": "#bbb", "strokeWidth": 2},
                "encoding": {"y": y, "x": x | ends[0], "x2": ends[1]},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
                "encoding": {"y": y, "x": x, "color": colour("p", shown), "shape": shaped("p", shown)},
            },
        ],
    }


def iops_by_host(summary: Summary) -> Spec | None:
    """Return IOPS over time, one line per host and operation; None for a run on one."""
    if not summary.totals("host"):
        return None
    return _rates(summary, "iops", say("report.chart.iops_of_hosts"), COUNT_LABEL, by="host")


def _rates(
    summary: Summary, field: str, title: str, label: str, *, by: By = "job", total: bool = False
) -> Spec | None:
    table = _by_line(summary, by)
    rows: list[Spec] = [
        {"t": _middle_s(row), "v": row[field], "line": row["line"]}
        for row in table.iter_rows(named=True)
        if field == "iops" or row["op"] not in MOVES_NOTHING
    ]
    if total and len({row["t"] for row in rows}) < len(rows):
        # Where nothing goes on at the same time every line is its own total.
        rows = [*_added_up(summary, field), *rows]
    if not rows:
        return None
    if field == "bytes_per_s":
        size, unit = bandwidth_unit(max((row["v"] for row in rows if row["v"] is not None), default=1.0))
        rows = [{**row, "v": None if row["v"] is None else row["v"] / size} for row in rows]
        title = f"{title}, {unit}"
    names = list(dict.fromkeys(row["line"] for row in rows))
    spec = time_chart(summary, title, rows, names=names, span_s=whole_s(summary))
    if names[0] == TOTAL:
        _draw_total(spec, names)
    spec["layer"][-1]["encoding"]["y"] = axis_from_zero("v", label=label)
    return spec


def _added_up(summary: Summary, field: str) -> list[Spec]:
    """Return what everything did together in each window; none where an operation has no rate."""
    table = _added_up_windows(summary)
    known = pl.col(field).is_not_null().all()
    whole = table.group_by("stage", "start_ns", maintain_order=True).agg(
        pl.col("end_ns").max(), pl.when(known).then(pl.col(field).sum()).alias(field)
    )
    return [{"t": _middle_s(row), "v": row[field], "line": TOTAL} for row in whole.iter_rows(named=True)]


def _draw_total(spec: Spec, names: list[str]) -> None:
    """Let the line of the total be black and broad, and the others have the colours they have elsewhere."""
    encoding = spec["layer"][-1]["encoding"]
    scale = encoding["color"]["scale"]
    others = (*COLOURS[:-1], NOT_BLACK)
    scale["range"] = [TOTAL_COLOUR, *(others[at % len(others)] for at in range(len(names) - 1))]
    widths = [TOTAL_WIDTH, *(1.2 for _ in names[1:])]
    encoding["strokeWidth"] = {
        "field": "line",
        "type": "nominal",
        "scale": {"domain": names, "range": widths},
        "legend": None,
    }


def totals_over_time(summary: Summary) -> list[Spec]:
    """Return bandwidth and IOPS of all jobs together, by operation, with the middle of each window."""
    table = _added_up_windows(summary)
    return [{**row, "t": _middle_s(row)} for row in table.iter_rows(named=True)]


def _by_line(summary: Summary, by: By) -> pl.DataFrame:
    """Series with a column `line`: by job and operation, or by operation when those are too many."""
    named = _lines(summary.totals(by))
    few = len(named) <= MAX_LINES
    table = _windows(summary, by if few else "all", ())
    names = {(total.line.key, op): name for name, total, op in named} if few else {}
    line = [
        names.get((key, op), op if not few else None)
        for key, op in zip(table["key"], table["op"], strict=True)
    ]
    return table.with_columns(pl.Series("line", line, pl.String)).filter(pl.col("line").is_not_null())


def _added_up_windows(summary: Summary) -> pl.DataFrame:
    """Return the series of what may be added up, of all jobs together."""
    counted = sorted(added_up_names(summary.measurement.plan))
    return _windows(summary, "all", ()).filter(pl.col("op").is_in(counted))


def _windows(summary: Summary, by: By, percentiles: tuple[float, ...]) -> pl.DataFrame:
    """Return the series to draw, without slivers: the moment in which a stage drains is no window."""
    every_ns = window_ns(summary)
    table = series(summary.measurement, by, window_ns=every_ns, percentiles=percentiles)
    lengths = pl.col("end_ns") - pl.col("start_ns")
    return table.filter(lengths >= pl.min_horizontal(LEAST_WINDOW * every_ns, lengths.max()))


def _lines(totals: Sequence[Total]) -> list[tuple[str, Total, str]]:
    """Name, line and operation of everything that happened; names are as short as they can be."""
    every = [(total, op) for total in totals for op in total.ops]
    jobs, ops = {total.line.key for total, _ in every}, {op for _, op in every}
    named = []
    for total, op in every:
        one_op = len(total.ops) == 1
        name = total.line.name if one_op and (len(jobs) > 1 or len(ops) == 1) else f"{total.line.name} {op}"
        named.append((op if len(jobs) == 1 else name, total, op))
    return named


def time_chart(
    summary: Summary,
    title: str,
    rows: list[Spec],
    *,
    names: list[str],
    span_s: tuple[float, float],
) -> Spec:
    """Return a line per name of `line` over time; ramps are shaded. The caller adds the vertical axis."""
    few = len(rows) < 60 * len(names)
    rows = _broken_at_gaps(rows)
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.8, "clip": True, "point": {"size": 14} if few else False},
        "encoding": {
            "x": time_axis(span_s, "t"),
            **inked("line", names),
        },
    }
    return {**base(title, rows), "layer": [*_ramps(summary, span_s), line]}


def _broken_at_gaps(rows: Sequence[Spec]) -> list[Spec]:
    """Return the rows with one of nothing where a line has none for a while: no line goes over a gap."""
    lines: dict[str, list[Spec]] = {}
    for row in sorted(rows, key=lambda one: float(one["t"])):
        lines.setdefault(row["line"], []).append(row)
    with_gaps: list[Spec] = []
    for name, points in lines.items():
        steps = sorted(after["t"] - before["t"] for before, after in itertools.pairwise(points))
        usual = steps[len(steps) // 2] if steps else 0.0
        for before, after in itertools.pairwise(points):
            with_gaps.append(before)
            if after["t"] - before["t"] > GAP * usual:
                with_gaps.append({"t": (before["t"] + after["t"]) / 2, "line": name})
        with_gaps.append(points[-1])
    return with_gaps


def _ramps(summary: Summary, span_s: tuple[float, float]) -> list[Spec]:
    spans = {(start, ramp_end) for start, ramp_end, _ in summary.measurement.spans if ramp_end > start}
    if not spans or len(spans) > MAX_RAMPS:
        return []
    values = [{"t0": start / 1e9, "t1": end / 1e9} for start, end in sorted(spans)]
    return [
        {
            "data": {"values": values},
            "mark": {"type": "rect", "color": "#eee", "clip": True},
            "encoding": {"x": time_axis(span_s, "t0"), "x2": {"field": "t1"}},
        }
    ]


def base(title: str, rows: list[Spec]) -> Spec:
    """Return a chart without marks."""
    return {
        "$schema": SCHEMA,
        "title": title,
        "width": WIDTH,
        "height": HEIGHT,
        # The whole picture has this size, so that plots beside each other line up.
        "autosize": {"type": "fit", "contains": "padding"},
        "config": config(),
        "data": {"values": rows},
    }


def whole_s(summary: Summary) -> tuple[float, float]:
    """Return the time axis of the whole run."""
    return 0.0, max(summary.measurement.ended_ns / 1e9, 1e-3)


def _span_s(summary: Summary, by: By, key: int) -> tuple[float, float]:
    """Return when the line's first stream began and its last one ended."""
    line = summary.measurement.lines(by)[key]
    spans = [summary.measurement.spans[index] for index in line.streams]
    ran = [(start, end) for start, _, end in spans if end > start]
    if not ran:
        return whole_s(summary)
    return min(start for start, _ in ran) / 1e9, max(end for _, end in ran) / 1e9


def time_axis(span_s: tuple[float, float], field: str) -> Spec:
    """Return the horizontal axis that all charts over time have."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": list(span_s), "nice": False},
        "axis": {"title": say("report.axis.time_s"), "grid": False, "tickCount": 6, "labelFlush": False},
    }


def axis_from_zero(
    field: str, title: str | None = None, *, label: str | None = COUNT_LABEL, ticks: int = 5
) -> Spec:
    """Return a linear axis from zero, by default of counts; `label` is the expression that writes one."""
    axis = {"title": title, "labelExpr": label, "tickCount": ticks}
    shown = {name: one for name, one in axis.items() if name == "title" or one is not None}
    return {"field": field, "type": "quantitative", "scale": {"zero": True}, "axis": shown}


def log_marks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return the ends of a logarithmic axis, 1, 2 or 5 of a decade, and its marks, no more than have room."""
    marks = [step * 10.0**power for power in range(-3, 14) for step in (1, 2, 5)]
    bottom = max([mark for mark in marks if mark <= low], default=marks[0])
    top = min([mark for mark in marks if mark >= high and mark > bottom], default=high)
    inside = [mark for mark in marks if bottom <= mark <= top]
    if len(inside) > MAX_MARKS:
        inside = [mark for mark in inside if f"{mark:.0e}".startswith("1")]
    return bottom, top, inside


def latency_axis(field: str, values_ns: Sequence[float]) -> Spec:
    """Return a logarithmic axis over whole steps of 1, 2, 5; labelled where there is room."""
    bottom, top, inside = log_marks(min(values_ns), max(values_ns))
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": [bottom, top], "nice": False},
        "axis": {"title": None, "values": inside, "labelExpr": TIME_LABEL},
    }


def colour(field: str, names: list[str], every: Sequence[str] = (), width: int = WIDTH) -> Spec:
    """Return a colour per name and its legend, which a chart of that width has room for.

    `every`: the names of all charts that stand together, so that each has one colour on all of them.
    """
    if every:
        return colour(field, list(every)) | {
            "legend": {**colour(field, names)["legend"], "values": names},
        }
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(names))]
    # Text is drawn in a font that is not known here, so it is given room for a wide one.
    longest = min(max(len(name) for name in names) * 8, LABEL_LIMIT)
    legend = {"columns": max(1, min(4, width // (longest + 44))), "labelLimit": LABEL_LIMIT}
    scale = {"domain": names, "range": colours}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def inked(field: str, names: list[str], every: Sequence[str] = (), **legend: Any) -> dict[str, Spec]:
    """Return a colour and dashes per line, so that lines are told apart in grey, and a legend of both.

    `legend`: what else is said of it.
    """
    who = colour(field, names, every)
    domain = who["scale"]["domain"]
    who["legend"] = who["legend"] | STROKE | legend
    dashes = {"domain": domain, "range": [DASHES[at % len(DASHES)] for at in range(len(domain))]}
    return {"color": who, "strokeDash": who | {"scale": dashes}}


def without_legend(ink: dict[str, Spec]) -> dict[str, Spec]:
    """Return the same for a chart that needs no legend."""
    return {name: channel | {"legend": None} for name, channel in ink.items()}


def shaped(field: str, names: list[str]) -> Spec:
    """Return a shape per name, by which points are told apart in grey; the legend is that of `colour`."""
    return colour(field, names) | {"scale": {"domain": names, "range": list(SHAPES[: len(names)])}}


def _middle_s(row: Spec) -> float:
    return float(row["start_ns"] + row["end_ns"]) / 2e9


def _any(rows: list[Spec], field: str, name: str) -> bool:
    return any(row[field] == name for row in rows)
