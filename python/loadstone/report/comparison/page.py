"""A comparison as one HTML file that needs nothing else.

Knows the order of a page that answers: the sentence, the verdicts, the matrix, the chart of
differences; then what was left out, the details and what else differs. Computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loadstone import units
from loadstone.report import templates
from loadstone.report.comparison import charts, words
from loadstone.report.pictures.drawer import Drawer
from loadstone.report.run.summary_text import in_unit
from loadstone.report.verdict.words import NAMES

if TYPE_CHECKING:
    from loadstone.comparison.compare import ComparisonTable, JobRow
    from loadstone.comparison.matrix import Effect, SideValue
    from loadstone.comparison.metric import Metric
    from loadstone.comparison.watched import WatchedRow
    from loadstone.report.pictures.charts import Spec
    from loadstone.report.pictures.drawer import Svg

JOB_COLUMNS: Final = 3
"""Of the sides of a table of jobs, which has the job, the operation and a change of each beside them."""
COLUMNS: Final = 4
"""So many sides are columns of the matrix; more are its rows, so that it stays within the page."""
BESIDE: Final = 2
"""So many have room beside each other on a phone; more are lines below each other there."""

LONG_NAME: Final = 18
"""A phone has no room for two columns under names of more letters, which cannot be broken."""


def page(comparison: ComparisonTable) -> str:
    """Return the page."""
    with Drawer() as drawer:
        return _rendered(comparison, drawer)


def _rendered(comparison: ComparisonTable, drawer: Drawer) -> str:
    forests = _forests(comparison)
    small = [spec for spec in charts.over_time(comparison) if spec is not None]
    matrix = _matrix(comparison)
    return templates.render(
        "comparison/page.html",
        names=[one.name for one in comparison.sides],
        title=words.title(comparison),
        answer=words.headline(comparison),
        sides=[
            (one.name, one.verdict, NAMES[one.verdict], words.counts(one), _sentences(one.worst))
            for one in comparison.sides
        ],
        doubts=[f"{one.name}: {doubt}" for one in comparison.sides for doubt in one.doubts],
        across=len(comparison.sides) <= COLUMNS,
        labelled=len(comparison.sides) > BESIDE or _tells_each(matrix) or _has_long_name(comparison),
        matrix=matrix,
        # So many columns have room for a value and its change beside each other.
        beside=0 < len(comparison.sides) - 1 <= BESIDE,
        change_width=_change_width(matrix),
        legend=words.legend(comparison),
        excluded=words.excluded(comparison),
        forests=[(kind, *_drawn(drawer, spec)) for kind, spec in forests],
        curves=[_drawn(drawer, spec) for spec in charts.curves(comparison)],
        small=[_drawn(drawer, spec) for spec in small],
        distributions=[_drawn(drawer, spec) for spec in charts.distributions(comparison)],
        points=words.of_points(comparison),
        warnings=comparison.warnings,
        jobs=[
            _job(row, before) for row, before in zip(comparison.rows, [None, *comparison.rows], strict=False)
        ],
        many=len(comparison.sides) > JOB_COLUMNS,
        differences=comparison.differences,
        operating=words.operating(comparison),
        watched=[_watched(row) for row in comparison.watched],
    )


def _forests(comparison: ComparisonTable) -> list[tuple[str, Spec]]:
    """Return the chart of changes as pages and screens have it, and for a phone where that is another."""
    wide, narrow = charts.forest(comparison), charts.forest(comparison, narrow=True)
    if wide is None or narrow is None:
        return []
    return [("", wide)] if wide == narrow else [("wide", wide), ("narrow", narrow)]


def _change_width(matrix: list[dict[str, Any]]) -> int:
    """Return the letters of the longest change, so that the values before them stand below each other."""
    cells = [one for block in matrix for line in block["lines"] for one in line["cells"]]
    return max((len(one["change"]) for one in cells), default=0)


def _watched(row: WatchedRow) -> dict[str, Any]:
    return {
        "host": row.host,
        "name": row.name,
        "cells": [
            (
                in_unit(cell.sample.value, row.unit) if cell.sample else units.NONE,
                words.change(cell.contrast) if at else "",
                cell.judgement if cell.judgement in ("better", "worse") else "",
            )
            for at, cell in enumerate(row.cells)
        ],
    }


def _sentences(phase: Any) -> str:
    return str(phase.verdict.sentences)


def _drawn(drawer: Drawer, spec: Spec) -> tuple[str, Svg]:
    title = spec["title"]
    return str(title if isinstance(title, str) else title["text"]), drawer.svg(spec)


def _matrix(comparison: ComparisonTable) -> list[dict[str, Any]]:
    """Return a block for each pattern, with a line for each quantity and a cell for each side."""
    blocks: list[dict[str, Any]] = []
    for row in dict.fromkeys(effect.row for effect in words.shown(comparison)):
        row_effects = [effect for effect in words.shown(comparison) if effect.row == row]
        metrics = list(dict.fromkeys(effect.metric for effect in row_effects))
        lines = [
            _line(comparison, metric, [one for one in row_effects if one.metric == metric])
            for metric in metrics
        ]
        blocks.append({"pattern": row_effects[0].pattern, "lines": lines})
    return blocks


def _tells_each(matrix: list[dict[str, Any]]) -> bool:
    """Tell whether a cell has the values of its repeats: a phone has no room for two of those in a row."""
    return any(cell["each"] for block in matrix for line in block["lines"] for cell in line["cells"])


def _has_long_name(comparison: ComparisonTable) -> bool:
    return any(len(one.name) > LONG_NAME for one in comparison.sides)


def _line(comparison: ComparisonTable, metric: Metric, effects: list[Effect]) -> dict[str, Any]:
    by_side = {one.side: one for one in effects}
    base = _cell(effects[0].before, metric, "", "base")
    cells = [base]
    for at in range(1, len(comparison.sides)):
        one = by_side.get(at)
        if one is None:
            cells.append(
                {
                    "value": "–",
                    "change": "",
                    "each": "",
                    "kind": "none",
                    "struck": False,
                    "why": None,
                    "runs": "",
                }
            )
        else:
            cells.append(_cell(one.after, metric, words.told(one), one.judgement))
    return {"metric": metric.name, "cells": cells}


def _cell(one: SideValue, metric: Metric, change: str, kind: str) -> dict[str, Any]:
    return {
        "value": words.entry(one, metric.quantity),
        "change": change,
        "each": words.each(one, metric.quantity),
        "kind": kind,
        "struck": not one.valid,
        "why": one.why,
        "runs": words.left_out(one),
    }


def _job(row: JobRow, before: JobRow | None) -> dict[str, Any]:
    first = before is None or (row.thing, row.job, row.op) != (before.thing, before.job, before.op)
    return {
        "first": first,
        "name": " ".join(part for part in (row.thing, row.job) if part) if first else "",
        "op": row.op if first else "",
        "metric": row.metric.name,
        "base": words.value(row.cells[0].sample, row.metric.quantity),
        "others": [
            (
                words.value(cell.sample, row.metric.quantity),
                f"{words.change(cell.contrast)} {words.MARKS[cell.judgement]}".rstrip(),
                cell.judgement,
            )
            for cell in row.cells[1:]
        ],
    }
