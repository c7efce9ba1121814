"""The report of rounds to steady state, in the plots SNIA asks for, and of a matrix of sizes.

Knows which plots there are: convergence, the window with its limits and its slope, the matrix,
lines over the block size, and the matrix as bars. Every number comes from `analysis.rounds`. Knows no page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone import units
from loadstone.analysis.statistics.steady import MAX_RANGE, MAX_SLOPE, ROUNDS
from loadstone.messages import say
from loadstone.report.pictures import plot_3d
from loadstone.report.pictures.charts import Spec, axis_from_zero, base, inked, latency_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.analysis.study.rounds import Rounds, RoundsCell
    from loadstone.analysis.study.run_figures import LineFigures, RunFigures

TITLES: Final = {
    "iops": "IOPS",
    "bandwidth": say("report.chart.bandwidth_mib"),
    "mean_ns": say("report.chart.mean_latency"),
}
MAX_LINES: Final = 9
WINDOW_LIMIT: Final = 0.10
"""SNIA draws the window with lines at 110 % and 90 % of its mean."""
_MEBIBYTE: Final = 1 << 20


def sentences(rounds: Rounds) -> list[str]:
    """Say whether it was steady, and by how much."""
    last, count = max(rounds.tracked.values), len(rounds.window)
    if count < ROUNDS:
        return [say("report.rounds.few", done=count, needed=ROUNDS)]
    outcome = say(
        "report.rounds.steady" if rounds.found.steady else "report.rounds.not_steady",
        last=last,
        window=", ".join(map(str, rounds.window)),
        name=rounds.tracked.name,
        range_share=rounds.found.range_share,
        range_limit_share=MAX_RANGE,
        slope_share=rounds.found.slope_share,
        slope_limit_share=MAX_SLOPE,
    )
    return [outcome] if rounds.found.steady else [outcome, say("report.rounds.no_result")]


def matrix(rounds: Rounds) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: block sizes down, shares of reads across, means over the window."""
    shares = _values(rounds.cells, "read")
    rows = []
    for block in _values(rounds.cells, "block"):
        line = [block]
        for share in shares:
            cell = _find(rounds.cells, block, share)
            line.append(units.NONE if cell is None else _written(rounds.mean(cell), rounds.quantity))
        rows.append(line)
    return [
        say("report.column.block"),
        *(say("report.column.percent_read", share=share) for share in shares),
    ], rows


def longest(rounds: Rounds) -> tuple[list[str], list[list[str]]]:
    """Return the same matrix of the longest latencies."""
    headings, rows = matrix(rounds)
    shares = _values(rounds.cells, "read")
    latencies = []
    for row in rows:
        cells = [_find(rounds.cells, row[0], share) for share in shares]
        line = [None if cell is None else rounds.longest_ns(cell) for cell in cells]
        latencies.append(
            [row[0], *(units.NONE if value is None else units.duration(value) for value in line)]
        )
    return headings, latencies


def convergence(rounds: Rounds) -> Spec:
    """Return the quantity over the rounds: of every block size at the tracked cell's share of reads."""
    share = rounds.tracked.factors.get("read")
    cells = [cell for cell in rounds.cells if cell.factors.get("read") == share][:MAX_LINES]
    rows = [
        {"x": number, "v": _scaled(value, rounds.quantity), "line": cell.name}
        for cell in cells
        for number, value in cell.values.items()
    ]
    spec = base(say("report.chart.by_round", quantity=TITLES[rounds.quantity], share=share), rows)
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 30}}
    names = [cell.name for cell in cells]
    return spec | {
        "mark": mark,
        "encoding": {"x": _round(), "y": _axis(rows, rounds), **inked("line", names)},
    }


