"""The charts of a comparison, each as a Vega-Lite specification.

Knows what is drawn: differences with their intervals, courses over time, distributions overlaid,
curves on a logarithmic latency axis. Knows no page. Computes nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from loadstone.comparison.metric import IOPS
from loadstone.comparison.phase import rate_over_time
from loadstone.messages import say
from loadstone.report.pictures.charts import (
    SMALL_TIME,
    Spec,
    axis_from_zero,
    bandwidth_unit,
    base,
    inked,
    latency_axis,
    percentile_axis,
)
from loadstone.report.pictures.forest import forest as drawn
from loadstone.report.study import curve_charts as study_curve_charts
from loadstone.report.study.curve import renamed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.comparison.compare import ComparisonTable
    from loadstone.comparison.matrix import Effect
    from loadstone.comparison.pairing import PatternRow
    from loadstone.comparison.phase import LatencyKind

GREY: Final = "#8a8a8a"
COLOURS: Final = {
    "better": "#00775a", "worse": "#c45500", "same": GREY, "unrepeated": GREY, "unknown": GREY,
}  # fmt: skip
SHAPES: Final = {
    "better": "triangle-up", "worse": "triangle-down", "same": "circle", "unrepeated": "diamond",
    "unknown": "cross",
}  # fmt: skip
WORDS: Final = {
    "better": say("report.mark.better"),
    "worse": say("report.mark.worse"),
    "same": say("report.mark.not_significant"),
    "unrepeated": say("report.mark.single_runs"),
    "unknown": say("report.mark.cannot_say"),
}
MAX_EFFECTS: Final = 30
"""More rows than this are not read: then only the first quantity of each pattern is drawn."""
MAX_SMALL: Final = 12
MAX_DISTRIBUTIONS: Final = 6
SMALL: Final = (300, 150)


def forest(comparison: ComparisonTable, *, narrow: bool = False) -> Spec | None:
    """Return every change with its 95 % interval; on its axis halving is as far as doubling."""
    known = [
        one
        for one in comparison.effects
        if not one.again and one.contrast is not None and math.isfinite(one.contrast.change)
    ]
    known = [one for one in known if one.metric.quantity != "errors"]
    if len(known) > MAX_EFFECTS:
        known = [one for one in known if one.first]
    known = known[: 2 * MAX_EFFECTS]
    if not known:
        return None
    rows = [_change(comparison, one) for one in known]
    with_interval = any(one.contrast is not None and one.contrast.low is not None for one in known)
    known_as = say("report.chart.with_interval") if with_interval else say("report.chart.no_interval")
    looks = {WORDS[kind]: (COLOURS[kind], SHAPES[kind]) for kind in WORDS}
    return drawn(
        say("report.chart.change_against", side=comparison.sides[0].name, interval=known_as),
        rows,
        looks,
        narrow=narrow,
    )


def _change(comparison: ComparisonTable, one: Effect) -> Spec:
    contrast = one.contrast
    assert contrast is not None  # noqa: S101 - it was chosen because it is there
    side = f", {comparison.sides[one.side].name}" if len(comparison.sides) > 2 else ""
    at = 1 + contrast.change
    return {
        "line": f"{one.pattern}: {one.metric.name}{side}",
        "at": at,
        "low": at if contrast.low is None else 1 + contrast.low,
        "high": at if contrast.high is None else 1 + contrast.high,
        "kind": WORDS[one.judgement],
    }


def over_time(comparison: ComparisonTable) -> list[Spec]:
    """Return the rate over time of every pattern, a line for each side; small, to be seen together."""
    names = [one.name for one in comparison.sides]
    return [spec for row in comparison.pairs[:MAX_SMALL] if (spec := course_of(names, row)) is not None]


def course_of(sides: Sequence[str], row: PatternRow) -> Spec | None:
    """Return the rate of one pattern over time, a line for each run, a colour for each side."""
    first = next(cell for cell in row.cells if cell is not None).first
    large = first.large_blocks
    points = []
    for one, cell in zip(sides, row.cells, strict=True):
        if cell is None:
            continue
        for number, phase in enumerate(cell.valid):
            points += [(one, number, at, rate) for at, rate in rate_over_time(phase)]
    if not points:
        return None
    size, unit = bandwidth_unit(max(rate for *_, rate in points)) if large else (1.0, IOPS.name)
    rows: list[Spec] = [
        {"line": name, "run": f"{name} {number}", "t": at, "v": rate / size}
        for name, number, at, rate in points
    ]
    names = [one for one in sides if any(row["line"] == one for row in rows)]
    return base(row.pattern, rows) | {
        "width": SMALL[0] + 60,
        "height": SMALL[1] + 80,
        "mark": {"type": "line", "strokeWidth": 1.4},
        "encoding": {
            "x": SMALL_TIME,
            "y": axis_from_zero("v", unit, ticks=4),
            **inked("line", names, sides),
            "detail": {"field": "run"},
        },
    }


def distributions(comparison: ComparisonTable) -> list[Spec]:
    """Return the latency distributions of each pattern laid over each other, out to the tail."""
    specs = (_distribution(comparison, row) for row in comparison.pairs)
    return list(islice((spec for spec in specs if spec is not None), MAX_DISTRIBUTIONS))


def _distribution(comparison: ComparisonTable, row: PatternRow) -> Spec | None:
    rows: list[Spec] = []
    with_tails = [phase for cell in row.cells if cell is not None for phase in cell.valid if phase.tails]
    # What fio timed after submission is held against that of the others.
    kind: LatencyKind = "lat" if all("lat" in phase.tails for phase in with_tails) else "clat"
    for one, cell in zip(comparison.sides, row.cells, strict=True):
        for number, phase in enumerate(cell.valid if cell is not None else ()):
            last = 0.0
            for inverse, ns in phase.tail(kind):
                if inverse >= last * 1.02 and ns > 0:
                    run = f"{one.name} {number}"
                    printed = phase.summary is None
                    rows.append(
                        {"line": one.name, "run": run, "x": max(1.0, inverse), "ns": ns, "printed": printed}
                    )
                    last = inverse
    every = [one.name for one in comparison.sides]
    names = [name for name in every if any(row["line"] == name for row in rows)]
    if len(names) < 1 or not rows:
        return None
    line = {"type": "line", "strokeWidth": 1.6}
    layers: list[Spec] = [
        {"mark": line | {"interpolate": "step-before"}, "transform": [{"filter": "!datum.printed"}]},
        {"mark": line | {"point": True}, "transform": [{"filter": "datum.printed"}]},
    ]
    return base(
        say(
            "report.chart.distribution_of",
            kind=say("report.chart.latency") if kind == "lat" else kind,
            pattern=row.pattern,
        ),
        rows,
    ) | {
        "encoding": {
            "x": percentile_axis(max(row["x"] for row in rows)),
            "y": latency_axis("ns", [row["ns"] for row in rows]),
            **inked("line", names, every),
            "detail": {"field": "run"},
        },
        "layer": layers,
    }


def curves(comparison: ComparisonTable) -> list[Spec]:
    """Return the latency curves of the sides laid over each other."""
    specs = []
    for one in comparison.curves:
        named = [
            renamed(curve, side.name)
            for side, curve in zip(comparison.sides, one.each, strict=True)
            if curve is not None and curve.loads
        ]
        named = [replace(curve, name=curve.name.removesuffix(": ")) for curve in named]
        for series in ("mean", "p99"):
            spec = study_curve_charts.latency_of_curves(named, series) if named else None
            if spec is not None:
                specs.append(spec)
    return specs
