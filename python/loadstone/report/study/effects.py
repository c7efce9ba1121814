"""The effects inside a study that has repeats, each with its interval, as charts and tables.

Knows two of them: how far the passes of a pattern are from their mean, and what each step of a sweep
changes. Both rest on valid runs alone. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.study import repeats
from loadstone.analysis.study.sweep import named, shown
from loadstone.analysis.study.sweep_steps import steps
from loadstone.messages import say
from loadstone.report.pictures.charts import Spec, base
from loadstone.report.study.repeat_errors import widened
from loadstone.report.table_heads import table_heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.patterns import StudyPattern
    from loadstone.analysis.study.sweep import Sweep

MAX_ROWS: Final = 30
ROW: Final = 22
WIDE: Final = 620
NEAR: Final = 20.0
"""So many of them to half the width of a chart: numbers nearer than this would touch."""
ALPHA: Final = 0.05
INK: Final = "#0072B2"
STEP_HEADINGS: Final = table_heads("step", "", "rate_change", "interval")


def passes(patterns: Sequence[StudyPattern]) -> Spec | None:
    """Return each valid pass as its distance from the mean of its pattern, over the mean's 95 % interval."""
    points: list[Spec] = []
    bars: list[Spec] = []
    for one in [each for each in patterns if each.sound is not None and each.valid > 1][:MAX_ROWS]:
        lines = [line for _, line in one.each if line.valid]
        rates = [line.rate for line in lines if line.rate is not None]
        repeated_rate = repeats.repeated([rate.value for rate in rates], [rate.error for rate in rates], "")
        if repeated_rate is None or not repeated_rate.mean.value:
            continue
        repeated_rate = widened(repeated_rate)
        numbers = [int(run.point.factors.get(repeats.REPEAT) or 0) for run, line in one.each if line.valid]
        points += [
            {"line": one.name, "v": 100 * (value / repeated_rate.mean.value - 1), "n": str(number or at)}
            for at, (value, number) in enumerate(zip(repeated_rate.values, numbers, strict=True), start=1)
        ]
        if repeated_rate.half_width_share is not None:
            reach = 100 * repeated_rate.half_width_share
            bars.append({"line": one.name, "low": -reach, "high": reach})
    if not points:
        return None
    names = list(dict.fromkeys(row["line"] for row in points))
    # An interval of two passes may be wider than everything else: it is cut at the edge.
    far = max(3 * max(abs(row["v"]) for row in points), 0.5)
    x = {
        "type": "quantitative",
        "scale": {"domain": [-far, far], "nice": True},
        "axis": {"title": say("report.axis.from_mean_of_passes"), "tickCount": 7},
    }
    y = _names(names)
    at, texts = {"x": x | {"field": "v"}, "y": y}, _numbers(points, far / NEAR)
    words = {"type": "text", "dy": -10, "fontSize": 10, "color": "#555", "clip": True}
    return base(say("report.chart.passes"), points) | {
        "width": WIDE,
        "height": 90 + (ROW + 6) * len(names),
        "layer": [
            {
                "data": {"values": bars},
                "mark": {"type": "bar", "height": 12, "color": "#56B4E9", "opacity": 0.3, "clip": True},
                "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "color": INK, "clip": True},
                "encoding": at,
            },
            {"data": {"values": texts}, "mark": words, "encoding": at | {"text": {"field": "n"}}},
        ],
    }


def _numbers(points: Sequence[Spec], near: float) -> list[Spec]:
    """Return the numbers over the points: one text where they would lie on each other, in their order."""
    texts: list[Spec] = []
    for row in sorted(points, key=lambda one: (str(one["line"]), float(one["v"]))):
        last = texts[-1] if texts else None
        if last is not None and last["line"] == row["line"] and row["v"] - last["end"] < near:
            last["ns"].append(row["n"])
            last["end"] = row["v"]
        else:
            texts.append({"line": row["line"], "start": row["v"], "end": row["v"], "ns": [row["n"]]})
    return [
        {"line": one["line"], "v": (one["start"] + one["end"]) / 2, "n": " ".join(one["ns"])} for one in texts
    ]


def step_rows(sweep: Sweep) -> list[list[str]]:
    """Return rows of `STEP_HEADINGS`: where, from and to, the change with its interval, what it is worth."""
    *others, last = sweep.axes
    rows = []
    for one in steps(sweep):
        pairs = zip(others, one.fixed, strict=True)
        where = ", ".join(named(axis.name, value) for axis, value in pairs)
        step = f"{named(last.name, one.low)} → {shown(last.name, one.high)}"
        low, high = one.change.low, one.change.high
        interval = units.NONE if low is None or high is None else f"{_share(low)} to {_share(high)}"
        is_clear = one.change.p is not None and one.change.p < ALPHA
        judgement = say("report.mark.significant") if is_clear else say("report.mark.not_significant")
        rows.append([f"{where} {step}".strip(), judgement, _share(one.change.change), interval])
    return rows


def _share(value: float) -> str:
    return f"{100 * value:+.1f}{units.THIN}%"


def _names(names: Sequence[str]) -> Spec:
    room = min(260, 7 * max(len(name) for name in names))
    axis = {"title": None, "labelLimit": 260, "minExtent": room}
    return {"field": "line", "type": "nominal", "sort": list(names), "axis": axis}