def window(rounds: Rounds) -> Spec | None:
    """Return the tracked cell in the window, its mean, 110 and 90 % of it, and its best line."""
    if len(rounds.window) < ROUNDS:
        return None
    values = [_scaled(rounds.tracked.values[number], rounds.quantity) for number in rounds.window]
    mean = sum(values) / ROUNDS
    middle = (ROUNDS - 1) / 2
    slope = sum((at - middle) * (value - mean) for at, value in enumerate(values)) / sum(
        (at - middle) ** 2 for at in range(ROUNDS)
    )
    lines = {
        "measured": values,
        "mean": [mean] * ROUNDS,
        "110 %": [mean * (1 + WINDOW_LIMIT)] * ROUNDS,
        "90 %": [mean * (1 - WINDOW_LIMIT)] * ROUNDS,
        "slope": [mean + slope * (at - middle) for at in range(ROUNDS)],
    }
    rows: list[Spec] = [
        {"x": number, "v": value, "line": name}
        for name, series in lines.items()
        for number, value in zip(rounds.window, series, strict=True)
    ]
    spec = base(
        say("report.chart.in_window", quantity=TITLES[rounds.quantity], cell=rounds.tracked.name), rows
    )
    y = _axis(rows, rounds) | {"scale": {"zero": False, "nice": True}}
    if rounds.quantity == "mean_ns":
        y = latency_axis("v", [row["v"] for row in rows])
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 34}}
    return spec | {"mark": mark, "encoding": {"x": _round(), "y": y, **inked("line", list(lines))}}


def over_blocks(rounds: Rounds) -> Spec | None:
    """Return the means over the block size, a line for each share of reads; both axes logarithmic."""
    order = _values(rounds.cells, "block")[::-1]
    shares = _values(rounds.cells, "read")
    if len(order) < 2:
        return None
    rows: list[Spec] = []
    for cell in rounds.cells:
        mean = rounds.mean(cell)
        if mean:
            line = say("report.column.percent_read", share=cell.factors["read"])
            rows.append({"x": cell.factors["block"], "v": _scaled(mean, rounds.quantity), "line": line})
    y = _axis(rows, rounds) | {"scale": {"type": "log"}}
    if rounds.quantity == "mean_ns":
        y = latency_axis("v", [row["v"] for row in rows])
    x = {
        "field": "x",
        "type": "ordinal",
        "sort": order,
        "axis": {"title": say("report.axis.block_size"), "labelAngle": 0},
    }
    mark = {"type": "line", "strokeWidth": 1.8, "point": {"size": 30}}
    names = [say("report.column.percent_read", share=share) for share in shares]
    spec = base(say("report.chart.by_block_size", quantity=TITLES[rounds.quantity]), rows)
    return spec | {"mark": mark, "encoding": {"x": x, "y": y, **inked("line", names)}}


def bars(rounds: Rounds) -> Spec | None:
    """Return the matrix as bars, as SNIA's reports show it."""
    blocks, shares = _values(rounds.cells, "block"), _values(rounds.cells, "read")
    cells = [[_find(rounds.cells, block, share) for block in blocks] for share in shares]
    return plot_3d.drawn(
        plot_3d.Grid(
            title=say("report.chart.window_means", quantity=TITLES[rounds.quantity].partition(",")[0]),
            across=say("report.axis.block_size"),
            columns=blocks,
            down="% read",
            rows=shares,
            values=[[None if cell is None else rounds.mean(cell) for cell in row] for row in cells],
            write=lambda value: _written(value, rounds.quantity),
        ),
        "bars",
    )


def over_written(rounds: Rounds) -> Spec | None:
    """Return the tracked cell over what was written, for a test of one cell."""
    if len(rounds.cells) != 1:
        return None
    rows: list[Spec] = []
    written = 0.0
    for number, value in sorted(rounds.tracked.values.items()):
        written += rounds.tracked.moved_bytes[number]
        rows.append({"x": written / (1 << 30), "v": _scaled(value, rounds.quantity)})
    x = {"field": "x", "type": "quantitative", "axis": {"title": say("report.axis.gib_written")}}
    spec = base(say("report.chart.over_written", quantity=TITLES[rounds.quantity]), rows)
    return spec | {
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {"x": x, "y": _axis(rows, rounds)},
    }


