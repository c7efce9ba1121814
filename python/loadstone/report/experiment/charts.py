"""The charts of an experiment, each as a Vega-Lite specification.

Knows what is drawn: effects with their intervals, how factors depend on each other, runs in the
order of time, shares of what explains their differences. Knows no page. Computes nothing but
ratios to what was expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.effects.design_matrix import written
from loadstone.effects.metric_names import name_of
from loadstone.messages import say
from loadstone.report.experiment import tables, words
from loadstone.report.pictures import forest
from loadstone.report.pictures.charts import (
    COLOURS,
    COUNT_LABEL,
    TIME_LABEL,
    bandwidth_unit,
    base,
    colour,
    log_marks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.effects.findings import Interaction, LevelEffect
    from loadstone.report.experiment.story import ExperimentStory
    from loadstone.report.pictures.charts import Spec

LOOKS: Final = {
    "better": ("#00775a", "triangle-up"),
    "worse": ("#c45500", "triangle-down"),
    "alike": ("#444444", "square"),
    "open": ("#8a8a8a", "circle"),
    "confounded": ("#7a4a9e", "diamond"),
    "requested": ("#8a8a8a", "circle"),
    "unknown": ("#8a8a8a", "cross"),
}
MAX_EFFECTS: Final = 30
MAX_INTERACTIONS: Final = 6
MAX_SMALL: Final = 12
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
WIDTH: Final = 400
HEIGHT: Final = 260
SMALL: Final = (380, 230)
NAME_SHARE: Final = 0.6
"""Of the width of a small picture, for the name of a run: where its dot is, there is half of it at least."""
WIDE: Final = 20.0
"""From so many times between the least and the largest value on an axis is logarithmic."""
OFF_LABEL: Final = "datum.value == 0 ? '0 %' : format(datum.value * 100, '+,.3~r') + ' %'"
SHARE_STEP: Final = 16
"""Height of the bar of one share."""
LEAST_REACH: Final = 0.01
"""Of an axis of differences, either way: what is closer than that is drawn as close."""


def effects(story: ExperimentStory, *, narrow: bool = False) -> Spec | None:
    """Return every effect on the metric that the experiment is about, with its interval."""
    level_effects = [one for one in story.effects.effects if one.first and one.change is not None]
    if len(level_effects) > MAX_EFFECTS:
        starts = {one.name: one.levels[0] for one in story.effects.factors}
        level_effects = [one for one in level_effects if one.against == starts[one.factor]]
    rows = [_effect(story, one) for one in level_effects[: 2 * MAX_EFFECTS]]
    if not rows:
        return None
    looks = {words.KINDS[kind]: look for kind, look in LOOKS.items()}
    title = say("report.chart.change_of", metric=name_of(story.metric))
    return forest.forest(title, rows, looks, narrow=narrow)


def _effect(story: ExperimentStory, one: LevelEffect) -> Spec:
    change = one.change
    assert change is not None  # noqa: S101 - it was chosen because it is there
    where = f"{one.pattern}: " if len(story.effects.patterns) > 1 else ""
    return {
        "line": f"{where}{one.factor}={one.level} against {one.against}",
        "at": change.ratio,
        "low": change.ratio if change.low is None else max(change.low, change.ratio * 1e-3),
        "high": change.ratio if change.high is None else min(change.high, change.ratio * 1e3),
        "kind": words.KINDS[one.judgement],
    }


def interactions(story: ExperimentStory) -> list[Spec]:
    """Return the metric at the levels of two factors: those that depend on each other, else the likeliest."""
    known = [one for one in story.effects.interactions if one.first and one.found is not None]
    clear = [one for one in known if one.found] or sorted(known, key=lambda one: one.raw_p or 1.0)[:2]
    drawn = [_interaction(story, one) for one in clear[:MAX_INTERACTIONS]]
    return [spec for spec in drawn if spec is not None]


def _interaction(story: ExperimentStory, one: Interaction) -> Spec | None:
    lines, across = one.factors
    levels = {factor.name: factor.levels for factor in story.effects.factors}
    size, unit, label = _axis(story, one.pattern)
    rows = _means_of_pairs(story, one, levels, size)
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["line"]) for row in rows))
    x = {
        "field": "x", "type": "ordinal", "sort": levels[across],
        "axis": {"title": across, "labelAngle": 0, "labelLimit": 110}, "scale": {"padding": 0.4},
    }  # fmt: skip
    bottom, top = min(row["low"] for row in rows), max(row["high"] for row in rows)
    y: Spec = {"type": "quantitative", "scale": {"zero": False}}
    y["axis"] = {"title": unit, "labelExpr": label, "tickCount": 5}
    if top > WIDE * bottom:
        bottom, top, marks = log_marks(bottom, top)
        y["scale"] = {"type": "log", "domain": [bottom, top], "nice": False}
        y["axis"] |= {"values": marks}
    ink = colour("line", names, width=WIDTH)
    shape = {
        "field": "line", "type": "nominal", "legend": ink["legend"],
        "scale": {"domain": names, "range": [SHAPES[at % len(SHAPES)] for at in range(len(names))]},
    }  # fmt: skip
    where = one.pattern if len(story.effects.patterns) > 1 else ""
    kind = say("report.chart.depend") if one.found else say("report.mark.not_significant")
    # Lines beside each other, so that their intervals do not cover each other.
    offset = {"field": "line", "type": "nominal", "sort": names, "scale": {"range": [-9, 9]}}
    place = {"x": x, "xOffset": offset, "color": ink}
    value = y | {"field": "v"}
    ends = {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    dots = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    title = {
        "text": say("report.chart.of_factors", one=lines, other=across, kind=kind),
        "subtitle": where,
        "subtitleColor": "#555",
    }
    return base(say("report.chart.factors", one=lines, other=across), rows) | {
        "title": title,
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.6}, "encoding": place | {"y": value}},
            {"mark": {"type": "rule", "strokeWidth": 1.4}, "encoding": place | ends},
            {"mark": dots, "encoding": place | {"y": value, "shape": shape}},
        ],
    }


def _means_of_pairs(
    story: ExperimentStory, one: Interaction, levels: Mapping[str, Sequence[str]], size: float
) -> list[Spec]:
    lines, across = one.factors
    rows: list[Spec] = []
    for line in levels[lines]:
        for at in levels[across]:
            mean = story.mean(one.pattern, story.metric, {lines: line, across: at})
            if mean is not None:
                low, high = mean.low or mean.value, mean.high or mean.value
                values = {"v": mean.value / size, "low": low / size, "high": high / size}
                rows.append({"line": f"{lines}={line}", "x": at, **values})
    return rows


def _axis(story: ExperimentStory, pattern: str) -> tuple[float, str, str]:
    metric = story.metric
    if metric == "bandwidth_bytes_per_s":
        top = max(
            (one.value for one in story.effects.means if one.pattern == pattern and one.metric == metric),
            default=1.0,
        )
        size, unit = bandwidth_unit(top)
        return size, unit, "format(datum.value, ',~g')"
    label = COUNT_LABEL if metric == "iops" else TIME_LABEL
    return 1.0, name_of(metric), label


def over_time(story: ExperimentStory) -> list[Spec]:
    """Return each pattern's runs in the order of time, each against the mean of its combination."""
    return [
        spec
        for pattern in story.effects.patterns[:MAX_SMALL]
        if (spec := _course(story, pattern)) is not None
    ]


def _course(story: ExperimentStory, pattern: str) -> Spec | None:
    factor, metric = _main(story, pattern), name_of(story.metric)
    long = max((row.started_s for row in story.table.rows), default=0.0) >= 600
    rows = _runs_against_means(story, pattern, factor, 60 if long else 1)
    if not rows:
        return None
    levels = next((one.levels for one in story.effects.factors if one.name == factor), [])
    kinds = [
        kind
        for kind in (f"{factor}={level}" for level in levels)
        if any(row["level"] == kind for row in rows)
    ]
    ink = colour("level", kinds or ["run"], width=SMALL[0])
    shape = {
        "field": "level", "type": "nominal", "legend": ink["legend"],
        "scale": {"domain": kinds or ["run"], "range": list(SHAPES[: max(1, len(kinds))])},
    }  # fmt: skip
    x = _time_axis(in_minutes=long)
    reach = max(LEAST_REACH, *(abs(row["off"]) for row in rows))
    y = {
        "field": "off", "type": "quantitative",
        # Nothing is less than nothing.
        "scale": {"domain": [max(-1.0, -reach), reach], "nice": True},
        "axis": {
            "title": say("report.axis.against_mean", metric=metric), "labelExpr": OFF_LABEL, "tickCount": 5,
        },
    }  # fmt: skip
    none = {"data": {"values": [{"off": 0}]}, "mark": {"type": "rule", "color": "#999", "strokeDash": [3, 3]}}
    dots = {"type": "point", "filled": True, "size": 46, "opacity": 0.9}
    middle = max(row["t"] for row in rows) / 2
    layers: list[Spec] = [
        none | {"encoding": {"y": y}},
        {"mark": dots, "encoding": {"x": x, "y": y, "color": ink, "shape": shape}},
        # A name goes from its dot to where there is room for it.
        *(
            {
                "transform": [{"filter": f"datum.outlier && datum.t {where} {middle}"}],
                "mark": {
                    "type": "text", "dy": -10, "fontSize": 11, "color": COLOURS[1], "align": align,
                    "limit": NAME_SHARE * SMALL[0],
                },
                "encoding": {"x": x, "y": y, "text": {"field": "run"}},
            }
            for where, align in ((">", "right"), ("<=", "left"))
        ),
    ]  # fmt: skip
    return base(pattern, rows) | {"width": SMALL[0], "height": SMALL[1], "layer": layers}