def surfaces(runs: Sequence[RunFigures], loops: Sequence[str]) -> list[Spec]:
    """Return each job's bandwidth over two loops as a surface, and from above with its numbers."""
    across, down = loops[1], loops[0]
    tests = list(
        dict.fromkeys((line.job, line.op) for run in runs for line in run.lines if line.op != "sync")
    )
    specs: list[Spec | None] = []
    for test in tests:
        rows = []
        for run in runs:
            line = _line(run, test)
            if line is not None and line.bandwidth is not None:
                value = line.bandwidth.value
                place = {"x": str(run.point.factors[across]), "y": str(run.point.factors[down])}
                rows.append({**place, "v": value / _MEBIBYTE, "text": units.bandwidth(value)})
        if rows:
            title = f"{test[0]}: bandwidth"
            specs += [_surface(title, rows, (across, down), runs), _map(title, rows, (across, down), runs)]
    return [spec for spec in specs if spec is not None]


def _surface(title: str, rows: list[Spec], loops: tuple[str, str], runs: Sequence[RunFigures]) -> Spec | None:
    columns, lines = (list(dict.fromkeys(str(run.point.factors[name]) for run in runs)) for name in loops)
    bandwidths = {(row["y"], row["x"]): row["v"] * _MEBIBYTE for row in rows}
    return plot_3d.drawn(
        plot_3d.Grid(
            title=title,
            across=say("report.axis.size", thing=loops[0]),
            columns=columns,
            down=say("report.axis.size", thing=loops[1]),
            rows=lines,
            values=[[bandwidths.get((line, column)) for column in columns] for line in lines],
            write=units.bandwidth,
        ),
        "surface",
    )


def _map(title: str, rows: list[Spec], loops: tuple[str, str], runs: Sequence[RunFigures]) -> Spec:
    places: Spec = {}
    for axis, name in zip(("x", "y"), loops, strict=True):
        order = list(dict.fromkeys(str(run.point.factors[name]) for run in runs))
        order = order if axis == "x" else order[::-1]
        places[axis] = {
            "field": axis,
            "type": "ordinal",
            "sort": order,
            "axis": {"title": say("report.axis.size", thing=name), "labelAngle": 0, "grid": False},
        }
    shade = {
        "field": "v",
        "type": "quantitative",
        "scale": {"type": "log", "scheme": "blues"},
        "legend": None,
    }
    dark = f"datum.v > {(max(row['v'] for row in rows) * min(row['v'] for row in rows)) ** 0.5 * 1.6}"
    ink = {"condition": {"test": dark, "value": "white"}, "value": "#222"}
    return base(title, rows) | {
        "layer": [
            {"mark": {"type": "rect", "stroke": "white"}, "encoding": places | {"color": shade}},
            {
                "mark": {"type": "text", "fontSize": 10},
                "encoding": places | {"text": {"field": "text"}, "color": ink},
            },
        ]
    }


def _line(run: RunFigures, test: tuple[str, str]) -> LineFigures | None:
    return next((line for line in run.lines if (line.job, line.op) == test), None)


def _values(cells: Sequence[RoundsCell], factor: str) -> list[str]:
    return list(dict.fromkeys(cell.factors.get(factor, "") for cell in cells))


def _find(cells: Sequence[RoundsCell], block: str, read: str) -> RoundsCell | None:
    wanted = (block, read)
    return next((c for c in cells if (c.factors.get("block", ""), c.factors.get("read", "")) == wanted), None)


def _written(value: float | None, quantity: str) -> str:
    if value is None:
        return units.NONE
    if quantity == "mean_ns":
        return units.duration(value)
    return units.bandwidth(value) if quantity == "bandwidth" else units.count(value)


def _scaled(value: float, quantity: str) -> float:
    return value / _MEBIBYTE if quantity == "bandwidth" else value


def _axis(rows: Sequence[Spec], rounds: Rounds) -> Spec:
    if rounds.quantity == "mean_ns":
        return latency_axis("v", [row["v"] for row in rows])
    return axis_from_zero("v")


def _round() -> Spec:
    return {
        "field": "x",
        "type": "quantitative",
        "axis": {"title": say("report.axis.round"), "tickMinStep": 1, "format": "d"},
    }