def _time_axis(*, in_minutes: bool) -> Spec:
    title = say("report.axis.time_min") if in_minutes else say("report.axis.time_s")
    axis = {"title": title, "grid": False, "tickCount": 5}
    return {"field": "t", "type": "quantitative", "axis": axis}


def _runs_against_means(story: ExperimentStory, pattern: str, factor: str | None, unit_s: int) -> list[Spec]:
    metric = story.metric
    cells = {tuple(one.levels.items()): one.value for one in story.cells(metric).get(pattern, ())}
    names = [one.name for one in story.effects.factors]
    outliers = {one.run for one in story.effects.outliers if (one.pattern, one.metric) == (pattern, metric)}
    rows: list[Spec] = []
    for row in story.table.rows:
        mean = cells.get(tuple((name, row.levels[name]) for name in names))
        if row.pattern != pattern or mean is None or row.invalid is not None or not row.metrics.get(metric):
            continue
        rows.append(
            {
                "t": row.started_s / unit_s,
                "off": row.metrics[metric] / mean - 1,
                "level": f"{factor}={row.levels[factor]}" if factor else "run",
                "outlier": row.run in outliers,
                "run": row.run.removeprefix(f"{pattern},"),
            }
        )
    return rows


def _main(story: ExperimentStory, pattern: str) -> str | None:
    """Return the factor that explains most."""
    names = [one.name for one in story.effects.factors]
    shares = [
        one
        for one in story.effects.shares
        if (one.pattern, one.metric) == (pattern, story.metric) and one.term in names
    ]
    most = max(shares, key=lambda one: one.eta_squared, default=None)
    return most.term if most is not None else (names[0] if names else None)


def shares(story: ExperimentStory) -> Spec | None:
    """Return for each pattern what explains the differences between runs.

    A bar for each term, not one of all: where levels follow the time, or combinations were not measured
    equally often, shares do not add up to 1.
    """
    metric_shares = [one for one in story.effects.shares if one.metric == story.metric]
    if not metric_shares or not story.effects.factors:
        return None
    terms = [written(one) for one in tables.terms(story)]
    rows: list[Spec] = [
        {"pattern": one.pattern, "term": written(one.term), "share": one.eta_squared} for one in metric_shares
    ]
    patterns = _patterns(rows)
    greys = {"order in time": "#b8b8b8", "not explained": "#e2e2e2"}
    inks = [greys.get(term, COLOURS[at % len(COLOURS)]) for at, term in enumerate(terms)]
    return base(say("report.chart.explains", metric=name_of(story.metric)), rows) | {
        "width": WIDTH,
        "height": {"step": SHARE_STEP},
        # Names are drawn in a font that is wider than the one they are measured with.
        "padding": {"left": 5 + 1.5 * max(map(len, terms)), "right": 12, "top": 5, "bottom": 5},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "share", "type": "quantitative", "stack": None, "scale": {"domain": [0, 1]},
                "axis": {"title": say("report.experiment.share"), "format": "%", "tickCount": 5},
            },
            "y": {
                "field": "term", "type": "nominal", "sort": terms, "axis": {"title": None, "labelLimit": 240}
            },
            "row": {
                "field": "pattern", "type": "nominal", "sort": patterns, "title": None, "spacing": 10,
                "header": {"labelOrient": "top", "labelAnchor": "start", "labelFontWeight": "bold"},
            },
            "color": {
                "field": "term", "type": "nominal", "scale": {"domain": terms, "range": inks}, "legend": None
            },
        },
    }  # fmt: skip


def _patterns(rows: Sequence[Spec]) -> list[str]:
    return list(dict.fromkeys(str(row["pattern"]) for row in rows))
